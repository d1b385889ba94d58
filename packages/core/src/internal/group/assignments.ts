/**
 * The partitions that one consumer holds: each has a scope, a fiber and its chunks, from its assignment to the end of it.
 *
 * Assigned: a fresh scope whose fiber runs the partition's stream. Revoked: drained to a bound, committed, closed by structured interruption, and only then
 * released to its next owner. Lost: interrupted, nothing committed. A partition that stays is not touched.
 */
import { Effect, Exit, Fiber, Option, Scope } from "effect"
import type { AssignedPartition, Broker, ConsumerEvent, ConsumerSession, RecordChunk } from "../../Broker.ts"
import { partitionKey, type TopicPartition } from "../../ConsumerRecord.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import { type ConsumerContext, report } from "../delivery/consumerContext.ts"
import * as LogAnnotations from "../delivery/logAnnotations.ts"
import * as Processing from "../delivery/processing.ts"
import * as Tracing from "../observe/tracing.ts"
import * as Partition from "../partition/partition.ts"
import type { PauseReasons } from "../partition/pauseReasons.ts"
import * as PauseSet from "../partition/pauseReasons.ts"
import * as StartPosition from "../partition/startPosition.ts"
import type { TierTopic } from "../retry/tiers.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import { CurrentHandler } from "./currentHandler.ts"

export interface AssignmentsOptions<R> {
  readonly context: ConsumerContext<R>
  /** What handles the records of a retry topic: with the tier's own bounds. */
  readonly inTier: (tier: TierTopic) => ConsumerContext<R>
  readonly session: ConsumerSession
  readonly broker: Broker["Service"]
  /** Reasons that hold the whole binding, now. */
  readonly bindingReasons: (partition: Partition.Partition) => PauseReasons
  /** Shows the binding's state, in case that a partition that came or went changed it. */
  readonly announce: Effect.Effect<void>
  /** A handler begins that the processing budget may cut off. */
  readonly onGuarded: () => void
  /** A partition's fiber died of a defect of the machinery: the session cannot be trusted any more. */
  readonly onDefect: (defect: unknown) => Effect.Effect<void>
}

export interface Assignments {
  readonly partitions: () => ReadonlyArray<Partition.Partition>
  /** Applies what the session reports. Quick: what takes time goes on in the background. */
  readonly react: (event: ConsumerEvent) => Effect.Effect<void>
  /** Stops, drains and commits every partition within the bound. */
  readonly drain: (boundMillis: number) => Effect.Effect<void>
}

/** An assigned partition and what runs it. */
interface Running {
  readonly partition: Partition.Partition
  readonly scope: Scope.Closeable
  readonly fiber: Fiber.Fiber<void>
  /** Revoked, or its consumer stops: it does not begin anew. */
  isDraining: boolean
}

type EventOf<Tag> = Extract<ConsumerEvent, { readonly _tag: Tag }>

