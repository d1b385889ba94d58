/**
 * One consumer of a binding: a member of the group, and the loop that gives every assigned partition a scope, a fiber and its chunks.
 *
 * Assigned: a fresh scope whose fiber runs the partition's stream. Revoked: drained to a bound, committed, closed by structured interruption, and
 * only then released to its next owner. Lost: interrupted, nothing committed. A partition that stays is not touched.
 */
import { Clock, Effect, Exit, Fiber, Option, Queue, Scope, Stream } from "effect"
import type { AssignedPartition, Broker, ConsumerEvent, ConsumerSession, RecordChunk } from "../Broker.ts"
import type { BrokerError } from "../BrokerError.ts"
import { partitionKey, type TopicPartition } from "../ConsumerRecord.ts"
import * as Batches from "./batches.ts"
import { bounded } from "./bounded.ts"
import * as Committer from "./committer.ts"
import { CurrentHandler } from "./currentHandler.ts"
import type { DeadLetters } from "./deadLetters.ts"
import { type BindingDefinition, budgetMillis } from "./definition.ts"
import type { EventHub } from "./eventHub.ts"
import { type Handling, report } from "./handling.ts"
import * as Lanes from "./lanes.ts"
import * as Partition from "./partition.ts"
import type { PauseReason, PauseReasons } from "./pauseReasons.ts"
import * as PauseSet from "./pauseReasons.ts"
import * as Sequential from "./sequential.ts"
import * as StartPosition from "./startPosition.ts"

export interface ConsumerOptions<R> {
  readonly definition: BindingDefinition<R>
  readonly index: number
  readonly hostname: string
  readonly broker: Broker["Service"]
  readonly hub: EventHub
  readonly deadLetters: DeadLetters
  /** Reasons that hold the whole binding, now. */
  readonly bindingReasons: () => PauseReasons
  /** A record halted its partition. */
  readonly onHalted: Effect.Effect<void>
  readonly pauseBinding: Effect.Effect<void>
  readonly withPermit: <A, E, R2>(effect: Effect.Effect<A, E, R2>) => Effect.Effect<A, E, R2>
}

/** An assigned partition and what runs it. */
interface Running {
  readonly partition: Partition.Partition
  readonly scope: Scope.Closeable
  readonly fiber: Fiber.Fiber<void>
}

export interface Consumer {
  readonly partitions: () => ReadonlyArray<Partition.Partition>
  /** Adds or removes a reason on every partition of this consumer. */
  readonly hold: (reason: PauseReason) => Effect.Effect<void>
  readonly letGo: (reason: PauseReason) => Effect.Effect<void>
  /** Commits what is finished, of all partitions. */
  readonly flush: Effect.Effect<void>
  /** Stops, drains and commits every partition within the bound. The session stays open. */
  readonly drain: (boundMillis: number) => Effect.Effect<void>
  /** The loop: ends only by failing. */
  readonly run: Effect.Effect<never, BrokerError>
}

