/**
 * Sends commits for one session: merged over partitions, one request in flight, never backwards (rulings 5 and 7).
 *
 * A partition reports that its position moved (`mark`), or waits until its finished records are committed (`commit`). One fiber sends for all partitions. Records that
 * finish while a request is out join the next one.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { ConsumerSession, OffsetCommit } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { partitionKey, type TopicPartition } from "../../ConsumerRecord.ts"
import * as CommitMetadata from "./commitMetadata.ts"
import * as CommitWaiters from "./commitWaiters.ts"

/** An assigned partition, as the committer needs it. */
export interface Committable extends TopicPartition {
  readonly generation: number
  /** Text that each commit of the partition carries. */
  readonly metadata?: string | undefined
  /** The records that are finished behind the offset, as text for the metadata of the commit; undefined when none is. It changes although the offset stays. */
  readonly finishedAhead?: () => string | undefined
  /** The part of it that the broker is known to have. Written by the committer only. */
  committedAhead?: string | undefined
  /** The offset that may be committed now. */
  readonly position: () => bigint
  /** The offset that the broker is known to have. Written by the committer only. */
  committed: bigint
  /** False once the assignment is over: nothing is sent for it any more. */
  readonly owned: () => boolean
  /** True once it is being given up: its handlers need not wait for a commit any more, since the last one is still to come. */
  readonly stopping: boolean
}

export interface Committer {
  /** The position of this partition may have moved: commit it in the background, within the commit interval. */
  readonly mark: (partition: Committable) => void
  /** Asks for a commit without the interval; returns at once. */
  readonly hasten: (partition: Committable) => void
  /** Returns when everything finished so far is committed, or the partition is being given up. */
  readonly commit: (partition: Committable) => Effect.Effect<void>
  /** Answers fibers that wait for a commit of a partition that is being given up by now. */
  readonly release: () => void
  /**
   * The last commit of a partition that is being given up: returns when everything is committed, or the assignment is over. After a refusal it does not wait: the time
   * for it is short (ruling 83).
   */
  readonly commitLast: (partition: Committable) => Effect.Effect<void>
}

export interface CommitterOptions {
  readonly commitIntervalMillis: number
  readonly onCommitted: (partition: Committable) => void
  readonly onFailed: (error: BrokerError, attempt: number) => void
  /** The committer died, and commits nothing any more. */
  readonly onDefect: (defect: unknown) => Effect.Effect<void>
}

/** Waits between attempts of a commit that was refused: 50 ms doubling up to 2 s, for as long as it takes. A last commit begins them anew. */
const refused = Schedule.min([Schedule.exponential("50 millis", 2), Schedule.spaced("2 seconds")])

export const make = Effect.fnUntraced(function* (
  session: Pick<ConsumerSession, "commit">,
  options: CommitterOptions
): Effect.fn.Return<Committer, never, Scope.Scope> {
  const waiters = CommitWaiters.make()
  const work = Latch.makeUnsafe(false)
  const urgent = Latch.makeUnsafe(false)
  const requests = makeRequests(session, options, waiters.answer)
  const { dirty, stale, lastAsked, send } = requests

  const mark = (partition: Committable) => {
    dirty.add(partition)
    work.openUnsafe()
  }

  yield* Effect.forever(
    Effect.gen(function* () {
      yield* work.await
      if (!Latch.isOpen(urgent)) yield* Effect.raceFirst(urgent.await, Effect.sleep(options.commitIntervalMillis))
      work.closeUnsafe()
      urgent.closeUnsafe()
      yield* untilAccepted(send, lastAsked)
      waiters.answer()
      for (const partition of stale) mark(partition)
      stale.clear()
    })
  ).pipe(Effect.catchDefect(options.onDefect), Effect.forkScoped)

  const hasten = (partition: Committable) => {
    mark(partition)
    urgent.openUnsafe()
  }

  const askLast = (partition: Committable) => {
    // Opening a latch may run the committer at once. It must find the partition, and a request that is new anyway must not be repeated without a wait.
    dirty.add(partition)
    lastAsked.openUnsafe()
    hasten(partition)
  }

  const wait = (partition: Committable, givenUp: () => boolean, ask = hasten) =>
    Effect.suspend(() => {
      const offset = partition.position()
      const ahead = requests.aheadOf(partition)
      if (givenUp() || !isNews(partition, offset, ahead)) return Effect.void
      const isAccepted = ahead === undefined ? undefined : requests.nextAccepted(partition)
      const answered = waiters.add({ partition, offset, givenUp, isAccepted })
      ask(partition)
      return answered
    })

  return {
    mark,
    hasten,
    commit: (partition) => wait(partition, () => partition.stopping || !partition.owned()),
    release: waiters.answer,
    commitLast: (partition) => wait(partition, () => !partition.owned(), askLast)
  }
})

