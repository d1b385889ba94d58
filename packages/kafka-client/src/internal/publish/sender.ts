/**
 * Sends records in batches of what waits, with up to two requests in flight per node, for different partitions: a node finds the second one when it has
 * answered the first. `partitionLog.ts` keeps order and sequence numbers.
 */
import { Adapter, BrokerError, type ConsumerRecord, LogLine } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { HeaderEncoder } from "../batch/encodedRecord.ts"
import type { BrokerErrors } from "../connection/brokerErrors.ts"
import type { Cluster } from "../connection/cluster.ts"
import { failureOfCode } from "../wire/failures.ts"
import { type OnSettled, PendingRecords, type TrackedRecord } from "./pendingRecords.ts"
import type { TakenBatch } from "./produceRequest.ts"
import { sendBatches } from "./sendBatches.ts"
import type { SenderOptions, SenderState } from "./senderState.ts"
import { noLeader, TopicTable } from "./topicTable.ts"

export interface Sender {
  /**
   * Sends a record. `onSettled` is called once with the outcome, at once for a record that no broker can take, or never after a `cancel`. Records that are sent in one call share `onSettled` and an
   * encoder of headers.
   */
  readonly send: (
    record: ConsumerRecord.ProducerRecord,
    onSettled: OnSettled,
    index?: number,
    encode?: HeaderEncoder
  ) => Pick<TrackedRecord, "cancel">
  /** Waits until no record is pending. */
  readonly drained: Effect.Effect<void>
}

const requestsPerNode = 2
const retryDelay = "100 millis"
const defectDelay = "1 second"

/** For this long a node's answer that a topic or a partition does not exist is not believed: the node may not have learned of it yet. */
const maxMissingMillis = 500
const fatalTopicErrors = new Set(["INVALID_TOPIC_EXCEPTION", "TOPIC_AUTHORIZATION_FAILED"])

/** Requests the metadata of topics, and starts send loops for new leaders. */
const lookUp = Effect.fnUntraced(function* (
  state: SenderState,
  topics: ReadonlyArray<string>
): Effect.fn.Return<void, ClientFailure> {
  const { cluster, errors, table, latches } = state
  const metadata = yield* cluster.metadata(topics)
  const now = yield* Clock.currentTimeMillis
  for (const topic of topics) {
    const found = metadata.get(topic)
    if (found === undefined) continue
    const failed = failureOfCode(found.topicErrorCode)
    if (found.partitionMetadata.length > 0) {
      table.learn(found)
      if (table.hasRemovedPartitions(topic) && table.noteMissing(topic, now) >= maxMissingMillis) {
        table.failRemovedPartitions(topic)
      }
    } else if (
      failed !== undefined &&
      (fatalTopicErrors.has(failed.type) || table.noteMissing(topic, now) >= maxMissingMillis)
    ) {
      table.failTopic(topic, errors.of(failed, { operation: "write to", topic }))
    }
  }
  for (const node of table.nodes()) yield* start(state, node)
  for (const latch of latches.values()) latch.openUnsafe()
})

const lookUpBusy = (state: SenderState): Effect.Effect<void> =>
  Effect.suspend(() => Effect.ignore(lookUp(state, state.table.busy())))

/** Takes batches for one request to a node. The partition that was served least recently comes first. */
const takeBatches = (state: SenderState, node: number): ReadonlyArray<TakenBatch> => {
  const { options, table } = state
  const logs = table.ready(node).sort((a, b) => a.lastTaken - b.lastTaken)
  const taken: Array<TakenBatch> = []
  let records = options.maxBatchRecords
  let bytes = options.maxBatchBytes
  for (const log of logs) {
    if (records <= 0 || bytes <= 0) break
    const batch = log.take(records, bytes)
    if (batch === undefined) continue
    log.lastTaken = ++state.batches
    records -= batch.records.length
    for (const pending of batch.records) bytes -= pending.bytes
    taken.push({ log, batch })
  }
  return taken
}

/** Repeats a pass of a loop for as long as the producer lives. A defect, which would end the loop in silence, is logged, and the next pass follows. */
const keepLooping = <R>(name: string, pass: Effect.Effect<void, never, R>): Effect.Effect<never, never, R> =>
  Effect.forever(
    Effect.catchDefect(pass, (defect) =>
      Effect.andThen(
        LogLine.error(`The ${name} of a producer failed; it goes on`, Cause.die(defect)),
        Effect.sleep(defectDelay)
      )
    )
  )

/** Sends batches. After a defect they are sent again: with their records in flight for ever, no other record of their partitions would be sent. */
const sendTaken = (node: number, batches: ReadonlyArray<TakenBatch>, state: SenderState): Effect.Effect<boolean> =>
  Effect.onExit(sendBatches(node, batches, state), (exit) =>
    Effect.sync(() => {
      if (Exit.isFailure(exit)) for (const { log, batch } of batches) log.abandoned(batch)
    })
  )