export const make = Effect.fnUntraced(function* <R>(
  options: ConsumerOptions<R>
): Effect.fn.Return<Consumer, BrokerError, R | Scope.Scope> {
  const { definition, hub } = options
  const scope = yield* Effect.scope
  const context = yield* Effect.context<R>()
  const session = yield* openSession(options)
  const running = new Map<string, Running>()
  const ending = new Map<string, Fiber.Fiber<unknown>>()
  const handling = yield* makeHandling(options, session)

  const highWater = () => {
    const shares = Math.max(1, running.size)
    return { records: definition.maxBufferedRecords / shares, bytes: definition.maxBufferedBytes / shares }
  }

  /** Opens a partition; it starts to handle when its predecessor of the same number is gone. */
  const open = Effect.fnUntraced(function* (
    at: TopicPartition,
    generation: number,
    position: bigint,
    committed: bigint
  ) {
    const partition = yield* Partition.make({
      topic: at.topic,
      partition: at.partition,
      generation,
      position,
      committed,
      reasons: options.bindingReasons(),
      highWater,
      session,
      onFetchPaused: (paused) =>
        hub.emit({ _tag: "FetchPaused", ...ofPartition(options, paused), reasons: PauseSet.list(paused.reasons) }),
      onFetchResumed: (resumed) => hub.emit({ _tag: "FetchResumed", ...ofPartition(options, resumed) })
    })
    report(handling, partition, { _tag: "PartitionAssigned", position })
    const predecessor = ending.get(partition.key)
    const partitionScope = yield* Scope.make()
    const fiber = yield* (predecessor === undefined ? Effect.void : Effect.asVoid(Fiber.await(predecessor))).pipe(
      Effect.andThen(handlePartition(handling, partition)),
      Effect.provideService(CurrentHandler, definition.name),
      Effect.provideContext(context),
      Effect.forkIn(partitionScope)
    )
    running.set(partition.key, { partition, scope: partitionScope, fiber })
    yield* partition.syncFetch
    yield* session.seek(partition, position)
  })

  /**
   * Closes a partition's scope in a fiber that nothing waits for without a bound: a handler that cannot be interrupted must hold up neither the
   * other partitions nor the session.
   */
  const close = Effect.fnUntraced(function* (entry: Running) {
    const { partition } = entry
    partition.end()
    if (running.get(partition.key) === entry) running.delete(partition.key)
    const closing = yield* Effect.forkDetach(Scope.close(entry.scope, Exit.void), { startImmediately: true })
    ending.set(partition.key, closing)
    closing.addObserver(() => {
      if (ending.get(partition.key) === closing) ending.delete(partition.key)
    })
  })

  const drain = Effect.fnUntraced(function* (entry: Running, boundMillis: number) {
    const { partition, fiber } = entry
    partition.stop()
    const ended = yield* bounded(Fiber.await(fiber), boundMillis)
    if (Option.isNone(ended)) {
      report(handling, partition, { _tag: "DrainTimedOut", unfinished: partition.tracker.inFlight() })
    }
    yield* bounded(handling.committer.commit(partition), finalCommitMillis)
  })

  const revoke = Effect.fnUntraced(function* (event: Extract<ConsumerEvent, { readonly _tag: "Revoked" }>) {
    const entries = event.partitions.flatMap((at) => running.get(partitionKey(at.topic, at.partition)) ?? [])
    for (const { partition } of entries) {
      report(handling, partition, { _tag: "PartitionRevoked" })
      partition.stop()
    }
    const giveUp = Effect.gen(function* () {
      yield* Effect.forEach(entries, (entry) => drain(entry, drainBoundMillis(definition)), {
        concurrency: "unbounded"
      })
      for (const entry of entries) {
        // Lost meanwhile: another owner may have it, and there is nothing to release.
        if (!entry.partition.owned()) continue
        report(handling, entry.partition, { _tag: "PartitionReleased", committed: entry.partition.committed })
        yield* close(entry)
      }
      yield* event.release
    })
    yield* Effect.forkIn(Effect.uninterruptible(giveUp), scope)
  })

  const assign = (generation: number, assigned: AssignedPartition) => {
    const start = StartPosition.afterAssignment(assigned, definition.autoOffsetReset)
    return Effect.andThen(
      open(assigned, generation, start.position, assigned.committed ?? -1n),
      reportGap(options, { ...assigned, generation }, start.gap)
    )
  }

  const resumeFrom = Effect.fnUntraced(function* (event: Extract<ConsumerEvent, { readonly _tag: "OutOfRange" }>) {
    const entry = running.get(partitionKey(event.topic, event.partition))
    if (entry === undefined || entry.partition.generation !== event.generation) return
    const start = StartPosition.afterOutOfRange(event)
    yield* reportGap(options, event, start.gap)
    if (start.position >= event.position) return yield* session.seek(event, start.position)
    // The log is another one: positions of the old assignment mean nothing in it.
    yield* close(entry)
    yield* open(event, event.generation, start.position, -1n)
  })

  const accept = (chunk: RecordChunk): Effect.Effect<void> => {
    const entry = running.get(partitionKey(chunk.topic, chunk.partition))
    if (entry === undefined || entry.partition.generation !== chunk.generation) return Effect.void
    return entry.partition.offer(chunk) ? entry.partition.syncFetch : Effect.void
  }

  const lose = (partitions: ReadonlyArray<TopicPartition>) =>
    Effect.forEach(
      partitions.flatMap((at) => running.get(partitionKey(at.topic, at.partition)) ?? []),
      (entry) => {
        report(handling, entry.partition, { _tag: "PartitionLost" })
        return close(entry)
      },
      { discard: true }
    )

  const react = (event: ConsumerEvent): Effect.Effect<void> => {
    switch (event._tag) {
      case "Fetched":
        return accept(event.chunk)
      case "Assigned":
        return Effect.forEach(event.partitions, (assigned) => assign(event.generation, assigned), { discard: true })
      case "Revoked":
        return revoke(event)
      case "Lost":
        return lose(event.partitions)
      case "OutOfRange":
        return resumeFrom(event)
    }
  }

  const entries = () => Array.from(running.values())
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      yield* Effect.forEach(entries(), close, { discard: true })
      yield* bounded(Effect.forEach(Array.from(ending.values()), Fiber.await, { discard: true }), interruptBoundMillis)
      hub.emit({ _tag: "SessionClosed", binding: definition.name, consumer: options.index })
    })
  )
  yield* Effect.forkScoped(watchBudget(handling, () => entries().map((entry) => entry.partition)))
  hub.emit({ _tag: "SessionStarted", binding: definition.name, consumer: options.index })

  const onAll = (change: (partition: Partition.Partition) => void) =>
    Effect.suspend(() => {
      const all = entries()
      for (const { partition } of all) change(partition)
      return Effect.forEach(all, ({ partition }) => partition.syncFetch, { discard: true })
    })

  return {
    partitions: () => entries().map((entry) => entry.partition),
    hold: (reason) => onAll((partition) => partition.addReason(reason)),
    letGo: (reason) => onAll((partition) => partition.removeReason(reason)),
    flush: Effect.suspend(() =>
      Effect.forEach(entries(), ({ partition }) => handling.committer.commit(partition), {
        concurrency: "unbounded",
        discard: true
      })
    ),
    drain: (boundMillis) =>
      Effect.suspend(() =>
        Effect.forEach(entries(), (entry) => drain(entry, boundMillis), { concurrency: "unbounded", discard: true })
      ),
    run: Effect.forever(
      Effect.flatMap(Queue.takeAll(session.events), (events) => Effect.forEach(events, react, { discard: true }))
    )
  }
})

