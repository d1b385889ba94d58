/**
 * A record of a dead letter topic with all that its headers tell (connector seed §5, `DltRecord`).
 *
 * Headers are untrusted input: `read` never throws, and what is missing, malformed or out of range gets the default that its field names.
 */
import type { ConsumerRecord, Header } from "./ConsumerRecord.ts"
import type { DeadLetterReason, ErrorSummary } from "./Failure.ts"
import * as CopyOwner from "./internal/record/copyOwner.ts"
import * as FailureHeaders from "./internal/record/failureHeaders.ts"
import * as Names from "./internal/record/headerNames.ts"
import * as HeaderValues from "./internal/record/headerValues.ts"
import { lastValues, readOrigin } from "./internal/record/origin.ts"
import * as RunMark from "./internal/record/runMark.ts"
import * as Spring from "./internal/record/springLetter.ts"

export { numberText as springNumber } from "./internal/record/springLetter.ts"

/** How a tier (0 is the main topic) gave the record up. */
export interface TierFailureRecord {
  /** The tier; 0 is the main topic. */
  readonly tier: number
  /** The class of the last error in that tier. */
  readonly exceptionClass: string
  /** Epoch milliseconds. Default 0. */
  readonly exhaustedAt: number
  /** Handler calls in that tier. Default 0. */
  readonly attempts: number
}

/** A dead letter, read from its headers. A header that is missing or malformed has the default of its field. */
export interface DeadLetterRecord {
  /** Whose headers say where the record was first; `none`: nobody's, and the four `original…` fields are those of the dead letter itself. */
  readonly originFrom: "eventbus" | "spring" | "none"
  /** The topic that the record was first in. */
  readonly originalTopic: string
  /** Its partition there. */
  readonly originalPartition: number
  /** Its offset there. */
  readonly originalOffset: bigint
  /** Epoch milliseconds. */
  readonly originalTimestamp: number
  /** Original bytes. */
  readonly key: Uint8Array | null
  /** Original bytes, also where Spring could not read them and its JSON serializer stored a text in Base64 in their place: `record` has that text. */
  readonly value: Uint8Array | null
  /** All headers of the dead letter, in order; without `__TypeId__` where it names the type of such a text. */
  readonly headers: ReadonlyArray<Header>
  /** Undefined for a record that another system dead-lettered. */
  readonly dltReason: DeadLetterReason | undefined
  /** The reason in words that a route, a result or an operator's command gave, at most 1 KiB of it; undefined when there was none, or no room for it. */
  readonly dltDetail: string | undefined
  /** When it was dead-lettered, epoch milliseconds. Default: the timestamp of the record. */
  readonly dltTimestamp: number
  /** Handler calls over all tiers; of a letter of Spring's `@RetryableTopic`, its deliveries. Default 0. */
  readonly totalAttempts: number
  /** Epoch milliseconds. Default `dltTimestamp`. */
  readonly firstFailureTimestamp: number
  /** Default `unknown`. */
  readonly lastExceptionClass: string
  /** Default empty. */
  readonly lastExceptionMessage: string
  /** The chain of causes of the last error, the outermost first: at most ten, in 1 KiB together. Default: none. */
  readonly cause: ReadonlyArray<ErrorSummary>
  /**
   * The group of dead letters that failed for the same reason: `v1-…` by the connector's own rule, or `own-…` by the binding's. Where no header has it, it is made from the
   * headers that are there, by the connector's rule; the lists of a binding's commands apply the binding's.
   */
  readonly fingerprint: string
  /** In the order of the tiers. */
  readonly tierHistory: ReadonlyArray<TierFailureRecord>
  /** How often it was replayed before it came here. Default 0, also where no owner is named: another system may have taken the header over from a record that it read. */
  readonly replayCount: number
  /** The run (`ReplayRun`) whose copy this is, when one replayed the record last. Undefined where no owner is named, as for the count. */
  readonly runId: string | undefined
  /** The group that dead-lettered it, or `#` and a hash of it where the copy had no room for the name; undefined when an older version or another system did. */
  readonly owner: string | undefined
  /** The record as it lies in the dead letter topic. */
  readonly record: ConsumerRecord
}

/** Reads a fetched record as a dead letter. */
export const read = (record: ConsumerRecord): DeadLetterRecord => {
  const headers = lastValues(record.headers)
  const own = readOrigin(record, headers)
  const spring = own === undefined ? Spring.readOrigin(record) : undefined
  const origin = own ?? spring ?? record
  const dltTimestamp = HeaderValues.timestamp(headers.get(Names.dltTimestamp)) ?? record.timestamp
  const owner = CopyOwner.of(record)
  const springException = spring === undefined ? undefined : Spring.readException(record.headers)
  const springAttempts = spring === undefined ? undefined : Spring.readAttempts(record.headers)
  const content = spring === undefined ? record : Spring.readContent(record)
  const read = {
    originFrom: own !== undefined ? "eventbus" : spring !== undefined ? "spring" : "none",
    originalTopic: origin.topic,
    originalPartition: origin.partition,
    originalOffset: origin.offset,
    originalTimestamp: origin.timestamp,
    key: record.key,
    value: content.value,
    headers: content.headers,
    dltReason: reasonOf(HeaderValues.text(headers.get(Names.dltReason))),
    dltDetail: HeaderValues.text(headers.get(Names.dltDetail)),
    dltTimestamp,
    totalAttempts: springAttempts ?? count(headers.get(Names.totalAttempts)),
    firstFailureTimestamp: HeaderValues.timestamp(headers.get(Names.firstFailureTimestamp)) ?? dltTimestamp,
    lastExceptionClass:
      HeaderValues.text(headers.get(Names.lastExceptionClass)) || springException?.className || "unknown",
    lastExceptionMessage: HeaderValues.text(headers.get(Names.lastExceptionMessage)) ?? springException?.message ?? "",
    tierHistory: tierHistory(headers),
    replayCount: owner === undefined ? 0 : count(headers.get(Names.replayCount)),
    runId: owner === undefined ? undefined : RunMark.read(headers.get(Names.runId))?.runId,
    owner,
    record
  } satisfies Omit<DeadLetterRecord, "cause" | "fingerprint">
  return { ...read, ...FailureHeaders.read(read) }
}

const mostAttempts = 1_000_000_000

const count = (value: HeaderValues.HeaderValue): number => HeaderValues.wholeNumber(value, 0, mostAttempts) ?? 0

const reasonOf = (value: string | undefined): DeadLetterReason | undefined =>
  value === "RETRIES_EXHAUSTED" || value === "NON_RETRYABLE" || value === "MANUAL" ? value : undefined

const exceptionOfTier = /^x-eventbus-tier(\d{1,4})-exception$/

/** A tier without an exception is none. */
const tierHistory = (headers: ReturnType<typeof lastValues>): ReadonlyArray<TierFailureRecord> => {
  const history = new Map<number, TierFailureRecord>()
  for (const [key, value] of headers) {
    const found = exceptionOfTier.exec(key)
    if (found === null || value === null) continue
    const tier = Number(found[1])
    history.set(tier, {
      tier,
      exceptionClass: HeaderValues.text(value) ?? "",
      exhaustedAt: HeaderValues.timestamp(headers.get(Names.tierExhaustedAt(tier))) ?? 0,
      attempts: count(headers.get(Names.tierAttempts(tier)))
    })
  }
  return Array.from(history.values()).sort((a, b) => a.tier - b.tier)
}