/** Makes the request of a committer, and the set of partitions that the next one commits. */
const makeRequests = (session: Pick<ConsumerSession, "commit">, options: CommitterOptions, onRefused: () => void) => {
  const dirty = new Set<Committable>()
  /** Partitions that the broker no longer takes for ours, while the session has not said so yet: they must not delay the others. */
  const stale = new Set<Committable>()
  /** Open from the moment at which a partition asks for its last commit until the next request. */
  const lastAsked = Latch.makeUnsafe(false)
  let attempt = 0
  let begun = 0
  /** The last request in which the broker has taken, or had before, all that a partition had to say. */
  const accepted = new WeakMap<Committable, number>()
  /** A broker may allow less text in a commit (`offset.metadata.max.bytes`): a refused commit that nothing else can help is repeated without what is finished ahead. */
  let tellsAhead = true
  const aheadOf = (partition: Committable) => (tellsAhead ? partition.finishedAhead?.() : undefined)
  /** One request. Partitions that could not be committed stay dirty, and the request fails, so that it is tried again. */
  const send = Effect.suspend(() => {
    lastAsked.closeUnsafe()
    const number = ++begun
    const batch = batchOf(dirty, aheadOf)
    for (const partition of dirty) if (!batch.has(partition)) accepted.set(partition, number)
    dirty.clear()
    if (batch.size === 0) return Effect.void
    return session.commit(Array.from(batch.values(), ({ commit }) => commit)).pipe(
      Effect.tap(() =>
        Effect.sync(() => {
          attempt = 0
          for (const [partition, { commit, ahead }] of batch) {
            partition.committed = commit.offset
            partition.committedAhead = ahead
            accepted.set(partition, number)
            options.onCommitted(partition)
          }
        })
      ),
      Effect.tapError((error) =>
        Effect.sync(() => {
          options.onFailed(error, ++attempt)
          if (!error.retryable && error._tag !== "StaleAssignment" && hasAhead(batch)) tellsAhead = false
          for (const partition of batch.keys()) (isStale(error, partition) ? stale : dirty).add(partition)
          onRefused()
        })
      )
    )
  })
  return {
    ...{ dirty, stale, lastAsked, send, aheadOf },
    /** Answers whether a request that begins after this call has been accepted. */
    nextAccepted: (partition: Committable) => {
      const since = begun
      return () => (accepted.get(partition) ?? 0) > since
    }
  }
}

/** Repeats a request until it is accepted. A last commit that is asked for meanwhile ends the wait. */
const untilAccepted = Effect.fnUntraced(function* (send: Effect.Effect<void, BrokerError>, lastAsked: Latch.Latch) {
  let nextWait = yield* Schedule.toStep(refused)
  while (Result.isFailure(yield* Effect.result(send))) {
    const [, wait] = yield* Effect.orDie(nextWait(yield* Clock.currentTimeMillis, undefined))
    yield* Effect.raceFirst(lastAsked.await, Effect.sleep(wait))
    if (Latch.isOpen(lastAsked)) nextWait = yield* Schedule.toStep(refused)
  }
})

const isStale = (error: BrokerError, { topic, partition }: TopicPartition): boolean =>
  error._tag === "StaleAssignment" && error.partitions.includes(partitionKey(topic, partition))

interface Entry {
  readonly commit: OffsetCommit
  readonly ahead: string | undefined
}

const hasAhead = (batch: ReadonlyMap<Committable, Entry>): boolean =>
  Array.from(batch.values()).some(({ ahead }) => ahead !== undefined)

/** Whether the broker does not have this position yet, or not what is finished behind it. */
const isNews = ({ committed, committedAhead }: Committable, offset: bigint, ahead: string | undefined): boolean =>
  offset > committed || (offset === committed && ahead !== undefined && ahead !== committedAhead)

/** The positions that the broker does not have yet, of partitions that are still ours. */
const batchOf = (
  partitions: Iterable<Committable>,
  aheadOf: (partition: Committable) => string | undefined
): Map<Committable, Entry> => {
  const batch = new Map<Committable, Entry>()
  for (const partition of partitions) {
    const offset = partition.position()
    if (!partition.owned()) continue
    const ahead = aheadOf(partition)
    if (!isNews(partition, offset, ahead)) continue
    const { topic, partition: number, generation } = partition
    const metadata = CommitMetadata.withFinished(partition.metadata, ahead)
    const commit = { topic, partition: number, generation, offset }
    batch.set(partition, { commit: metadata === undefined ? commit : { ...commit, metadata }, ahead })
  }
  return batch
}