/** A final commit is awaited, but a broker that does not answer must not hold up a stop for ever. */
const finalCommitMillis = 5_000

/** How long interrupted handlers may take for their clean-up before the session closes without them. */
const interruptBoundMillis = 5_000

/** Giving up a partition must end before the group takes it away. */
const drainBoundMillis = (definition: BindingDefinition<unknown>): number =>
  Math.max(0, Math.min(definition.shutdownTimeoutMillis, definition.rebalanceTimeoutMillis - finalCommitMillis - 1_000))

const openSession = <R>(options: ConsumerOptions<R>) => {
  const { definition } = options
  return options.broker.consumer({
    groupId: definition.groupId,
    topics: [definition.topic],
    sessionTimeout: definition.sessionTimeoutMillis,
    heartbeatInterval: definition.heartbeatIntervalMillis,
    rebalanceTimeout: definition.rebalanceTimeoutMillis,
    maxWait: definition.maxWaitMillis,
    maxBytesPerPartition: definition.maxBytesPerPartition,
    isolation: definition.isolation,
    ...(definition.membership === "static"
      ? { groupInstanceId: `${definition.name}-${options.hostname}-${options.index}` }
      : {})
  })
}

const makeHandling = Effect.fnUntraced(function* <R>(options: ConsumerOptions<R>, session: ConsumerSession) {
  const { definition, hub, index } = options
  const clock = yield* Clock.Clock
  const committer = yield* Committer.make(session, {
    commitIntervalMillis: definition.commitIntervalMillis,
    onCommitted: (partition) => {
      if (!hub.active) return
      hub.emit({ _tag: "Committed", ...ofPartition(options, partition), offset: partition.committed })
    },
    onFailed: (error, attempt) =>
      hub.emit({ _tag: "CommitFailed", binding: definition.name, consumer: index, error, attempt })
  })
  return {
    definition,
    receiver: { bindingName: definition.name, consumerInstance: `${options.hostname}-${index}` },
    consumer: index,
    hub,
    clock,
    committer,
    deadLetters: options.deadLetters,
    onHalted: options.onHalted,
    pauseBinding: options.pauseBinding,
    withPermit: options.withPermit
  } satisfies Handling<R>
})

