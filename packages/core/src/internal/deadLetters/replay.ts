/**
 * Publishes dead letters again: the next ones in position order, those of a time window, or to a retry tier (connector seed §4.7, rulings 30, 31 and 61).
 *
 * Copies, the journal's entries and the committed offset of group `{groupId}.dlt` are one Kafka transaction, up to 100 records each. The transactional id is
 * that of the topic and the group, so a replay that begins shuts out one that still runs elsewhere, before it reads how far that one came. So neither
 * a crash nor two replays at once can publish a record twice, for readers that are `read_committed`.
 */
import { Clock, Effect, type Scope, Semaphore } from "effect"
import type { BrokerError } from "../../BrokerError.ts"
import type { RecordPosition } from "../../ConsumerRecord.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import { type DeadLetters, type Report, UnknownTier } from "../../Replay.ts"
import * as TopicName from "../../TopicName.ts"
import * as Journal from "./replayJournal.ts"
import { CopyRefused, keyOf, type Options, type RunState, replayPartition, type Selection } from "./replayPartition.ts"
import * as ReplayProgress from "./replayProgress.ts"

/** When the next record of the topic is due, as far as a run has seen; undefined when it saw none that waits. */
export interface DueReport extends Report {
  readonly nextDueMillis: number | undefined
}

export interface Replays
  extends Pick<DeadLetters, "replay" | "replayWindow" | "replayToTier" | "replayRecords" | "discard"> {
  /** The next records that are `cooldownMillis` old, `count` at most. */
  readonly replayDue: (cooldownMillis: number, count: number) => Effect.Effect<DueReport, BrokerError>
}

/** Commands of one process wait for each other. */
export const make = (options: Options): Replays => {
  const turns = Semaphore.makeUnsafe(1)
  let dueRuns = 0

  const run = (selection: Selection): Effect.Effect<Report, BrokerError> => {
    const state: RunState = { replayed: 0, passedOver: 0, refused: new Set() }
    const attempt: Effect.Effect<void, BrokerError> = Effect.scoped(runOnce(options, selection, state)).pipe(
      Effect.catchIf(
        (failed): failed is CopyRefused => failed instanceof CopyRefused,
        (failed) => {
          if (!isOwnFault(failed.error, options.sourceTopic)) return Effect.fail(failed.error)
          state.refused.add(keyOf(failed.record))
          // The transaction was aborted, and this producer may be shut out by now: all anew.
          return attempt
        }
      )
    )
    const report = () => ({ replayed: state.replayed, passedOver: state.passedOver, refused: state.refused.size })
    return turns.withPermits(1)(Effect.map(attempt, report))
  }

  return {
    replay: (count) => run({ count, inOrder: true, select: () => "take" }),
    replayWindow: (fromMillis, toMillis) =>
      run({
        count: Number.POSITIVE_INFINITY,
        inOrder: false,
        select: ({ dltTimestamp }) => (dltTimestamp >= fromMillis && dltTimestamp < toMillis ? "take" : "leave")
      }),
    replayToTier: (tier, count) =>
      Number.isInteger(tier) && tier >= 1 && tier <= options.tiers.count
        ? run({ count, tier, inOrder: true, select: () => "take" })
        : Effect.fail(new UnknownTier({ tier, tiers: options.tiers.count })),
    replayRecords: (records) => run(these(records)),
    discard: (records, reason) =>
      Effect.map(run({ ...these(records), discardedBecause: reason }), ({ replayed }) => replayed),
    replayDue: Effect.fnUntraced(function* (cooldownMillis, count) {
      const now = yield* Clock.currentTimeMillis
      let nextDueMillis: number | undefined
      const judge = (letter: DeadLetterRecord) => {
        const dueMillis = deadLetteredMillis(letter, now) + cooldownMillis
        if (dueMillis <= now) return "take"
        nextDueMillis = Math.min(nextDueMillis ?? dueMillis, dueMillis)
        return "stop"
      }
      // Each run begins with another partition, so that a long one does not keep the others waiting.
      const report = yield* run({ count, inOrder: true, select: judge, first: dueRuns++ })
      return { ...report, nextDueMillis }
    })
  }
}

const these = (records: ReadonlyArray<Omit<RecordPosition, "topic">>): Selection => {
  const wanted = new Set(records.map(({ partition, offset }) => `${partition}/${offset}`))
  return {
    count: wanted.size,
    inOrder: false,
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
  // First of all: from now on nobody else can move what is read next.
  const producer = yield* broker.transactionalProducer({
    transactionalId: `${TopicName.deadLetterGroup(groupId)}.replay.${deadLetterTopic}`
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

/** What is wrong with the one record, so that the others need not wait for it. */
const isOwnFault = (error: BrokerError, sourceTopic: string): boolean =>
  error._tag === "RecordTooLarge" ||
  error._tag === "RecordRejected" ||
  error._tag === "InvalidTopic" ||
  (error._tag === "UnknownTopic" && error.topic !== sourceTopic)

/** A header that claims the future is not believed, nor is the record's own timestamp then: nobody waits longer than the cooldown because of them. */
const deadLetteredMillis = (letter: DeadLetterRecord, now: number): number =>
  [letter.dltTimestamp, letter.record.timestamp].find((millis) => millis <= now) ?? Number.NEGATIVE_INFINITY
