/**
 * The stream of one assigned partition, from its first chunk to the end of the assignment. The binding's handler and `processingOrder` choose the scheduler.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Broker, ConsumerSession, RecordChunk } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as SourceReader from "../order/sourceReader.ts"
import type { Unit } from "../order/unit.ts"
import * as ChunkPart from "../partition/chunkPart.ts"
import type { Partition } from "../partition/partition.ts"
import * as ReplayHeaders from "../record/replayHeaders.ts"
import type { Handler } from "../settings/bindingDefinition.ts"
import * as Batches from "./batches.ts"
import { type ConsumerContext, report } from "./consumerContext.ts"
import * as Followers from "./drain/followers.ts"
import * as DueTimes from "./dueTimes.ts"
import type { ForeignRecords } from "./foreignRecords.ts"
import * as Lanes from "./lanes.ts"
import { observed } from "./observedHandler.ts"
import * as OwnDueTimes from "./ownDueTimes.ts"
import * as PendingCopies from "./pendingCopies.ts"
import { whenPrepared } from "./preparation.ts"
import * as Sequential from "./sequential.ts"
import * as Transactional from "./transactional.ts"

export interface Processing<R> {
  readonly context: ConsumerContext<R>
  readonly partition: Partition
  readonly session: Pick<ConsumerSession, "seek" | "groupMetadata">
  readonly broker: Broker["Service"]
  readonly foreignRecords: ForeignRecords
  /** The unit that the partition is a part of; undefined where no order is kept through retry topics. */
  readonly unit: Unit | undefined
  /** Ends this partition's run, and begins another one under the same assignment. */
  readonly reopen: Effect.Effect<void>
}

type HandlerOf<R, Tag> = Extract<Handler<R>, { readonly _tag: Tag }>

/** Handles fetched chunks until the partition stops. */
export const processPartition = <R>(processing: Processing<R>): Effect.Effect<void, never, R> => {
  const { context, partition } = processing
  const { processingOrder } = context.definition
  const handler = observed(context)
  switch (handler._tag) {
    case "Transactional":
      return inTransactions(processing, handler)
    case "PerBatch":
      return inOrder(processing, (pendingCopies, chunk) =>
        Batches.handleChunk({ context, handler, partition, pendingCopies }, chunk)
      )
    case "PerRecord": {
      const records =
        processingOrder === "partition"
          ? inOrder(processing, (pendingCopies, chunk) =>
              Sequential.handleChunk({ context, handler, partition, pendingCopies }, chunk)
            )
          : inLanes(processing, handler)
      return processing.unit?.options.main === partition
        ? withFollowers(processing, handler, processing.unit, records)
        : records
    }
  }
}

type HandleChunk<R> = (chunk: RecordChunk) => Effect.Effect<void, never, R>

/** Hands the group's own records over when they can be decoded, and those of a retry topic when they are due. */
const whenReady = <R>(processing: Processing<R>, handle: HandleChunk<R>): HandleChunk<R> => {
  const { context, partition } = processing
  const own = withoutForeign(processing, whenPrepared(context, partition, handle))
  const { tier } = partition
  return tier === undefined ? own : (chunk) => DueTimes.eachDue(context, partition, tier.longestMillis, chunk, own)
}

const withoutForeign =
  <R>({ partition, foreignRecords }: Processing<R>, handle: HandleChunk<R>): HandleChunk<R> =>
  (chunk) => {
    const own = foreignRecords.without(partition, chunk)
    if (own === chunk) return handle(chunk)
    const hasRoom = partition.release(chunk.records.length - own.records.length, chunk.bytes - own.bytes)
    return hasRoom ? Effect.andThen(partition.syncFetch, handle(own)) : handle(own)
  }

const eachChunk = <R>(processing: Processing<R>, handle: HandleChunk<R>): Effect.Effect<void, never, R> => {
  const { context, partition, foreignRecords } = processing
  const { due } = partition
  if (due !== undefined) {
    const withoutForeign = (chunk: RecordChunk) => foreignRecords.without(partition, chunk)
    const handleDue = whenPrepared(context, partition, handle)
    return OwnDueTimes.run({ context, partition, due, withoutForeign, handle: handleDue })
  }
  const handleReady = whenReady(processing, handle)
  const takenIn = (chunk: RecordChunk) =>
    Effect.sync(() => {
      if (partition.stopping) return
      partition.tracker.endOfChunk(chunk.nextOffset)
      context.committer.mark(partition)
    })
  return Stream.runForEach(partition.chunks, (chunk) => Effect.andThen(handleReady(chunk), takenIn(chunk)))
}

/** Handles whole chunks, one after the other. */
const inOrder = <R>(
  processing: Processing<R>,
  handle: (pendingCopies: PendingCopies.PendingCopies, chunk: RecordChunk) => Effect.Effect<void, never, R>
): Effect.Effect<void, never, R> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { context, partition } = processing
      const pendingCopies = yield* PendingCopies.make(context, partition)
      yield* eachChunk(processing, (chunk) =>
        Effect.andThen(
          handle(pendingCopies, chunk),
          Effect.suspend(() => letGo(partition, chunk))
        )
      )
      yield* pendingCopies.idle
    })
  )