/** Closing the scope ends every assignment: interrupted, nothing committed. */
export const make = Effect.fnUntraced(function* <R>(
  options: AssignmentsOptions<R>
): Effect.fn.Return<Assignments, never, R | Scope.Scope> {
  const { context, session } = options
  const { definition } = context
  const scope = yield* Effect.scope
  const services = yield* Effect.context<R>()
  const running = new Map<string, Running>()
  const ending = new Map<string, Fiber.Fiber<unknown>>()
  const entriesOf = (partitions: ReadonlyArray<TopicPartition>) =>
    partitions.flatMap((at) => running.get(partitionKey(at.topic, at.partition)) ?? [])

  /** Opens a partition; it starts to handle when its predecessor of the same number is gone. */
  const open = Effect.fnUntraced(function* (
    at: TopicPartition,
    generation: number,
    { position, anchored }: Pick<StartPosition.StartPosition, "position" | "anchored">,
    committed: bigint,
    logEnd: bigint
  ): Effect.fn.Return<void> {
    const highWater = () => shareOf(definition, at.topic, entries())
    const partition = yield* makePartition(options, {
      ...{ topic: at.topic, partition: at.partition, generation, position, committed, logEnd, highWater }
    })
    report(context, partition, { _tag: "PartitionAssigned", position })
    // The session keeps the pauses of a partition for as long as it is assigned; one that begins anew has none yet.
    yield* session.resume([partition])
    const predecessor = ending.get(partition.key)
    const partitionScope = yield* Scope.make()
    const fiber = yield* (predecessor === undefined ? Effect.void : Effect.asVoid(Fiber.await(predecessor))).pipe(
      Effect.andThen(anchored ? Effect.void : context.committer.commit(partition)),
      Effect.andThen(process(options, partition, reopen(partition))),
      Effect.catchDefect(options.onDefect),
      Effect.provideService(CurrentHandler, BindingKey.of(definition)),
      Effect.provideContext(services),
      Effect.forkIn(partitionScope)
    )
    // In one step, so that no pause can fall in between. Nothing is handled before the seek.
    running.set(partition.key, { partition, scope: partitionScope, fiber, isDraining: false })
    context.metrics.partitionOpened(partition)
    partition.setReasons(options.bindingReasons(partition))
    yield* partition.syncFetch
    yield* options.announce
    if (!partition.awaitsSeek) yield* session.seek(partition, position)
  })

  /** Begins a partition anew under the same assignment, unless that is over or about to be: the next owner goes on. */
  const reopen = Effect.fnUntraced(function* (partition: Partition.Partition): Effect.fn.Return<void> {
    const entry = running.get(partition.key)
    if (entry?.partition !== partition || entry.isDraining || !partition.owned()) return
    yield* close(entry)
    const start = { position: partition.position(), anchored: true }
    yield* open(partition, partition.generation, start, partition.committed, partition.logEnd)
  })

  /**
   * Closes a partition's scope in a fiber that nothing waits for without a bound: a handler that cannot be interrupted must hold up neither the
   * other partitions nor the session.
   */
  const close = Effect.fnUntraced(function* (entry: Running) {
    const { partition } = entry
    partition.end()
    context.metrics.partitionClosed(partition)
    if (running.get(partition.key) === entry) running.delete(partition.key)
    const closing = yield* Effect.forkDetach(Scope.close(entry.scope, Exit.void), { startImmediately: true })
    ending.set(partition.key, closing)
    closing.addObserver(() => {
      if (ending.get(partition.key) === closing) ending.delete(partition.key)
    })
    yield* options.announce
  })

  /** All are over before the first handler is cut off: the place that it leaves must not go to a record of the next partition. */
  const closeAll = (entries: ReadonlyArray<Running>): Effect.Effect<void> =>
    Effect.suspend(() => {
      for (const { partition } of entries) partition.end()
      return Effect.forEach(entries, close, { discard: true })
    })

  const revoke = Effect.fnUntraced(function* (event: EventOf<"Revoked">) {
    const entries = entriesOf(event.partitions)
    for (const entry of entries) {
      report(context, entry.partition, { _tag: "PartitionRevoked" })
      giveUp(entry)
    }
    const release = Effect.gen(function* () {
      yield* Effect.forEach(entries, (entry) => drain(context, entry, drainBoundMillis(definition)), {
        concurrency: "unbounded"
      })
      // Lost meanwhile: another owner may have it, and there is nothing to release.
      const ours = entries.filter(({ partition }) => partition.owned())
      for (const { partition } of ours) {
        report(context, partition, { _tag: "PartitionReleased", committed: partition.committed })
      }
      yield* closeAll(ours)
      yield* event.release
    })
    yield* Effect.forkIn(Effect.uninterruptible(release), scope)
  })

  const assign = (generation: number, assigned: AssignedPartition) => {
    // A record that went to a retry topic before the group read it must not be missed.
    const isRetry = definition.tiers.ofTopic(assigned.topic) !== undefined
    const start = StartPosition.afterAssignment(assigned, isRetry ? "earliest" : definition.autoOffsetReset)
    return Effect.andThen(
      open(assigned, generation, start, assigned.committed ?? -1n, assigned.logEnd),
      reportGap(context, { ...assigned, generation }, start.gap)
    )
  }

  const resumeFrom = Effect.fnUntraced(function* (event: EventOf<"OutOfRange">) {
    const entry = running.get(partitionKey(event.topic, event.partition))
    if (entry === undefined || entry.partition.generation !== event.generation || entry.isDraining) return
    const start = StartPosition.afterOutOfRange(event)
    yield* reportGap(context, event, start.gap)
    if (start.position >= event.position) {
      yield* accept(gapChunk(event, start.position))
      return yield* session.seek(event, start.position)
    }
    // The log is another one: positions of the old assignment mean nothing in it.
    yield* close(entry)
    yield* open(event, event.generation, start, -1n, event.logEnd)
  })

  const accept = (chunk: RecordChunk): Effect.Effect<void> => {
    const entry = running.get(partitionKey(chunk.topic, chunk.partition))
    if (entry === undefined || entry.partition.generation !== chunk.generation) return Effect.void
    return entry.partition.offer(chunk) ? entry.partition.syncFetch : Effect.void
  }

  const react = (event: ConsumerEvent): Effect.Effect<void> => {
    switch (event._tag) {
      case "Fetched":
        return accept(event.chunk)
      case "Assigned":
        return Effect.forEach(event.partitions, (assigned) => assign(event.generation, assigned), { discard: true })
      case "Revoked":
        return revoke(event)
      case "Lost":
        return lose(context, entriesOf(event.partitions), closeAll)
      case "OutOfRange":
        return resumeFrom(event)
    }
  }

  const entries = () => Array.from(running.values())
  yield* Effect.addFinalizer(() =>
    Effect.flatMap(closeAll(entries()), () =>
      awaitAtMost(Effect.forEach(Array.from(ending.values()), Fiber.await, { discard: true }), interruptBoundMillis)
    )
  )

  return {
    partitions: () => entries().map((entry) => entry.partition),
    react,
    drain: (boundMillis) =>
      Effect.suspend(() =>
        Effect.forEach(entries(), (entry) => drain(context, entry, boundMillis), {
          concurrency: "unbounded",
          discard: true
        })
      )
  }
})

