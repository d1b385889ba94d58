/**
 * The keys that are parked in the group of a binding (`orderingMode: "PER_KEY"`), and the decisions of operators about those that are held.
 *
 * ```ts
 * import { EventBusConnector } from "@eventbus/core"
 * import { Effect } from "effect"
 *
 * export const retried = Effect.gen(function* () {
 *   const connector = yield* EventBusConnector.EventBusConnector
 *   const parked = yield* connector.parked("orders")
 *   const held = (yield* parked.list).filter(({ state }) => state === "held")
 *   for (const { topic, partition, offset } of held) yield* parked.retry({ topic, partition, offset }, "INC-1204: the account is there now")
 * })
 * ```
 */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { BrokerError } from "./BrokerError.ts"
import type { RecordPosition, TopicPartition } from "./ConsumerRecord.ts"
import type { ErrorSummary } from "./Failure.ts"
import type { InvalidArgument } from "./Replay.ts"

/** The states of a parked key. */
export const states = ["held", "waiting", "draining", "stranded"] as const

/**
 * - `waiting`: a record of the key waits in a retry topic for its delivery.
 * - `draining`: that record is done, and what followed it is handled in order.
 * - `held`: that record is out of attempts and waits for an operator (`perKey.onDeadLetter: "hold"`).
 * - `stranded`: its lock is of another incarnation of the source, of another cluster, or of a former name of the group. Its partition does not run until `acceptLoss`, or until the
 *   former group has finished the key.
 */
export type State = (typeof states)[number]

/** A key whose records wait in order. */
export interface ParkedKey extends TopicPartition {
  /** The key, as it stands in the records. */
  readonly key: Uint8Array
  /** In a partition of another process it is the state of the last record that the owner has written: its owner may be draining a key that is `waiting` here. */
  readonly state: State
  /** The offset in the source of the record that the key waits for. Everything of the key before it is done. */
  readonly offset: bigint
  /** Since when the key is parked, epoch milliseconds: from the first failure on, where that is known. */
  readonly sinceMillis: number
  /** When the record is due, epoch milliseconds. Set for a key that is `waiting`, as far as its retry topic tells. */
  readonly dueMillis: number | undefined
  /** The retry topic that the record, or the note about the key, lies in. Undefined while that is on its way there. */
  readonly retryTopic: string | undefined
  /** The tier that the record waits in, from 1. Set for a key that is `waiting`. */
  readonly tier: number | undefined
  /** The last failure of the record. The message is empty where only the class was kept: a retry topic keeps no message. Undefined where nothing is known. */
  readonly failure: ErrorSummary | undefined
  /** How many records are known to wait behind it. Undefined in a partition of another process. */
  readonly followers: number | undefined
  /** Whether more of them can be in the source alone: `followers` is the least number then. */
  readonly hasMoreFollowers: boolean
  /** Whether its partition is owned by this process, so that everything about it is as of now. */
  readonly isOwnedHere: boolean
}

/** The place of a held record in its source. */
export interface HeldPosition extends Omit<RecordPosition, "topic"> {
  /** The source. Default: the topic of the binding, the first one of several. */
  readonly topic?: string
}

/** Names the key of a decision: as bytes, as UTF-8 text, or by the position of the record that holds it. */
export type HeldKey = Uint8Array | string | HeldPosition

/** A decision, and why. */
export interface KeyDecision {
  /** `retry`: the record is handled again, and then what follows it. `skip`: it is dead-lettered for its own reason, and the key goes on behind it. `accept-loss`: the key goes on without what its stranded lock kept back. */
  readonly kind: "retry" | "skip" | "accept-loss"
  /** Why. */
  readonly reason: string
}

/** A decision about a held record. */
export interface GivenDecision {
  /** Where the held record lies in its source. */
  readonly at: RecordPosition
  /** The decision and its reason. */
  readonly decision: KeyDecision
}

/** The answer to a decision. */
export interface Decided {
  /** The key as it was found. */
  readonly key: ParkedKey
  /**
   * `here`: this process owns the partition and has begun. `owner`: the decision stands in the first retry topic. Its owner, or the next one, finds it there behind the records that
   * wait for their delivery in that partition.
   */
  readonly by: "here" | "owner"
}