/** Releases the bytes of a chunk: there may be room to fetch again. */
const letGo = (partition: Partition, chunk: RecordChunk): Effect.Effect<void> =>
  partition.release(chunk.records.length, chunk.bytes) ? partition.syncFetch : Effect.void

const inLanes = <R>(processing: Processing<R>, handler: HandlerOf<R, "PerRecord">): Effect.Effect<void, never, R> =>
  Effect.scoped(
    Effect.gen(function* () {
      const lanes = yield* Lanes.make(processing.context, handler, processing.partition)
      yield* eachChunk(processing, lanes.take)
      yield* lanes.idle
    })
  )

/** The main topic's part of a unit also handles what follows its parked keys. */
const withFollowers = <R>(
  { context, broker }: Processing<R>,
  handler: HandlerOf<R, "PerRecord">,
  unit: Unit,
  records: Effect.Effect<void, never, R>
): Effect.Effect<void, never, R> =>
  Effect.scoped(
    Effect.gen(function* () {
      const reading = SourceReader.run(unit, {
        broker,
        isOurs: (record) => ReplayHeaders.foreign(record, context.replayReader) === undefined,
        onRead: (count) => {
          unit.options.counts.reread += count
        },
        onGone: (gone) => report(context, unit.options.main, recordsGone(gone))
      })
      yield* Effect.forkScoped(Effect.catchDefect(Effect.scoped(reading), context.onDefect))
      const followers = yield* Followers.make(context, handler, unit)
      yield* records
      yield* followers.idle
    })
  )

/** Keys that an event names. */
const mostNamed = 100

const recordsGone = ({ from, to, records, cause, entries }: SourceReader.Gone) => {
  const behind = entries.slice(0, mostNamed).map(({ keyBytes: key, offset }) => ({ key, offset }))
  const gone = records === undefined ? undefined : BigInt(records)
  return { _tag: "RecordsGone", from, to, gone, cause, behind, keys: entries.length } as const
}

/** The former owner committed this after the partition was assigned. No record may come behind it for long, so the figures have to know it now. */
const committedMeanwhile = (partition: Partition, offset: bigint): void => {
  partition.committed = offset
  partition.tracker.endOfChunk(offset)
}

/** After the machinery of a transaction has failed, the partition restarts with a new producer: only that one can tell which transaction was committed. */
const inTransactions = <R>(processing: Processing<R>, handler: HandlerOf<R, "Transactional">) =>
  Effect.gen(function* () {
    const { context, partition, session, broker, reopen } = processing
    const producer = yield* Transactional.acquire(broker, context, partition)
    if (producer === undefined) return
    const offset = yield* Transactional.committedOffset(broker, context, partition)
    const position = partition.position()
    const isKnown = offset !== undefined && offset >= 0n
    // Retention has passed the committed offset, as was reported with the assignment.
    const isPassed = isKnown && offset < position
    if (isPassed) partition.committed = offset
    else if (isKnown) committedMeanwhile(partition, offset)
    // A fiber that has just yielded does not yield again between two steps: no chunk comes in between.
    yield* Effect.yieldNow
    yield* Effect.suspend(() => {
      partition.awaitsSeek = false
      partition.log.fetchedTo = isKnown && !isPassed ? offset : position
      return session.seek(partition, partition.log.fetchedTo)
    })
    const fork = Effect.runForkWith(yield* Effect.context())
    const onBroken = (error: BrokerError) => {
      // Nobody knows what the transaction did, so a copy in it must not be sent again.
      partition.endCopies()
      if (partition.stopping) return
      context.failures.transactions.failed(partition.key, error)
      report(context, partition, { _tag: "TransactionFailed", error })
      partition.stop()
      fork(Effect.catchDefect(Effect.delay(reopen, reopenMillis(context.definition, error)), context.onDefect))
    }
    const handle = whenReady(processing, (chunk) => {
      const receivedMillis = context.clock.currentTimeMillisUnsafe()
      const work = { context, handler, partition, session, producer, receivedMillis, onBroken }
      return Effect.andThen(
        Transactional.handleChunk(work, chunk),
        // Not the whole chunk: the records of other groups are released already.
        Effect.suspend(() => letGo(partition, chunk))
      )
    })
    // No record may come that leads to a commit: the next owner would miss the same records again.
    if (isPassed) yield* handle(ChunkPart.gap(partition, position, partition.log.end))
    yield* Stream.runForEach(partition.chunks, handle)
  }).pipe(Effect.scoped)

/** Failures after which most likely another member has the partition. */
const ofFormerOwners = new Set<BrokerError["_tag"]>([
  "ProducerFenced",
  "StaleAssignment",
  "InstanceFenced",
  "RebalanceInProgress"
])

/**
 * The wait before a partition restarts after a failed transaction. Where the producer or the member was fenced, most likely another member has the partition, and a heartbeat
 * is going to say so: a restart before that would fence the owner.
 */
const reopenMillis = (
  { heartbeatIntervalMillis }: ConsumerContext<unknown>["definition"],
  error: BrokerError
): number => 500 + (ofFormerOwners.has(error._tag) ? heartbeatIntervalMillis : 0)
