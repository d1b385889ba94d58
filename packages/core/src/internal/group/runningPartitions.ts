/**
 * Starts and ends the assigned partitions of one consumer: each has a scope, a fiber and its chunks from assignment to end.
 *
 * At most one assignment of a partition handles records: a new one waits until its predecessor's scope has closed.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import type { Broker, ConsumerSession } from "../../Broker.ts"
import { partitionKey, type TopicPartition } from "../../ConsumerRecord.ts"
import * as UserFunction from "../../UserFunction.ts"
import { type ConsumerContext, report } from "../delivery/consumerContext.ts"
import type { ForeignRecords } from "../delivery/foreignRecords.ts"
import * as LogAnnotations from "../delivery/logAnnotations.ts"
import * as Processing from "../delivery/processing.ts"
import * as Transactional from "../delivery/transactional.ts"
import * as Tracing from "../observe/tracing.ts"
import type { Unit } from "../order/unit.ts"
import type { OfOrder } from "../partition/commitText.ts"
import * as OffsetTracker from "../partition/offsetTracker.ts"
import * as Partition from "../partition/partition.ts"
import type { WaterMarks } from "../partition/partitionOptions.ts"
import * as PauseReasons from "../partition/pauseReasons.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as Sources from "../settings/sources.ts"
import { CurrentHandler } from "./currentHandler.ts"
import type { Units } from "./units.ts"

export interface RunningPartitionsOptions<R> {
  readonly context: ConsumerContext<R>
  /** The context for records of a topic: with the names that are derived from it, and in a retry topic with the concurrency limits of its tier. */
  readonly contextOf: (topic: string) => ConsumerContext<R>
  readonly session: ConsumerSession
  /** Takes the records of other groups out of what is handled. */
  readonly foreignRecords: ForeignRecords
  readonly broker: Broker["Service"]
  /** Undefined for a binding that cannot keep the order of each key through retry topics. */
  readonly units: Units | undefined
  /** The reasons that currently pause the whole binding. */
  readonly bindingReasons: (partition: Partition.Partition) => PauseReasons.PauseReasons
  /** Publishes the state of the binding if a partition that came or went has changed it. */
  readonly announce: Effect.Effect<void>
  /** A handler starts that its timeout may interrupt. */
  readonly onGuarded: () => void
}

/** An assigned partition with the fiber that runs it. */
export interface RunningPartition {
  readonly partition: Partition.Partition
  readonly scope: Scope.Closeable
  readonly fiber: Fiber.Fiber<void>
  /** The partition is revoked, or its consumer stops: it is not restarted. */
  isDraining: boolean
  /** The partition is to be released: it does not open again, although another part of its unit may be released before it. */
  isRevoked: boolean
}

/** The partitions of one consumer. */
export interface RunningPartitions<R> {
  readonly options: RunningPartitionsOptions<R>
  readonly services: Context.Context<R>
  /** By partition key. */
  readonly running: Map<string, RunningPartition>
  /** By partition key: the fiber that closes the latest ended assignment, until it is done. */
  readonly closing: Map<string, Fiber.Fiber<unknown>>
  /** Keys of partitions that were revoked or lost. None of them opens again before it is assigned anew, also where it was closed to be opened again. */
  readonly givenUp: Set<string>
}

/** The start of an assignment. */
export interface Start extends TopicPartition {
  readonly generation: number
  readonly position: bigint
  /** Whether a restart would begin at the same record without a commit. Otherwise the position is committed first. */
  readonly anchored: boolean
  /** -1 when the group has committed nothing. */
  readonly committed: bigint
  /** Text that each commit of the partition carries. */
  readonly metadata: string | undefined
  /** The former owner had finished these records behind the committed offset, as its commit says; undefined when it says nothing. */
  readonly finishedAhead?: string | undefined
  /** The former owner's knowledge about order per key. */
  readonly ofOrder?: OfOrder | undefined
  readonly logEnd: bigint
}

export const list = <R>({ running }: RunningPartitions<R>): ReadonlyArray<RunningPartition> =>
  Array.from(running.values())

