/**
 * Applies what a session reports to the partitions of one consumer.
 *
 * Assigned: a fresh scope, whose fiber runs the partition. Revoked: the partition drains within a limit, commits and closes; only then it is released to its next
 * owner. Lost: the partition is interrupted and commits nothing. A partition that stays is not touched.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { ConsumerEvent, PartitionOffsets, RecordChunk } from "../../Broker.ts"
import { partitionKey, type RecordPosition, type TopicPartition } from "../../ConsumerRecord.ts"
import type { HeldBatch } from "../../Snapshot.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import { keepRunning } from "../base/keepRunning.ts"
import { report } from "../delivery/consumerContext.ts"
import * as ChunkPart from "../partition/chunkPart.ts"
import type { Partition } from "../partition/partition.ts"
import * as StartPosition from "../partition/startPosition.ts"
import * as DeletedTopics from "./deletedTopics.ts"
import * as Draining from "./draining.ts"
import * as MissingParts from "./missingParts.ts"
import { reportGap } from "./reportGap.ts"
import * as Running from "./runningPartitions.ts"
import * as Starts from "./starts.ts"
import * as StopLimits from "./stopLimits.ts"
import * as UnreadableBatches from "./unreadableBatches.ts"

export interface Assignments {
  readonly partitions: () => ReadonlyArray<Partition>
  /** Applies one report of the session. Returns quickly: slow work continues in the background. */
  readonly react: (event: ConsumerEvent) => Effect.Effect<void>
  /** Retention has passed the position of a partition that is not fetched: what is gone is reported, and the position moves on. */
  readonly overtaken: (partition: Partition, log: PartitionOffsets) => Effect.Effect<void>
  /** Passes the batch that cannot be read at this position; undefined when this consumer has none there. */
  readonly skipUnreadable: (at: RecordPosition, reason: string) => Effect.Effect<HeldBatch | undefined>
  /** Stops, drains, commits and ends every partition within the limits. */
  readonly drain: (limits: StopLimits.StopLimits) => Effect.Effect<void>
}

/** Closing the scope interrupts every partition and commits nothing. It waits for interrupted handlers within the limits of the stop, and the session closes without them then. */
export const make = Effect.fnUntraced(function* <R>(
  options: Running.RunningPartitionsOptions<R>
): Effect.fn.Return<Assignments, never, R | Scope.Scope> {
  const scope = yield* Effect.scope
  const services = yield* Effect.context<R>()
  const deletedTopics = DeletedTopics.make(options, scope)
  const partitions: Running.RunningPartitions<R> = {
    options,
    services,
    running: new Map(),
    closing: new Map(),
    givenUp: new Set()
  }
  const starts = Starts.make(partitions, scope)
  const entriesOf = (assigned: ReadonlyArray<TopicPartition>) =>
    assigned.flatMap((at) => Running.find(partitions, at) ?? [])
  let stopLimits: StopLimits.StopLimits | undefined

  const react = (event: ConsumerEvent): Effect.Effect<void> => {
    switch (event._tag) {
      case "Fetched":
        return accept(partitions, event.chunk)
      case "Assigned":
        return assign(partitions, starts, event, deletedTopics)
      case "Revoked":
        giveUp(partitions, starts, event.partitions)
        return revoke(partitions, entriesOf(event.partitions), event.release, {
          ...{ scope, deletedTopics, isStopping: () => stopLimits !== undefined }
        })
      case "Lost":
        giveUp(partitions, starts, event.partitions)
        return lose(partitions, entriesOf(event.partitions), deletedTopics)
      case "OutOfRange":
        return reset(partitions, event)
      case "Unreadable": {
        const entry = Running.find(partitions, event)
        const isCurrent = entry?.partition.generation === event.generation && !entry.isDraining
        return isCurrent ? UnreadableBatches.hold(partitions, entry, event) : Effect.void
      }
    }
  }

  const all = () => Running.list(partitions).map(({ partition }) => partition)
  if (options.units !== undefined) {
    yield* Effect.forkScoped(keepRunning("missing parts of units", MissingParts.run({ ...options, partitions: all })))
  }

  yield* Effect.addFinalizer(() =>
    Effect.flatMap(Running.closeAll(partitions, Running.list(partitions)), () =>
      awaitAtMost(
        Effect.forEach(Array.from(partitions.closing.values()), Fiber.await, { discard: true }),
        (stopLimits ?? StopLimits.ofSessionEnd).cleanUp()
      )
    )
  )

  return {
    partitions: all,
    react,
    overtaken: ({ topic, partition, generation, log }, { logStart, logEnd }) =>
      react({ _tag: "OutOfRange", topic, partition, generation, position: log.fetchedTo, logStart, logEnd }),
    skipUnreadable: (at, reason) =>
      Effect.suspend(() => UnreadableBatches.skip(partitions, Running.find(partitions, at), at, reason)),
    drain: (limits) =>
      Effect.suspend(() => {
        stopLimits = limits
        starts.forgetAll()
        const entries = Running.list(partitions)
        return Effect.andThen(Draining.drainEach(partitions, entries, limits), Running.closeAll(partitions, entries))
      })
  }
})

type Assigned = Extract<ConsumerEvent, { readonly _tag: "Assigned" }>