const sendForever = (state: SenderState, node: number, latch: Latch.Latch): Effect.Effect<never> =>
  keepLooping(
    "send loop",
    Effect.gen(function* () {
      latch.closeUnsafe()
      const { lingerMillis } = state.options
      if (lingerMillis > 0 && state.table.ready(node).length > 0) yield* Effect.sleep(lingerMillis)
      const batches = takeBatches(state, node)
      if (batches.length === 0) return yield* latch.await
      if (yield* sendTaken(node, batches, state)) {
        yield* Effect.sleep(retryDelay)
        yield* lookUpBusy(state)
      }
    })
  )

/** Looks up leaders while records wait for one. */
const findLeadersForever = (state: SenderState, latch: Latch.Latch): Effect.Effect<never> =>
  keepLooping(
    "look for leaders",
    Effect.gen(function* () {
      latch.closeUnsafe()
      if (!state.table.leaderless()) return yield* latch.await
      yield* lookUpBusy(state)
      if (state.table.leaderless()) yield* Effect.sleep(retryDelay)
    })
  )

/** Starts the loops of a node, once. */
const start = (state: SenderState, node: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { latches, scope } = state
    if (latches.has(node)) return Effect.void
    const latch = Latch.makeUnsafe(true)
    latches.set(node, latch)
    if (node === noLeader) return Effect.asVoid(Effect.forkIn(findLeadersForever(state, latch), scope))
    const fork = Effect.forkIn(sendForever(state, node, latch), scope)
    return Effect.asVoid(Effect.replicateEffect(fork, requestsPerNode))
  })

/** Fails records whose delivery timeout has passed. */
const expireForever = ({ options, pending, table }: SenderState): Effect.Effect<never> => {
  const timedOut = new BrokerError.RequestTimedOut({ operation: "send", millis: options.deliveryTimeoutMillis })
  const intervalMillis = Math.max(10, Math.min(1_000, options.deliveryTimeoutMillis / 10))
  return keepLooping(
    "expiry of records",
    pending.busy.await.pipe(
      Effect.andThen(Effect.sleep(intervalMillis)),
      Effect.andThen(Effect.sync(() => table.expire(Date.now(), timedOut)))
    )
  )
}

/** Looks for new partitions of known topics. */
const pollPartitionsForever = (state: SenderState): Effect.Effect<never> =>
  keepLooping(
    "look for new partitions",
    Effect.sleep(state.options.metadataMaxAgeMillis).pipe(
      Effect.andThen(Effect.suspend(() => Effect.ignore(lookUp(state, state.table.known()))))
    )
  )

/** A record that was refused before it was sent. */
const notPending = { cancel: () => {} }

/** Sends until `parent` closes. */
export const makeSender = Effect.fnUntraced(function* (
  cluster: Cluster,
  options: SenderOptions,
  errors: BrokerErrors,
  parent: Scope.Scope
) {
  // With a scope of its own the sender ends when `parent` reaches this point of its finalizers; finalizers that were added later can still send.
  const scope = yield* Scope.fork(parent)
  const table = new TopicTable()
  const pending = new PendingRecords(options.codec)
  const latches = new Map<number, Latch.Latch>()
  const context = yield* Effect.context<never>()
  const state: SenderState = {
    cluster,
    options,
    errors,
    scope,
    table,
    pending,
    warn: (text) => void Effect.runForkWith(context)(LogLine.warning(text)),
    latches,
    oneAtATime: Semaphore.makeUnsafe(1).withPermits(1),
    batches: 0,
    identity: undefined
  }
  yield* start(state, noLeader)
  yield* Effect.forkIn(pollPartitionsForever(state), scope)
  yield* Effect.forkIn(expireForever(state), scope)
  const sender: Sender = {
    send: (record, onSettled, index = 0, encode) => {
      const refused = Adapter.refusedRecord(record)
      if (refused !== undefined) {
        onSettled(refused, index)
        return notPending
      }
      let tracked: TrackedRecord | undefined
      try {
        tracked = pending.add(record, options.deliveryTimeoutMillis, onSettled, index, encode)
        latches.get(table.add(record, tracked))?.openUnsafe()
        return tracked
      } catch (error) {
        // The listener of the answers threw, and not the record.
        if (tracked?.settled === true) throw error
        // A getter that throws only now. The records beside it have answers of their own.
        const unreadable = Adapter.unreadableRecord()
        if (tracked === undefined) onSettled(unreadable, index)
        else tracked.fail(unreadable)
        return notPending
      }
    },
    drained: pending.drained.await
  }
  return sender
})