export const find = <R>({ running }: RunningPartitions<R>, at: TopicPartition): RunningPartition | undefined =>
  running.get(partitionKey(at.topic, at.partition))

/** Opens a partition. It handles records once its predecessor of the same number has closed. */
export const open: <R>(partitions: RunningPartitions<R>, start: Start) => Effect.Effect<void> = Effect.fnUntraced(
  function* <R>(partitions: RunningPartitions<R>, start: Start): Effect.fn.Return<void> {
    const { options, services, running, closing } = partitions
    const { context, session } = options
    const partition = yield* makePartition(partitions, start)
    report(context, partition, { _tag: "PartitionAssigned", position: start.position })
    // The session keeps the pauses of a partition while it is assigned. A restarted partition has none yet.
    yield* session.resume([partition])
    const predecessor = closing.get(partition.key)
    const scope = yield* Scope.make()
    const fiber = yield* (predecessor === undefined ? Effect.void : Effect.asVoid(Fiber.await(predecessor))).pipe(
      Effect.andThen(start.anchored ? Effect.void : context.committer.commit(partition)),
      Effect.andThen(options.units?.needs(partition) ? partition.until(options.units.join(partition)) : Effect.void),
      Effect.andThen(
        Effect.suspend(() => process(options, partition, options.units?.of(partition), restart(partitions, partition)))
      ),
      Effect.catchDefect(context.onDefect),
      Effect.provideService(CurrentHandler, BindingKey.of(context.definition)),
      Effect.provideContext(services),
      Effect.forkIn(scope)
    )
    // One synchronous step, so that no pause and no revocation can fall in between. Nothing is handled before the seek.
    if (partitions.givenUp.has(partition.key)) {
      partition.end()
      return yield* Scope.close(scope, Exit.void)
    }
    running.set(partition.key, { partition, scope, fiber, isDraining: false, isRevoked: false })
    context.metrics.partitionOpened(partition)
    partition.setReasons(options.bindingReasons(partition))
    if (options.units?.needs(partition)) partition.addReason("order")
    yield* partition.syncFetch
    yield* options.announce
    if (!partition.awaitsSeek) yield* session.seek(partition, start.position)
  }
)

/** Opens a partition again that has ended although it is still assigned, where it stood. */
export const reopen = <R>(partitions: RunningPartitions<R>, ended: Partition.Partition): Effect.Effect<void> => {
  const { topic, partition, generation, committed, commitText, order, log } = ended
  const position = ended.position()
  const text = { metadata: commitText.fixed, ofOrder: commitText.ofOrder(position, order) }
  const start = { topic, partition, generation, position, committed, ...text, anchored: true, logEnd: log.end }
  const markIfAhead = Effect.sync(() => {
    const opened = find(partitions, ended)?.partition
    // Some may be finished and not committed, and perhaps no record comes that leads to a commit.
    if (opened !== undefined && opened.position() > opened.committed) partitions.options.context.committer.mark(opened)
  })
  return Effect.andThen(open(partitions, start), markIfAhead)
}

/** Restarts a partition within its assignment. Does nothing when the assignment has ended or is draining: the next owner continues. */
export const restart = Effect.fnUntraced(function* <R>(
  partitions: RunningPartitions<R>,
  partition: Partition.Partition
): Effect.fn.Return<void> {
  const entry = partitions.running.get(partition.key)
  if (entry?.partition !== partition || entry.isDraining || !partition.owned()) return
  yield* close(partitions, entry)
  yield* reopen(partitions, partition)
})

/**
 * Closes the scope of a partition in a fiber of its own. Nothing waits for that fiber without a limit: a handler that resists interruption must not hold up the
 * other partitions, nor the session.
 */