const ofPartition = (
  options: ConsumerOptions<unknown>,
  partition: TopicPartition & { readonly generation: number }
) => ({
  binding: options.definition.name,
  consumer: options.index,
  topic: partition.topic,
  partition: partition.partition,
  generation: partition.generation
})

const reportGap = (
  options: ConsumerOptions<unknown>,
  at: TopicPartition & { readonly generation: number },
  gap: StartPosition.Gap | undefined
) =>
  Effect.sync(() => {
    if (gap !== undefined) options.hub.emit({ _tag: "RecordsGone", ...ofPartition(options, at), ...gap })
  })

/** The partition's stream, from the first chunk to the end of the assignment. */
const handlePartition = Effect.fnUntraced(function* <R>(handling: Handling<R>, partition: Partition.Partition) {
  const { handler } = handling.definition
  const takenIn = (chunk: RecordChunk) =>
    Effect.suspend(() => {
      if (!partition.stopping) {
        partition.tracker.endOfChunk(chunk.nextOffset)
        handling.committer.mark(partition)
      }
      return partition.release(chunk) ? partition.syncFetch : Effect.void
    })
  const each = (handle: (chunk: RecordChunk) => Effect.Effect<void, never, R>) =>
    Stream.runForEach(partition.chunks, (chunk) => Effect.andThen(handle(chunk), takenIn(chunk)))
  if (handler._tag === "PerBatch")
    return yield* each((chunk) => Batches.handleChunk(handling, handler, partition, chunk))
  if (handling.definition.processingOrder === "partition") {
    return yield* each((chunk) => Sequential.handleChunk(handling, handler, partition, chunk))
  }
  yield* Effect.scoped(
    Effect.gen(function* () {
      const lanes = yield* Lanes.make(handling, handler, partition)
      yield* each(lanes.take)
      yield* lanes.idle
    })
  )
})

/**
 * Cuts off handlers that use up the processing budget. It sleeps until the earliest moment at which one could: nothing is armed per record.
 */
const watchBudget = (handling: Handling<unknown>, partitions: () => ReadonlyArray<Partition.Partition>) => {
  const budget = budgetMillis(handling.definition)
  return Effect.forever(
    Effect.suspend(() => {
      const now = handling.clock.currentTimeMillisUnsafe()
      let earliest = now + budget
      for (const partition of partitions()) {
        for (const guarded of partition.guarded) {
          const deadline = guarded.startedMillis + budget
          if (deadline <= now) {
            report(handling, partition, { _tag: "ProcessingBudgetReached" })
            guarded.interrupt()
          } else earliest = Math.min(earliest, deadline)
        }
      }
      return Effect.sleep(earliest - now)
    })
  )
}
