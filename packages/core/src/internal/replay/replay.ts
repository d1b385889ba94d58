/**
 * Publishes dead letters again: the next ones in the order of their offsets, those of a time window, or to a retry tier (connector seed §4.7, rulings 30, 31 and
 * 61).
 *
 * Copies, journal entries and the committed offset of group `{groupId}.dlt` are one Kafka transaction of up to 100 records. A run first looks whether it has anything to
 * write. If so, it takes the lease of topic and group, for which it waits while another process replays, and reads again how far the others came. Topic and group also make
 * up the transactional id: whoever lost the lease without knowing, and a process that knows no leases, is fenced. Therefore neither a crash nor two concurrent replays
 * publish a record twice for `read_committed` readers.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { RecordPosition } from "../../ConsumerRecord.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import type { DeadLetters, ReplayOptions, Report } from "../../Replay.ts"
import * as Arguments from "./arguments.ts"
import * as Attempts from "./replayAttempts.ts"
import * as Refusals from "./replayRefusals.ts"
import type { Options, RunState, Selection } from "./replayRun.ts"

/** The report of a scheduled run. `nextDueMillis` is when the next record is due, epoch milliseconds; undefined when the run saw no waiting record. */
export interface DueReport extends Report {
  readonly nextDueMillis: number | undefined
}

export interface Replays
  extends Pick<DeadLetters, "replay" | "replayWindow" | "replayToTier" | "replayRecords" | "discard"> {
  /** Replays the next records that are at least `cooldownMillis` old, `count` at most. */
  readonly replayDue: (cooldownMillis: number, count: number) => Effect.Effect<DueReport, Attempts.RunError>
}

const reportOf = (state: RunState): Report => {
  const { replayed, passedOver, refused, foreign, unreadable } = state
  const refusals = refused.size === 0 ? {} : { refusals: Refusals.reasonsOf(state) }
  return { replayed, passedOver, refused: refused.size, foreign, unreadable, ...refusals }
}

/** The run takes a record however often it was replayed. */
const noLimit = { maxReplays: Number.POSITIVE_INFINITY }

const limitOf = Effect.fnUntraced(function* (command: string, given: ReplayOptions = {}) {
  const { ignoreMaxReplays } = yield* Arguments.options(command, "options", given, ["ignoreMaxReplays"])
  yield* Arguments.flag(command, "ignoreMaxReplays", ignoreMaxReplays)
  return ignoreMaxReplays === true ? noLimit : {}
})

/** Makes the replays of one dead letter topic. They run one at a time within a process. */
export const make = (options: Options): Replays => {
  const mutex = Semaphore.makeUnsafe(1)
  let dueRuns = 0

  const run = (selection: Selection): Effect.Effect<Report, Attempts.RunError> => {
    const state = Attempts.newState()
    const whole = Effect.catchIf(Attempts.look(options, selection, state), Attempts.isLeaseNeeded, () =>
      Attempts.withLease(options, state, (lease) => Attempts.publish(options, selection, state, lease))
    )
    // Only the run of a plan is ever halted.
    const told = Effect.catchIf(whole, Attempts.isHalted, Effect.die)
    return mutex.withPermits(1)(Effect.map(told, () => reportOf(state)))
  }

  const runWith = (command: string, selection: Selection, given: ReplayOptions | undefined) =>
    Effect.flatMap(limitOf(command, given), (limit) => run({ ...selection, ...limit }))

  return {
    replay: (count, given) =>
      Effect.andThen(
        Arguments.count("replay", count),
        runWith("replay", { count, inOrder: true, select: () => "take" }, given)
      ),
    replayWindow: (fromMillis, toMillis, given) => {
      const isWithin = (millis: number) => millis >= fromMillis && millis < toMillis
      const select: Selection["select"] = ({ dltTimestamp }) => (isWithin(dltTimestamp) ? "take" : "leave")
      return Arguments.time("replayWindow", "fromMillis", fromMillis).pipe(
        Effect.andThen(Arguments.time("replayWindow", "toMillis", toMillis)),
        Effect.andThen(runWith("replayWindow", { count: Number.POSITIVE_INFINITY, inOrder: false, select }, given))
      )
    },
    replayToTier: (tier, count, given) =>
      Arguments.tier("replayToTier", tier, options.tiers.count).pipe(
        Effect.andThen(Arguments.count("replayToTier", count)),
        Effect.andThen(runWith("replayToTier", { count, tier, inOrder: true, select: () => "take" }, given))
      ),
    replayRecords: (records, given) =>
      Effect.flatMap(Arguments.positions("replayRecords", "records", records), (positions) =>
        runWith("replayRecords", these(positions), given)
      ),
    discard: (records, reason) =>
      Arguments.reason("discard", reason).pipe(
        Effect.andThen(Arguments.positions("discard", "records", records)),
        Effect.flatMap((positions) => run({ ...these(positions), ...noLimit, discardedBecause: reason })),
        Effect.map(({ replayed }) => replayed)
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

/** When the record was dead-lettered. Times in the future are ignored, so that a wrong clock never makes a record wait longer than the cooldown. */
const deadLetteredMillis = (letter: DeadLetterRecord, now: number): number =>
  [letter.dltTimestamp, letter.record.timestamp].find((millis) => millis <= now) ?? Number.NEGATIVE_INFINITY
