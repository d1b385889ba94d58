/**
 * Publishes dead letters again: the next ones in the order of their offsets, those of a time window, or to a retry tier (connector seed §4.7, rulings 30, 31 and
 * 61).
 *
 * Copies, journal entries and the committed offset of group `{groupId}.dlt` are one Kafka transaction of up to 100 records. A run first looks whether it has anything to
 * write. If so, it takes the lease of topic and group, for which it waits while another process replays, and reads again how far the others came. Topic and group also make
 * up the transactional id: whoever lost the lease without knowing, and a process that knows no leases, is fenced. Therefore neither a crash nor two concurrent replays
 * publish a record twice for `read_committed` readers.
 */
import { Clock, Effect, type Scope, Semaphore } from "effect"
import type { BrokerError } from "../../BrokerError.ts"
import type { RecordPosition } from "../../ConsumerRecord.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import {
  type DeadLetters,
  type ReplayOptions,
  type ReplayRunning,
  type ReplayTakenOver,
  type Report,
  UnknownTier
} from "../../Replay.ts"
import * as DerivedNames from "../base/derivedNames.ts"
import * as Arguments from "./arguments.ts"
import * as Journal from "./replayJournal.ts"
import * as ReplayLease from "./replayLease.ts"
import { replayPartition } from "./replayPartition.ts"
import * as ReplayProgress from "./replayProgress.ts"
import * as Refusals from "./replayRefusals.ts"
import { CopyRefused, LeaseNeeded, type Options, type RunState, type Selection } from "./replayRun.ts"

/** The report of a scheduled run. `nextDueMillis` is when the next record is due, epoch milliseconds; undefined when the run saw no waiting record. */
export interface DueReport extends Report {
  readonly nextDueMillis: number | undefined
}

export interface Replays
  extends Pick<DeadLetters, "replay" | "replayWindow" | "replayToTier" | "replayRecords" | "discard"> {
  /** Replays the next records that are at least `cooldownMillis` old, `count` at most. */
  readonly replayDue: (cooldownMillis: number, count: number) => Effect.Effect<DueReport, RunError>
}

/** A run that could not do what it should. */
export type RunError = BrokerError | ReplayRunning | ReplayTakenOver

/** A process that is killed in the middle of a transaction hides the journal that other services share with it for so long, and Kafka looks every ten seconds. */
const transactionTimeout = "15 seconds"

const reportOf = (state: RunState): Report => {
  const { replayed, passedOver, refused, foreign, unreadable } = state
  const refusals = refused.size === 0 ? {} : { refusals: Refusals.reasonsOf(state) }
  return { replayed, passedOver, refused: refused.size, foreign, unreadable, ...refusals }
}

/** The run takes a record however often it was replayed. */
const noLimit = { maxReplays: Number.POSITIVE_INFINITY }

/** Makes the replays of one dead letter topic. They run one at a time within a process. */
export const make = (options: Options): Replays => {
  const mutex = Semaphore.makeUnsafe(1)
  let dueRuns = 0

  const run = (selection: Selection): Effect.Effect<Report, RunError> => {
    const state: RunState = {
      ...{ replayed: 0, passedOver: 0, unreadable: 0, refused: new Map<string, string>(), warned: new Set<string>() },
      ...{ foreign: new Map<string, number>(), countedTo: new Map<number, bigint>() },
      known: Refusals.nothingKnown()
    }
    const whole = Effect.catchIf(runOnce(options, selection, state), isLeaseNeeded, () =>
      withLease(options, selection, state)
    )
    const told = Effect.catchIf(whole, isCopyRefused, ({ refusals }) => Effect.fail(refusals[0]!.error))
    return mutex.withPermits(1)(Effect.map(told, () => reportOf(state)))
  }

  const limitOf = ({ ignoreMaxReplays }: ReplayOptions = {}) => (ignoreMaxReplays === true ? noLimit : {})

  return {
    replay: (count, given) =>
      Effect.andThen(
        Arguments.count("replay", count),
        run({ count, inOrder: true, select: () => "take", ...limitOf(given) })
      ),
    replayWindow: (fromMillis, toMillis, given) =>
      Arguments.time("replayWindow", "fromMillis", fromMillis).pipe(
        Effect.andThen(Arguments.time("replayWindow", "toMillis", toMillis)),
        Effect.andThen(
          run({
            count: Number.POSITIVE_INFINITY,
            inOrder: false,
            select: ({ dltTimestamp }) => (dltTimestamp >= fromMillis && dltTimestamp < toMillis ? "take" : "leave"),
            ...limitOf(given)
          })
        )
      ),
    replayToTier: (tier, count, given) =>
      Number.isInteger(tier) && tier >= 1 && tier <= options.tiers.count
        ? Effect.andThen(
            Arguments.count("replayToTier", count),
            run({ count, tier, inOrder: true, select: () => "take", ...limitOf(given) })
          )
        : Effect.fail(new UnknownTier({ tier, tiers: options.tiers.count })),
    replayRecords: (records, given) => run({ ...these(records), ...limitOf(given) }),
    discard: (records, reason) =>
      Effect.andThen(
        Arguments.reason("discard", reason),
        Effect.map(run({ ...these(records), ...noLimit, discardedBecause: reason }), ({ replayed }) => replayed)
      ),
    replayDue: Effect.fnUntraced(function* (cooldownMillis, count) {
      const now = yield* Clock.currentTimeMillis
      let nextDueMillis: number | undefined
      const select = (letter: DeadLetterRecord) => {
        const dueMillis = deadLetteredMillis(letter, now) + cooldownMillis
        if (dueMillis <= now) return "take"
        nextDueMillis = Math.min(nextDueMillis ?? dueMillis, dueMillis)
        return "stop"
      }
      // Each run begins with another partition, so that a long partition does not starve the others.
      const report = yield* run({ count, inOrder: true, select, first: dueRuns++, passesOverOnce: true })
      return { ...report, nextDueMillis }
    })
  }
}