export const close = Effect.fnUntraced(function* <R>(partitions: RunningPartitions<R>, entry: RunningPartition) {
  const { options, running, closing } = partitions
  const { partition } = entry
  partition.end()
  options.context.metrics.partitionClosed(partition)
  if (running.get(partition.key) === entry) running.delete(partition.key)
  const fiber = yield* Effect.forkDetach(Scope.close(entry.scope, Exit.void), { startImmediately: true })
  closing.set(partition.key, fiber)
  fiber.addObserver(() => {
    if (closing.get(partition.key) === fiber) closing.delete(partition.key)
  })
  yield* options.announce
  // The other parts of its unit end with it.
  yield* Effect.forEach(options.units?.leave(partition) ?? [], (part) => restart(partitions, part), { discard: true })
})

/**
 * Closes several partitions. All of them end before the first handler is interrupted: otherwise its concurrency slot would go to a record of a partition that
 * is about to end.
 */
export const closeAll = <R>(
  partitions: RunningPartitions<R>,
  entries: ReadonlyArray<RunningPartition>
): Effect.Effect<void> =>
  Effect.suspend(() => {
    for (const { partition } of entries) {
      partition.end()
      Transactional.forgetFailures(partitions.options.context, partition)
    }
    return Effect.forEach(entries, (entry) => close(partitions, entry), { discard: true })
  })

const process = <R>(
  options: RunningPartitionsOptions<R>,
  partition: Partition.Partition,
  unit: Unit | undefined,
  reopen: Effect.Effect<void>
) => {
  const { session, broker, foreignRecords } = options
  const context = options.contextOf(partition.topic)
  const processing = Processing.processPartition({ context, partition, session, broker, foreignRecords, unit, reopen })
  return LogAnnotations.annotated(
    Tracing.withoutTracing(context, UserFunction.checkSteps(processing)),
    context,
    partition,
    () => partition.current
  )
}

const makePartition = <R>(
  partitions: RunningPartitions<R>,
  { topic, partition, generation, position, committed, metadata, finishedAhead, ofOrder, logEnd }: Start
) => {
  const { context, session, onGuarded, units } = partitions.options
  const { definition } = context
  const isTransactional = definition.handler._tag === "Transactional"
  const tier = Sources.tierOf(definition, topic)
  return Effect.map(
    Partition.make({
      ...{ topic, partition, generation, position, metadata, finishedAhead, ofOrder, logEnd, session, onGuarded },
      tier,
      maxSpan: tier && units?.needs({ topic, partition }) ? spanOfLocks(definition) : undefined,
      counters: context.metrics.countersOf({ topic, partition }),
      // A transaction commits its own offsets, so the committer must find nothing to commit.
      committed: isTransactional ? position : committed,
      highWater: () => bufferShare(definition, topic, list(partitions)),
      onFetchPaused: (paused, reasons) =>
        report(context, paused, { _tag: "FetchPaused", reasons: PauseReasons.list(reasons) }),
      onFetchResumed: (resumed) => report(context, resumed, { _tag: "FetchResumed" })
    }),
    (made) => {
      // A transactional partition learns its position once its producer has fenced the previous one.
      made.awaitsSeek = isTransactional
      return made
    }
  )
}

/** Beside the records that are in work, the lock of each parked key may stand in a retry topic. */
const spanOfLocks = ({ perKey }: BindingDefinition<unknown>): number =>
  OffsetTracker.defaultMaxSpan + 2 * perKey.maxParkedKeys

/** Partitions share the buffer equally. Retry topics together get a quarter of it, because their records mostly wait. */
const bufferShare = (
  definition: BindingDefinition<unknown>,
  topic: string,
  all: ReadonlyArray<RunningPartition>
): WaterMarks => {
  const { maxBufferedRecords, maxBufferedBytes } = definition
  const isTier = Sources.tierOf(definition, topic) !== undefined
  const retrying = all.filter(({ partition }) => partition.tier !== undefined).length
  const others = all.length - retrying
  const portion = retrying === 0 || others === 0 ? 1 : isTier ? 0.25 : 0.75
  const share = portion / Math.max(1, isTier ? retrying : others)
  return { records: maxBufferedRecords * share, bytes: maxBufferedBytes * share }
}