const assign = <R>(
  partitions: Running.RunningPartitions<R>,
  starts: Starts.Starts,
  event: Assigned,
  deletedTopics: DeletedTopics.DeletedTopics
): Effect.Effect<void> => {
  for (const { topic, partition } of event.partitions) partitions.givenUp.delete(partitionKey(topic, partition))
  return deletedTopics
    .assigned(event.partitions)
    .pipe(
      Effect.andThen(Starts.requireUnits(partitions, event)),
      Effect.andThen(Effect.forEach(event.partitions, (assigned) => starts.assign(event, assigned), { discard: true }))
    )
}

/** They start no more, and do not open again. */
const giveUp = <R>(
  partitions: Running.RunningPartitions<R>,
  starts: Starts.Starts,
  given: ReadonlyArray<TopicPartition>
): void => {
  starts.forget(given)
  for (const { topic, partition } of given) partitions.givenUp.add(partitionKey(topic, partition))
}

const accept = <R>(partitions: Running.RunningPartitions<R>, chunk: RecordChunk): Effect.Effect<void> => {
  const entry = Running.find(partitions, chunk)
  if (entry === undefined || entry.partition.generation !== chunk.generation) return Effect.void
  return entry.partition.offer(chunk) ? entry.partition.syncFetch : Effect.void
}

/** The parts of its consumer that a revocation needs. */
interface Surroundings {
  readonly scope: Scope.Scope
  readonly deletedTopics: DeletedTopics.DeletedTopics
  /** Whether the consumer stops: nothing opens any more. */
  readonly isStopping: () => boolean
}

/** Drains the partitions in the background, then releases them to their next owners. */
const revoke = Effect.fnUntraced(function* <R>(
  partitions: Running.RunningPartitions<R>,
  entries: ReadonlyArray<Running.RunningPartition>,
  release: Effect.Effect<void>,
  { scope, deletedTopics, isStopping }: Surroundings
) {
  const { context } = partitions.options
  for (const entry of entries) {
    entry.isRevoked = true
    report(context, entry.partition, { _tag: "PartitionRevoked" })
  }
  // The other parts of their units stop with them, and wait for a new unit behind that.
  const companions = Draining.companionsOf(partitions, entries)
  for (const entry of [...entries, ...companions]) Draining.startDraining(entry)
  const drainAndRelease = Effect.gen(function* () {
    yield* Draining.drainEach(partitions, [...entries, ...companions], StopLimits.ofRevocation(context.definition))
    // A partition that was lost meanwhile may have another owner. It has nothing to release.
    const owned = entries.filter(({ partition }) => partition.owned())
    for (const { partition } of owned) {
      report(context, partition, { _tag: "PartitionReleased", committed: partition.committed })
    }
    yield* deletedTopics.revoked(owned.map(({ partition }) => partition))
    const staying = companions.filter(({ partition, isRevoked }) => partition.owned() && !isRevoked)
    yield* Running.closeAll(partitions, [...owned, ...staying])
    // Before the release: a partition that is lost meanwhile must be found, and a stop closes what is open when it begins.
    if (!isStopping()) yield* Effect.forEach(staying, ({ partition }) => Running.reopen(partitions, partition))
    yield* release
  })
  yield* Effect.forkIn(Effect.catchDefect(Effect.uninterruptible(drainAndRelease), context.onDefect), scope)
})

/** Other members may already own these partitions. */
const lose = <R>(
  partitions: Running.RunningPartitions<R>,
  entries: ReadonlyArray<Running.RunningPartition>,
  deletedTopics: DeletedTopics.DeletedTopics
): Effect.Effect<void> =>
  Effect.suspend(() => {
    for (const { partition } of entries) report(partitions.options.context, partition, { _tag: "PartitionLost" })
    return Effect.andThen(
      deletedTopics.lost(entries.map(({ partition }) => partition)),
      Running.closeAll(partitions, entries)
    )
  })

type OutOfRange = Extract<ConsumerEvent, { readonly _tag: "OutOfRange" }>

/** The position is outside the log: continues at the log's start, or restarts when the log is another one. */
const reset = Effect.fnUntraced(function* <R>(partitions: Running.RunningPartitions<R>, event: OutOfRange) {
  const { context, session } = partitions.options
  const entry = Running.find(partitions, event)
  if (entry === undefined || entry.partition.generation !== event.generation || entry.isDraining) return
  // The gap is known already: the lag poller finds it in a partition that is not fetched.
  if (event.position < entry.partition.log.fetchedTo) return
  const start = StartPosition.afterOutOfRange(event)
  if (entry.partition.unreadable !== undefined) {
    // Retention has removed the batch, too.
    entry.partition.holdBatch(undefined)
    yield* entry.partition.syncFetch
  }
  yield* reportGap(context, event, start.gap)
  if (start.position >= event.position) {
    entry.partition.log.skipGap({ from: event.position, to: start.position }, entry.partition.position())
    yield* accept(partitions, ChunkPart.gap(event, start.position, event.logEnd))
    entry.partition.order?.lost(start.position)
    return yield* session.seek(event, start.position)
  }
  // The log was replaced, so positions of the old assignment mean nothing in it.
  yield* Running.close(partitions, entry)
  const { topic, partition, generation, logEnd } = event
  const { position, anchored } = start
  const { fixed: metadata } = entry.partition.commitText
  yield* Running.open(partitions, {
    topic,
    partition,
    generation,
    position,
    anchored,
    committed: -1n,
    metadata,
    logEnd
  })
})
