/**
 * Publishes dead letters again: the next ones in the order of their offsets, those of a time window, or to a retry tier (connector seed §4.7, rulings 30, 31 and
 * 61).
 *
 * Copies, journal entries and the committed offset of group `{groupId}.dlt` are one Kafka transaction of up to 100 records. Topic and group make up the
 * transactional id, so a new replay fences one that still runs elsewhere, before it reads how far that one came. Therefore neither a crash nor two concurrent
 * replays publish a record twice for `read_committed` readers.
 */
import { Clock, Effect, type Scope, Semaphore } from "effect"
import type { BrokerError } from "../../BrokerError.ts"
import type { RecordPosition } from "../../ConsumerRecord.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import { type DeadLetters, type ReplayOptions, type Report, UnknownTier } from "../../Replay.ts"
import * as DerivedNames from "../base/derivedNames.ts"
import * as Arguments from "./arguments.ts"
import * as Journal from "./replayJournal.ts"
import { replayPartition } from "./replayPartition.ts"
import * as ReplayProgress from "./replayProgress.ts"
import * as Refusals from "./replayRefusals.ts"
import { CopyRefused, type Options, type RunState, type Selection } from "./replayRun.ts"

/** The report of a scheduled run. `nextDueMillis` is when the next record is due, epoch milliseconds; undefined when the run saw no waiting record. */
export interface DueReport extends Report {
  readonly nextDueMillis: number | undefined
}

export interface Replays
  extends Pick<DeadLetters, "replay" | "replayWindow" | "replayToTier" | "replayRecords" | "discard"> {
  /** Replays the next records that are at least `cooldownMillis` old, `count` at most. */
  readonly replayDue: (cooldownMillis: number, count: number) => Effect.Effect<DueReport, BrokerError>
}

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

  const run = (selection: Selection): Effect.Effect<Report, BrokerError> => {
    const state: RunState = {
      ...{ replayed: 0, passedOver: 0, unreadable: 0, refused: new Map<string, string>() },
      ...{ foreign: new Map<string, number>(), countedTo: new Map<number, bigint>() },
      known: Refusals.nothingKnown()
    }
    const attempt: Effect.Effect<void, BrokerError> = Effect.scoped(runOnce(options, selection, state)).pipe(
      Effect.catchIf(
        (failed): failed is CopyRefused => failed instanceof CopyRefused,
        (failed) => {
          const error = Refusals.learn(state, failed, options.sourceTopic)
          if (error !== undefined) return Effect.fail(error)
          // The transaction was aborted, and the producer may be fenced by now: start again with a new one.
          return attempt
        }
      )
    )
    return mutex.withPermits(1)(Effect.map(attempt, () => reportOf(state)))
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

const runOnce = Effect.fnUntraced(function* (
  options: Options,
  selection: Selection,
  state: RunState
): Effect.fn.Return<void, BrokerError | CopyRefused, Scope.Scope> {
  const { broker, groupId, deadLetterTopic } = options
  if (!(state.replayed < selection.count)) return
  // Before anything is read: this fences every other replay, so nobody else moves the position from now on.
  const producer = yield* broker.transactionalProducer({
    transactionalId: DerivedNames.replayTransactionalId(groupId, deadLetterTopic),
    transactionTimeout,
    fences: [DerivedNames.formerReplayTransactionalId(groupId, deadLetterTopic)]
  })
  const admin = yield* broker.admin
  const progress = yield* ReplayProgress.load(options, admin)
  const ensureJournal = yield* Effect.cached(Journal.ensure(admin, deadLetterTopic))
  const partitionCounts = new Map<string, number>()
  const run = { options, selection, state, progress, producer, admin, ensureJournal, partitionCounts }
  const { partitions } = progress
  for (let index = 0; index < partitions.length && state.replayed < selection.count; index++) {
    yield* replayPartition(run, partitions[((selection.first ?? 0) + index) % partitions.length]!)
  }
})

/** When the record was dead-lettered. Times in the future are ignored, so that a wrong clock never makes a record wait longer than the cooldown. */
const deadLetteredMillis = (letter: DeadLetterRecord, now: number): number =>
  [letter.dltTimestamp, letter.record.timestamp].find((millis) => millis <= now) ?? Number.NEGATIVE_INFINITY
