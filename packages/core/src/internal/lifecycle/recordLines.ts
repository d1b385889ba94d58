/**
 * The log line of a record that was not handled: where it was read first, which attempt of how many in total failed, when the next one is due, and why. The stack trace of the
 * last error is in the line that ends the record's way, and in no other.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as LogLevel from "effect/LogLevel"
import type { ConsumerRecord, RecordPosition } from "../../ConsumerRecord.ts"
import type { EventBusEvent, Settlement } from "../../EventBusEvent.ts"
import { isoText, lastMillis } from "../base/isoText.ts"
import * as LogLine from "../base/logLine.ts"
import * as Failures from "../failure/failure.ts"
import { failureText } from "../failure/failureText.ts"
import * as RetryState from "../record/retryState.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import { mostAttempts } from "../settings/deliveries.ts"
import * as Sources from "../settings/sources.ts"

type SettledEvent = Extract<EventBusEvent, { readonly _tag: "Settled" }>
type Definition = BindingDefinition<unknown>

/** Most records end as `Handled`; another consumer continues with an abandoned one. Neither is worth a line. */
export const isQuiet = (settlement: Settlement): settlement is "Handled" | "Abandoned" =>
  settlement === "Handled" || settlement === "Abandoned"

/** An effect that logs the line. The text is made only when warnings are logged. */
export const of = (event: SettledEvent, definition: Definition | undefined): Effect.Effect<void> | undefined => {
  const { settlement, failure } = event
  if (isQuiet(settlement) || failure === undefined || isDecidedSkip(event)) return undefined
  return Effect.flatMap(LogLevel.isEnabled("Warn"), (isEnabled) => {
    if (!isEnabled) return Effect.void
    const path = pathOf(event, definition)
    const end = event.target?.heldAt === undefined ? ends[settlement] : "held in"
    const line = `Record ${end}${details(event, path, definition)}: ${failureText(failure)}`
    const trace = endsItsWay(event) ? Failures.printable(failure) : undefined
    const log = trace === undefined ? LogLine.warning(line) : LogLine.warning(line, Cause.die(trace))
    return Effect.annotateLogs(log, annotations(event, path, definition))
  })
}

const ends = {
  Routed: "routed to",
  DeadLettered: "dead-lettered to",
  Skipped: "skipped",
  Halted: "halted its partition",
  HeldByBreaker: "waits for the circuit breaker"
} as const

/** An operator's decision to skip has a line of its own, with the reason. */
const isDecidedSkip = ({ settlement, attempts }: SettledEvent): boolean => settlement === "Skipped" && attempts === 0

/** Whether no attempt of the program follows. The line of the halt before an operator's decision has the stack trace already. */
const endsItsWay = ({ settlement, target, attempts }: SettledEvent): boolean =>
  settlement === "Halted" ||
  target?.heldAt !== undefined ||
  (settlement === "DeadLettered" && !(target?.reason === "MANUAL" && attempts === 0))

/** Where the record was read first, and its attempts so far. */
interface Path {
  readonly origin: RecordPosition
  readonly totalAttempts: number
}

/** The event knows it where the record has left. Otherwise the headers of a copy are read here, for the few records that get a line. */
const pathOf = (
  { origin, totalAttempts, attempts, record, topic }: SettledEvent,
  definition: Definition | undefined
): Path => {
  if (origin !== undefined && totalAttempts !== undefined) return { origin, totalAttempts }
  const tier = definition && Sources.tierOf(definition, topic)
  if (definition === undefined || tier === undefined) return { origin: record, totalAttempts: attempts }
  const state = RetryState.ofRetryTopic(record, tier, Sources.ofTopic(definition, topic))
  return { origin: state.origin, totalAttempts: state.totalAttempts + attempts }
}

const details = (event: SettledEvent, { origin, totalAttempts }: Path, definition: Definition | undefined): string => {
  const { settlement, target, nextAttemptMillis } = event
  const to = target === undefined ? "" : ` ${target.topic}`
  const reason = target?.reason === undefined ? "" : ` (${target.reason})`
  const next = nextAttemptMillis === undefined ? "" : `, next attempt at ${timeText(nextAttemptMillis)}`
  const most = definition === undefined ? 0 : mostAttempts(definition)
  const after = settlement === "HeldByBreaker" ? "" : attemptsText(totalAttempts, most)
  return `${to}${after}${reason}${next}${heldText(event, definition)}, original ${placeOf(origin)}`
}

const placeOf = ({ topic, partition, offset }: RecordPosition): string => `${topic}-${partition}@${offset}`

/** The key that waits behind a held record, and how to let it go on. A line quotes a key only where the binding allows it (`logKeys`). */
const heldText = ({ record, target, binding }: SettledEvent, definition: Definition | undefined): string => {
  const at = target?.heldAt
  if (at === undefined) return ""
  const key = definition?.logKeys === true ? `key '${keyText(record)}'` : "the key"
  const decide = `eventbus parked retry ${binding} ${at.partition}@${at.offset}`
  return `, and ${key} of ${placeOf(at)} waits behind it until an operator decides ('${decide}', or 'skip')`
}

/** A wait may end later than any date. */
const timeText = (millis: number): string => isoText(Math.min(millis, lastMillis))

/** ` after attempt 2 of 3`. A record may have more attempts than its binding has by now, after its policy has changed. */
export const attemptsText = (attempts: number, most: number): string => {
  if (attempts === 0) return " without an attempt"
  return attempts <= most && Number.isFinite(most)
    ? ` after attempt ${attempts} of ${most}`
    : ` after attempt ${attempts}`
}

const annotations = ({ record }: SettledEvent, { origin }: Path, definition: Definition | undefined) => {
  const { topic, partition, offset } = origin
  const isHere = topic === record.topic && partition === record.partition && offset === record.offset
  return {
    ...(isHere ? {} : { originalTopic: topic, originalPartition: partition, originalOffset: offset }),
    ...(definition?.logKeys === true ? { key: keyText(record) } : {})
  }
}

const longestKey = 128

/** Text where the bytes are UTF-8, otherwise hexadecimal digits. A long key is cut. */
const keyText = ({ key }: ConsumerRecord): string => {
  if (key === null) return "null"
  const bytes = key.subarray(0, longestKey)
  const cut = key.length > longestKey ? "…" : ""
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true }) + cut
  } catch {
    return `0x${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}${cut}`
  }
}
