/**
 * The way of one record through main topic, retry topics, dead letter topic and replays, by what lies in the cluster alone: each copy says where it comes from.
 *
 * ```ts
 * import { Trail } from "@eventbus/core"
 * import { Console, Effect } from "effect"
 *
 * export const program = Effect.gen(function* () {
 *   const hops = yield* Trail.trail({ topic: "orders", groupId: "billing" }, { partition: 3, offset: 17n })
 *   yield* Console.log(Trail.format(hops))
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import { Broker } from "./Broker.ts"
import type { BrokerError } from "./BrokerError.ts"
import * as DeadLetterRecord from "./DeadLetterRecord.ts"
import type { DeadLetterReason } from "./Failure.ts"
import { isoText } from "./internal/base/isoText.ts"
import { pluralize } from "./internal/base/pluralize.ts"
import { type Copy, find, type Selector, type Topics } from "./internal/deadLetters/trailSearch.ts"
import * as Names from "./internal/record/headerNames.ts"
import * as HeaderValues from "./internal/record/headerValues.ts"

export type { Selector, Topics }

/** One copy of the record. */
export interface Hop {
  /** `main`: the record itself. `retry`: a copy in a retry topic. `dead-letter`: in the dead letter topic. `replay`: back in the main topic. */
  readonly kind: "main" | "retry" | "dead-letter" | "replay"
  /** The topic of the copy. */
  readonly topic: string
  /** Its partition. */
  readonly partition: number
  /** Its offset. */
  readonly offset: bigint
  /** When it was published, epoch milliseconds. */
  readonly timestamp: number
  /** The tier that it is in, or was in last; 0 is the main topic. */
  readonly tier: number
  /** Which delivery in the tier, from 1; 0 in the dead letter topic. */
  readonly attempt: number
  /** How often the record had been replayed. */
  readonly replayCount: number
  /** Handler calls before this copy was made, since the last replay. */
  readonly totalAttempts: number
  /** The class of the error that brought it here: of a dead letter the last error, of a retry that of the last tier which gave the record up. */
  readonly exceptionClass: string | undefined
  /** The message of the last error. Set for a dead letter. */
  readonly exceptionMessage: string | undefined
  /** Why the connector gave the record up. Set for a dead letter. */
  readonly reason: DeadLetterReason | undefined
  /** Whether the group has committed past it; undefined where it does not consume, or has committed nothing. */
  readonly committed: boolean | undefined
}

/**
 * The hops of one record, in order: main topic, tiers, dead letter topic, and the same again for each replay. Empty when nothing of it is left; what
 * retention removed is missing. Reads retry and dead letter topics as a whole.
 */
export const trail = (topics: Topics, selector: Selector): Effect.Effect<ReadonlyArray<Hop>, BrokerError, Broker> =>
  Effect.gen(function* () {
    const copies = yield* find(yield* Broker, topics, selector)
    return copies.map(hopOf).sort(inOrder)
  }).pipe(Effect.scoped)

/** One line for each hop, the same in every run. Times are UTC. */
export const format = (hops: ReadonlyArray<Hop>): string => {
  const rows = hops.map((hop) => [
    labelOf(hop),
    `${hop.topic}-${hop.partition}@${hop.offset}`,
    timeOf(hop.timestamp),
    storyOf(hop)
  ])
  const widths = [0, 1, 2].map((column) => Math.max(0, ...rows.map((row) => row[column]!.length)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}

const most = 1_000_000_000

const hopOf = ({ kind, record, committed }: Copy): Hop => {
  const { topic, partition, offset, timestamp } = record
  const at = { kind, topic, partition, offset, timestamp, committed }
  const nothing = { exceptionClass: undefined, exceptionMessage: undefined, reason: undefined }
  // Headers of the record itself say nothing reliable about its way.
  if (kind === "main") return { ...at, ...nothing, tier: 0, attempt: 1, replayCount: 0, totalAttempts: 0 }
  const number = (name: string, fallback: number) =>
    HeaderValues.wholeNumber(HeaderValues.last(record.headers, name), 0, most) ?? fallback
  if (kind === "replay") {
    return { ...at, ...nothing, tier: 0, attempt: 1, replayCount: number(Names.replayCount, 1), totalAttempts: 0 }
  }
  const letter = DeadLetterRecord.read(record)
  const { replayCount, totalAttempts } = letter
  const told = { tier: number(Names.retryTier, 0), replayCount, totalAttempts }
  return kind === "retry"
    ? {
        ...{ ...at, ...nothing, ...told, attempt: number(Names.retryAttempt, 1) },
        exceptionClass: letter.tierHistory.at(-1)?.exceptionClass
      }
    : {
        ...{ ...at, ...told, attempt: 0, exceptionClass: letter.lastExceptionClass },
        ...{ exceptionMessage: letter.lastExceptionMessage, reason: letter.dltReason }
      }
}

const ranks = { main: 0, replay: 0, retry: 1, "dead-letter": 2 } as const

/** By what the hops say of themselves; clocks of different machines only decide what is left. */
const inOrder = (a: Hop, b: Hop): number =>
  a.replayCount - b.replayCount ||
  ranks[a.kind] - ranks[b.kind] ||
  a.tier - b.tier ||
  a.attempt - b.attempt ||
  a.timestamp - b.timestamp ||
  a.partition - b.partition ||
  Number(a.offset - b.offset)

const labelOf = ({ kind, tier }: Hop): string =>
  kind === "retry" ? `retry-${tier}` : kind === "dead-letter" ? "DLT" : kind

const timeOf = (millis: number): string => isoText(millis).replace("T", " ").replace("Z", "")

const storyOf = (hop: Hop): string => {
  const { attempt, committed, exceptionClass, exceptionMessage, reason, replayCount, totalAttempts } = hop
  const state = committed === undefined ? [] : [committed ? "done" : "not done"]
  const cause = exceptionClass === undefined ? [] : [`after ${oneLine(exceptionClass)}`]
  switch (hop.kind) {
    case "main":
      return state.join("")
    case "replay":
      return [`replay ${replayCount}`, ...state].join(", ")
    case "retry":
      return [`attempt ${attempt}`, ...cause, ...state].join(", ")
    case "dead-letter": {
      const message = exceptionMessage === undefined || exceptionMessage === "" ? "" : `: ${oneLine(exceptionMessage)}`
      return `${reason ?? "unknown reason"} after ${pluralize(totalAttempts, "attempt")}, ${oneLine(exceptionClass ?? "")}${message}`
    }
  }
}

const mostCharacters = 80

/** Text from a header, as far as it does no harm to a line. */
const oneLine = (text: string): string => {
  const line = text
    .split(/[\r\n]/u, 1)[0]!
    .replace(/\p{Cc}/gu, "\uFFFD")
    .trim()
  return line.length > mostCharacters ? `${line.slice(0, mostCharacters - 1)}…` : line
}
