/**
 * Dead letters by the reason of their failure: those of one fingerprint form a group.
 *
 * ```ts
 * import { EventBusConnector } from "@eventbus/core"
 * import { Console, Effect } from "effect"
 *
 * export const largest = Effect.gen(function* () {
 *   const connector = yield* EventBusConnector.EventBusConnector
 *   const deadLetters = yield* connector.deadLetters("orders")
 *   const { groups } = yield* deadLetters.groups()
 *   for (const { count, exceptionClass, frame } of groups) yield* Console.log(`${count} ${exceptionClass} ${frame ?? ""}`)
 * })
 * ```
 */
import type { State } from "./DeadLetterList.ts"
import type { DeadLetterRecord } from "./DeadLetterRecord.ts"
import type { DeadLetterSelection, Position } from "./DeadLetterSelection.ts"

/** The states of dead letters that belong to a group: those of other consumer groups and unreadable ones belong to none. */
export const states = ["waiting", "exhausted", "failed", "dealt-with"] as const satisfies ReadonlyArray<State>
/** One of them. */
export type GroupState = (typeof states)[number]

/** Which dead letters are grouped. */
export interface Options {
  /** Only these. Default: all. */
  readonly selection?: DeadLetterSelection
  /** In these states alone, one or more. Default: in every state. */
  readonly states?: ReadonlyArray<GroupState>
}

/** Dead letters that failed for the same reason. All figures are of the dead letters that were asked for. */
export interface DeadLetterGroup {
  /** Its name: `v1-…` by the connector's own rule, or `own-…` by the binding's. */
  readonly fingerprint: string
  /** The topic of the binding in whose dead letter topic they lie. Missing where the groups are those of one topic. */
  readonly sourceTopic?: string
  /** The class of the last error, from one of its dead letters. */
  readonly exceptionClass: string
  /** The place in the application that the error comes from, such as `charge payments/charge.ts`, else the path that could not be decoded. Undefined where neither is known. */
  readonly frame: string | undefined
  /** The message of one of its errors, with `#` for numbers and ids, at most 200 characters. The rest of it may quote the record. */
  readonly message: string
  /** Whose headers say where the record of the same dead letter was first; `none`: nobody's, and `originalTopic` is the dead letter topic. */
  readonly originFrom: DeadLetterRecord["originFrom"]
  /** The topic that the record of the same dead letter was first in. */
  readonly originalTopic: string
  /** Dead letters that are not dealt with: those in states `waiting`, `failed` and `exhausted`. */
  readonly count: number
  /** Dead letters by state. */
  readonly states: Readonly<Record<GroupState, number>>
  /** Of those that are dealt with, the ones that were given up. A replay published the others, or a custom handler handled them. */
  readonly discarded: number
  /** Dead letters that had been replayed before they came, or came back, here. */
  readonly cameBack: number
  /** When the oldest was dead-lettered, epoch milliseconds. */
  readonly firstMillis: number
  /** When the newest was dead-lettered, epoch milliseconds. */
  readonly lastMillis: number
  /** How many were dead-lettered in each of the last 24 hours, the oldest hour first. The last one ends now. */
  readonly trend: ReadonlyArray<number>
  /** The newest ones, at most five, the newest first. */
  readonly samples: ReadonlyArray<Position>
}

/** The groups of a dead letter topic. */
export interface GroupReport {
  /** At most 1000 groups: that with most dead letters to deal with comes first, then the one that was seen last. */
  readonly groups: ReadonlyArray<DeadLetterGroup>
  /** Dead letters of all further groups, in whatever state. */
  readonly other: number
  /** Dead letters of other consumer groups, which are in no group here. */
  readonly foreign: number
  /** Offsets of batches that cannot be read, an upper bound of their records. */
  readonly unreadable: number
  /** When the topic was read, epoch milliseconds: the end of the trends. */
  readonly readMillis: number
}