/**
 * A decision about one held key, with its reason. Fails with `KeyNotHeld`, and does nothing, when no such key is held; with `InvalidArgument` without a reason, for a key of a wrong
 * kind, and for a key that is held in several partitions: then the place of its record names it.
 */
export type Decide = (
  key: HeldKey,
  reason: string
) => Effect.Effect<Decided, BrokerError | KeyNotHeld | InvalidArgument>

/** The keys whose loss was accepted. */
export interface AcceptedLoss {
  /** As they were found. Their partitions begin within seconds. */
  readonly keys: ReadonlyArray<ParkedKey>
}

/**
 * Accepts the loss of order of all stranded keys of the binding. `expected` is their number, 1 or more, as `list` showed it. Fails with `StrandedKeysChanged`, and does nothing, when
 * there are more or fewer; with `InvalidArgument` without a reason or a number.
 */
export type AcceptLoss = (
  expected: number,
  reason: string
) => Effect.Effect<AcceptedLoss, BrokerError | StrandedKeysChanged | InvalidArgument>

/** The parked keys of a binding, on its cluster, in whatever state the binding is and whichever process owns their partitions. */
export interface ParkedKeys {
  /** The `orderingMode` of the binding. Only `PER_KEY` parks keys: with another one, `list` has those that were parked before, and they go on in order. */
  readonly orderingMode: string
  /**
   * All parked keys of the group: those that are held first, and of each state those that have waited longest. Reads the retry topics once, from the group's committed offsets to their ends.
   * A list does not show the work of another process since its last commit.
   */
  readonly list: Effect.Effect<ReadonlyArray<ParkedKey>, BrokerError>
  /** The held record is handled again, and what follows it, in order. */
  readonly retry: Decide
  /** The held record is dead-lettered for the reason that it has, and the key goes on behind it. */
  readonly skip: Decide
  /** Records of stranded locks are dead-lettered, and their partitions run. The acceptance is stored in the retry topics: it holds for every later owner. */
  readonly acceptLoss: AcceptLoss
}

/** There are more or fewer stranded keys than the operator has looked at. Nothing was done. */
export class StrandedKeysChanged extends Schema.TaggedError<StrandedKeysChanged>()("StrandedKeysChanged", {
  /** The binding, with its cluster unless that is `default`. */
  binding: Schema.String,
  /** The number that was given. */
  expected: Schema.Number,
  /** The number that was found. */
  found: Schema.Number
}) {
  override get message(): string {
    const { binding, expected, found } = this
    return `Binding '${binding}' has ${found} stranded keys, and ${expected} were named. Nothing was done. List the parked keys again.`
  }
}

/** No such key is parked, or it is parked and not held. Nothing was done. */
export class KeyNotHeld extends Schema.TaggedError<KeyNotHeld>()("KeyNotHeld", {
  /** The binding, with its cluster unless that is `default`. */
  binding: Schema.String,
  /** The key that was given as text, `(bytes)` for one that was given as bytes, or the place as `topic-partition@offset`. */
  wanted: Schema.String,
  /** The parked keys that it could mean, as `topic-partition@offset: state`. Empty: there is none. */
  found: Schema.Array(Schema.String)
}) {
  override get message(): string {
    const { wanted, binding, found } = this
    const what =
      found.length === 0
        ? `No key of binding '${binding}' is parked at ${wanted}: it has gone on, or its offset has changed.`
        : `The key at ${wanted} of binding '${binding}' is parked and not held: ${found.join(", ")}.`
    return `${what} Nothing was done. Only a key in state 'held' can be retried or skipped: list the parked keys.`
  }
}

/** The binding cannot keep the order of each key through retry topics: it has none, reads them with a consumer of their own, or handles batches. None of its keys is parked. */
export class NotOrderedPerKey extends Schema.TaggedError<NotOrderedPerKey>()("NotOrderedPerKey", {
  /** The binding, with its cluster unless that is `default`. */
  binding: Schema.String,
  /** Its `orderingMode`. */
  orderingMode: Schema.String
}) {
  override get message(): string {
    return `No key of binding '${this.binding}' can be parked: it has orderingMode '${this.orderingMode}', and retry topics that keep no order. orderingMode 'PER_KEY' keeps it.`
  }
}