/** Partitions share the buffer; where there are retry topics, they get a quarter of it, since they mostly wait. */
const shareOf = (
  { tiers, maxBufferedRecords, maxBufferedBytes }: BindingDefinition<unknown>,
  topic: string,
  all: ReadonlyArray<Running>
): Partition.WaterMarks => {
  const isTier = tiers.ofTopic(topic) !== undefined
  const retrying = all.filter(({ partition }) => partition.tier !== undefined).length
  const others = all.length - retrying
  const portion = retrying === 0 || others === 0 ? 1 : isTier ? 0.25 : 0.75
  const share = portion / Math.max(1, isTier ? retrying : others)
  return { records: maxBufferedRecords * share, bytes: maxBufferedBytes * share }
}

const process = <R>(options: AssignmentsOptions<R>, partition: Partition.Partition, reopen: Effect.Effect<void>) => {
  const { session, broker } = options
  const context = partition.tier === undefined ? options.context : options.inTier(partition.tier)
  const processing = Processing.processPartition({ context, partition, session, broker, reopen })
  return LogAnnotations.annotated(
    Tracing.withoutTracing(context, processing),
    context,
    partition,
    () => partition.current
  )
}

/** A gap as a chunk without records: the position passes it when what was fetched before it is finished. */
const gapChunk = (
  { topic, partition, generation, logEnd }: EventOf<"OutOfRange">,
  nextOffset: bigint
): RecordChunk => ({ topic, partition, generation, records: [], nextOffset, highWatermark: logEnd, bytes: 0 })

const makePartition = (
  { context, session, onGuarded }: AssignmentsOptions<unknown>,
  at: Pick<
    Partition.PartitionOptions,
    "topic" | "partition" | "generation" | "position" | "committed" | "logEnd" | "highWater"
  >
) =>
  Partition.make({
    ...at,
    tier: context.definition.tiers.ofTopic(at.topic),
    counters: context.metrics.countersOf(at),
    // Transactions commit by themselves: the committer must find nothing to do.
    committed: context.definition.handler._tag === "Transactional" ? at.position : at.committed,
    session,
    onGuarded,
    onFetchPaused: (paused) => report(context, paused, { _tag: "FetchPaused", reasons: PauseSet.list(paused.reasons) }),
    onFetchResumed: (resumed) => report(context, resumed, { _tag: "FetchResumed" })
  }).pipe(
    Effect.tap((partition) =>
      Effect.sync(() => {
        // It is told its position when its producer has fenced the one before it.
        partition.awaitsSeek = context.definition.handler._tag === "Transactional"
      })
    )
  )

/** Others may own them already. */
const lose = (
  context: ConsumerContext<unknown>,
  lost: ReadonlyArray<Running>,
  closeAll: (entries: ReadonlyArray<Running>) => Effect.Effect<void>
) =>
  Effect.suspend(() => {
    for (const { partition } of lost) report(context, partition, { _tag: "PartitionLost" })
    return closeAll(lost)
  })

/** No record starts any more, and nobody begins the partition anew. */
const giveUp = (entry: Running): void => {
  entry.isDraining = true
  entry.partition.stop()
}

/** Gives a partition up, waits for what runs, commits what is finished. */
const drain = Effect.fnUntraced(function* (context: ConsumerContext<unknown>, entry: Running, boundMillis: number) {
  const { partition, fiber } = entry
  giveUp(entry)
  context.committer.release()
  const ended = yield* awaitAtMost(Fiber.await(fiber), boundMillis)
  if (Option.isNone(ended)) {
    report(context, partition, { _tag: "DrainTimedOut", unfinished: partition.tracker.inFlight() })
  }
  yield* awaitAtMost(context.committer.commitLast(partition), finalCommitMillis)
})

/** A final commit is awaited, but a broker that does not answer must not hold up a stop for ever. */
const finalCommitMillis = 5_000

/** How long interrupted handlers may take for their clean-up before the session closes without them. */
const interruptBoundMillis = 5_000

/** Giving up a partition must end before the group takes it away. */
const drainBoundMillis = (definition: BindingDefinition<unknown>): number =>
  Math.max(0, Math.min(definition.shutdownTimeoutMillis, definition.rebalanceTimeoutMillis - finalCommitMillis - 1_000))

const reportGap = (
  context: ConsumerContext<unknown>,
  at: TopicPartition & { readonly generation: number },
  gap: StartPosition.Gap | undefined
) =>
  Effect.sync(() => {
    if (gap !== undefined) report(context, at, { _tag: "RecordsGone", ...gap })
  })
