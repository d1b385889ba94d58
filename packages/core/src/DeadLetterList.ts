/**
 * Dead letters in lists: the state of each, pages that begin with the newest, and one dead letter in full.
 *
 * ```ts
 * import { EventBusConnector } from "@eventbus/core"
 * import { Console, Effect } from "effect"
 *
 * export const newest = Effect.gen(function* () {
 *   const connector = yield* EventBusConnector.EventBusConnector
 *   const deadLetters = yield* connector.deadLetters("orders")
 *   const { letters, next } = yield* deadLetters.letters({ states: ["waiting"], limit: 20 })
 *   for (const { partition, offset, exceptionClass } of letters) yield* Console.log(`${partition}@${offset} ${exceptionClass}`)
 *   return next
 * })
 * ```
 */
import type * as Result from "effect/Result"
import type { UnreadableBatch } from "./Broker.ts"
import type { RecordPosition } from "./ConsumerRecord.ts"
import type { DeadLetterRecord } from "./DeadLetterRecord.ts"
import type { DeadLetterReason } from "./Failure.ts"
import * as PageCursor from "./internal/letters/pageCursor.ts"
import type { DecodeFailure } from "./Serde.ts"

/** All states of dead letters. */
export const states = ["waiting", "exhausted", "failed", "dealt-with", "foreign", "unreadable"] as const

/**
 * `waiting`: a replay takes it. `exhausted`: it was replayed `maxReplays` times, so a replay takes it only with `ignoreMaxReplays`. `failed`: the custom handler of the
 * strategy failed for it and is not called again; a replay takes it, unless it was replayed `maxReplays` times. `dealt-with`: replayed, given up, or handled by the custom
 * handler. `foreign`: it belongs to the group that `letter.owner` names. `unreadable`: its batch cannot be read, so no command can act on it but `purge` with
 * `deleteUnreadable`; one entry stands for the whole batch.
 */
export type State = (typeof states)[number]

/** A dead letter, and what was done about it. */
export interface ListedDeadLetter {
  /** The dead letter. Where its batch cannot be read, only its position is known. */
  readonly letter: DeadLetterRecord
  /** Its state: whether somebody has dealt with it. */
  readonly state: State
  /** The batch that cannot be read, and why; set in state `unreadable`. */
  readonly unreadable?: UnreadableBatch
}

/** A replay of a dead letter, or a decision about it, as the journal of replays tells. */
export interface LetterEvent {
  /** `replayed`: a run has copied it. `discarded`: somebody gave it up. `restored`: somebody let it wait again. */
  readonly action: "replayed" | "discarded" | "restored"
  /** When, epoch milliseconds. */
  readonly atMillis: number
  /** The run that did it. Undefined for a discard without a plan, and for decisions of older versions. */
  readonly runId: string | undefined
  /** The one who asked for it. Undefined where the journal does not know. */
  readonly by: string | undefined
  /** Why. Undefined where the journal does not know. */
  readonly reason: string | undefined
  /** Where the copy of a replay is; its offset is negative where the broker did not tell it. Undefined for a decision. */
  readonly copy: RecordPosition | undefined
}

/** A part of a dead letter topic. */
export interface Page {
  /** Of this partition. */
  readonly partition: number
  /** From this offset on. Default: the oldest. */
  readonly from?: bigint
  /** Most records, 1 or more. */
  readonly count: number
}

/** Which dead letters a page has. */
export interface Query {
  /** Of this group alone, named by fingerprint. Default: of every group. */
  readonly fingerprint?: string
  /** In these states alone, one or more. Default: in every state. */
  readonly states?: ReadonlyArray<State>
  /** With this text, in whatever case, in exception class, fingerprint or original topic. Not empty. Default: all. */
  readonly text?: string
  /** True also looks for the text in exception message, detail, key, and the first 64 KiB of the value. Default false. */
  readonly searchesPayload?: boolean
  /** The dead letters that follow this page: `SummaryPage.next`. Default: the newest. */
  readonly before?: string
  /** Most dead letters of the page, 1 to 500. Default 50. */
  readonly limit?: number
}

/**
 * A page. Within a partition the order is that of the offsets, from the newest; between partitions it is that of the times of dead-lettering. Dead letters that arrive later
 * never move into the pages that follow.
 */
export interface SummaryPage {
  /** The dead letters, the newest first. Fewer than asked for, or none, when few meet the query or when they are large: a page reads 5000 dead letters and about 48 MiB at most, or one of each partition. */
  readonly letters: ReadonlyArray<Summary>
  /** The cursor of the page that follows; undefined when this is the last one. */
  readonly next: string | undefined
}

/** Whether a text can be the cursor of a page. */
export const isCursor = (text: string): boolean => PageCursor.read(text) !== undefined

/** A dead letter without its value. */
export interface Summary extends Omit<RecordPosition, "topic"> {
  /** The topic of the binding in whose dead letter topic it lies. Missing for a binding of one topic. */
  readonly sourceTopic?: string
  /** Its state: whether somebody has dealt with it. */
  readonly state: State
  /** The batch that cannot be read, and why; set in state `unreadable`. Then nothing but position and state is known. */
  readonly unreadable?: UnreadableBatch
  /** The group of dead letters that failed for the same reason. */
  readonly fingerprint: string
  /** The class of the last error. */
  readonly exceptionClass: string
  /** The message of the last error. It may quote the record. */
  readonly exceptionMessage: string
  /** Why the connector gave the record up. Undefined for a record that another system dead-lettered. */
  readonly reason: DeadLetterReason | undefined
  /** The reason in words. Undefined when there is none. */
  readonly detail: string | undefined
  /** When it was dead-lettered, epoch milliseconds. */
  readonly deadLetteredMillis: number
  /** Whose headers say where the record was first; `none`: nobody's, and the three fields that follow are those of the dead letter itself. */
  readonly originFrom: DeadLetterRecord["originFrom"]
  /** The topic that the record was first in. */
  readonly originalTopic: string
  /** Its partition there. */
  readonly originalPartition: number
  /** Its offset there. */
  readonly originalOffset: bigint
  /** Handler calls over all tiers. */
  readonly totalAttempts: number
  /** How often it was replayed before it came here. */
  readonly replayCount: number
  /** The group that dead-lettered it. Undefined when it has no mark of a group. */
  readonly owner: string | undefined
  /** The key as UTF-8 text, its first 1024 bytes. Undefined when there is none. */
  readonly key: string | undefined
  /** The size of the value in bytes. Undefined for a tombstone. */
  readonly valueBytes: number | undefined
  /** The replays of it and the decisions about it, the oldest first. Replays without a plan leave no mark here. */
  readonly history: ReadonlyArray<LetterEvent>
}

/** A dead letter in full, as the binding's serdes read it today. */
export interface DecodedDeadLetter extends ListedDeadLetter {
  /** The key, or why it cannot be decoded. Undefined in state `unreadable`. */
  readonly key: Result.Result<unknown, DecodeFailure> | undefined
  /** The replays of it and the decisions about it, the oldest first. Replays without a plan leave no mark here. */
  readonly history: ReadonlyArray<LetterEvent>
  /** The value, or why it cannot be decoded. Undefined in state `unreadable`. */
  readonly value: Result.Result<unknown, DecodeFailure> | undefined
}