const these = (records: ReadonlyArray<Omit<RecordPosition, "topic">>): Selection => {
  const wanted = new Set(records.map(({ partition, offset }) => `${partition}/${offset}`))
  return {
    count: wanted.size,
    inOrder: false,
    takesHandled: true,
    concerns: (batch) =>
      records.some(
        ({ partition, offset }) => partition === batch.partition && offset >= batch.offset && offset <= batch.lastOffset
      ),
    select: ({ record }) => (wanted.has(`${record.partition}/${record.offset}`) ? "take" : "leave")
  }
}

const isCopyRefused = (failed: unknown): failed is CopyRefused => failed instanceof CopyRefused
const isLeaseNeeded = (failed: unknown): failed is LeaseNeeded => failed instanceof LeaseNeeded

/** Reads, and with a lease also publishes. Without one it fails at the first thing that there is to write. */
const runOnce = Effect.fnUntraced(function* (
  options: Options,
  selection: Selection,
  state: RunState,
  lease?: ReplayLease.Lease
): Effect.fn.Return<void, RunError | CopyRefused | LeaseNeeded, Scope.Scope> {
  if (!(state.replayed < selection.count)) return
  // Before anything is read: nobody else moves the position from now on.
  const producer = lease === undefined ? undefined : yield* producerOf(options, lease)
  const admin = yield* options.broker.admin
  const progress = yield* ReplayProgress.load(options, admin)
  const run = { options, selection, state, progress, producer, admin, partitionCounts: new Map<string, number>() }
  const { partitions } = progress
  for (let index = 0; index < partitions.length && state.replayed < selection.count; index++) {
    yield* replayPartition(run, partitions[((selection.first ?? 0) + index) % partitions.length]!)
  }
}, Effect.scoped)

/** Takes the lease, and runs until nothing is left. */
const withLease = Effect.fnUntraced(function* (options: Options, selection: Selection, state: RunState) {
  const admin = yield* options.broker.admin
  yield* Journal.ensure(admin, options.deadLetterTopic)
  const lease = yield* ReplayLease.acquire({ ...options, replayed: () => state.replayed })
  const once = Effect.catchIf(runOnce(options, selection, state, lease), isLeaseNeeded, Effect.die)
  const attempt: Effect.Effect<void, RunError | CopyRefused> = Effect.catchIf(once, isCopyRefused, (failed) => {
    const error = Refusals.learn(state, failed, options.sourceTopic)
    // The transaction was aborted, and the producer may be fenced by now: start again with a new one.
    return error === undefined ? attempt : Effect.fail(error)
  })
  return yield* Effect.catchTag(attempt, "ProducerFenced", () => Effect.flatMap(lease.takenOver, Effect.fail))
}, Effect.scoped)

/**
 * The producer of a run. Older versions know no leases, but one transactional id or both, and fence whoever has it when they begin: so a run has the first version's for one
 * release, and fences the other. Where it may not use that one, no process of the first version can replay, and the run has the newer id.
 */
const producerOf = Effect.fnUntraced(function* (
  { broker, groupId, deadLetterTopic }: Options,
  lease: ReplayLease.Lease
) {
  yield* lease.confirm
  const former = DerivedNames.formerReplayTransactionalId(groupId, deadLetterTopic)
  const newer = DerivedNames.replayTransactionalId(groupId, deadLetterTopic)
  const make = (transactionalId: string, fenced: string) =>
    broker.transactionalProducer({ transactionalId, transactionTimeout, fences: [fenced] })
  if (!DerivedNames.isFormerReplayIdUnique(groupId, deadLetterTopic)) return yield* make(newer, former)
  return yield* Effect.catchTag(make(former, newer), "AuthorizationFailed", () => make(newer, former))
})

/** When the record was dead-lettered. Times in the future are ignored, so that a wrong clock never makes a record wait longer than the cooldown. */
const deadLetteredMillis = (letter: DeadLetterRecord, now: number): number =>
  [letter.dltTimestamp, letter.record.timestamp].find((millis) => millis <= now) ?? Number.NEGATIVE_INFINITY
