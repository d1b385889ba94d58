/**
 * Sends records: batches what waits, and keeps up to two requests out per node, of different partitions: the node has the next one when it is done with the
 * first. `partitionLog.ts` keeps order and sequence numbers.
 */
import { BrokerError, ConsumerRecord } from "@eventbus/core"
import { Clock, Effect, Latch, Scope, Semaphore } from "effect"
import type { HeaderEncoder } from "../batch/outgoing.ts"
import type { Cluster } from "../connection/cluster.ts"
import type { PortErrors } from "../connection/portErrors.ts"
import { type ClientFailure, failure, failureOfCode, Local } from "../wire/errors.ts"
import { call } from "../wire/wire.ts"
import type { Identity } from "./partitionLog.ts"
import { type Done, type PendingRecord, PendingRecords } from "./pendingRecords.ts"
import { outcomeOf } from "./produceOutcome.ts"
import { encodeProduce, type Sending } from "./produceRequest.ts"
import { nobody, TopicTable } from "./topicTable.ts"

export interface SenderOptions {
  readonly kind: "plain" | "idempotent" | "transactional"
  readonly acks: -1 | 1
  readonly transactionalId: string | undefined
  readonly lingerMillis: number
  readonly maxBatchRecords: number
  readonly maxBatchBytes: number
  readonly deliveryTimeoutMillis: number
  readonly requestTimeoutMillis: number
  /** How often to look for new partitions. */
  readonly metadataMaxAgeMillis: number
  /** A new producer id. */
  readonly identify: Effect.Effect<Identity, ClientFailure>
  /** Runs before batches of these partitions are sent. */
  readonly enlist: (partitions: ReadonlyArray<ConsumerRecord.TopicPartition>) => Effect.Effect<void, ClientFailure>
}

export interface Sender {
  /**
   * Takes a record; `done` is called once, or never when what is returned was given up. Records that come in one go share `done` and an encoder of
   * headers.
   */
  readonly send: (
    record: ConsumerRecord.ProducerRecord,
    done: Done,
    index?: number,
    encode?: HeaderEncoder
  ) => Pick<PendingRecord, "giveUp">
  /** Waits until nothing is on its way. */
  readonly drained: Effect.Effect<void>
  readonly failAll: (error: BrokerError.BrokerError) => void
}

/** Requests that are out at a node at one time. */
const requestsOut = 2

const retryDelay = "100 millis"
/** A node that was not told of a new topic, or of new partitions, yet answers that they do not exist. */
const maxMissingMillis = 500
const definite = new Set(["INVALID_TOPIC_EXCEPTION", "TOPIC_AUTHORIZATION_FAILED"])
const spent = failure("INVALID_TXN_STATE", "it is not known what was written to the partition before")
const unanswered = failure(Local.connection, "the broker's answer leaves the partition out")

interface Context {
  readonly cluster: Cluster
  readonly options: SenderOptions
  readonly errors: PortErrors
}

const failBatch = ({ log, batch }: Sending, failed: ClientFailure, { options, errors }: Context): void =>
  log.failed(
    batch,
    errors.of(failed, {
      operation: "write to",
      topic: log.topic,
      partition: log.partition,
      bytes: batch.records[0]!.bytes,
      ...(options.transactionalId !== undefined && { transactionalId: options.transactionalId })
    })
  )

/** Acts on what became of a batch; true when the leaders have to be looked at anew. */
const settle = (sending: Sending, failed: ClientFailure, sent: "sent" | "notSent", context: Context): boolean => {
  const { log, batch } = sending
  switch (outcomeOf(failed.type, batch.records.length, context.options.kind)) {
    case "again":
      log.again(batch, "notWritten")
      return true
    case "unknown":
      log.again(batch, sent === "sent" ? "unknown" : "notWritten")
      return true
    case "renew":
      log.again(batch, "notWritten")
      log.forgetIdentity()
      return false
    case "split":
      log.split(batch)
      return false
    case "fail":
      failBatch(sending, failed, context)
      return false
  }
}

const produce = Effect.fnUntraced(function* (
  node: number,
  sendings: ReadonlyArray<Sending>,
  { cluster, options }: Context
) {
  const broker = yield* cluster.node(node)
  const { acks, transactionalId } = options
  // the broker gives up before this client does, so that its answer still arrives
  const timeoutMillis = Math.ceil(options.requestTimeoutMillis / 2)
  const payload = { acks, timeout: timeoutMillis, topicData: [] }
  return yield* call(broker, "Produce", payload, {
    encode: () => encodeProduce({ acks, timeoutMillis, transactionalId }, sendings)
  })
})

/** One request for batches that are prepared; true when the leaders have to be looked at anew. */
const request = Effect.fnUntraced(function* (node: number, sendings: ReadonlyArray<Sending>, context: Context) {
  const answer = yield* Effect.result(produce(node, sendings, context))
  if (answer._tag === "Failure") {
    return sendings.map((sending) => settle(sending, answer.failure, "sent", context)).includes(true)
  }
  const results = new Map(
    answer.success.topics.flatMap(({ topicName, partitions }) =>
      partitions.map((result) => [ConsumerRecord.partitionKey(topicName, result.partition), result] as const)
    )
  )
  let stale = false
  for (const sending of sendings) {
    const { log, batch } = sending
    const result = results.get(ConsumerRecord.partitionKey(log.topic, log.partition))
    const failed = result === undefined ? unanswered : failureOfCode(result.errorCode)
    if (failed === undefined) log.acknowledged(batch, BigInt(result!.baseOffset))
    else if (failed.type === "DUPLICATE_SEQUENCE_NUMBER") log.acknowledged(batch, -1n)
    else if (settle(sending, failed, "sent", context)) stale = true
  }
  return stale
})

/** Sends until `parent` closes. */
export const makeSender = (cluster: Cluster, options: SenderOptions, errors: PortErrors, parent: Scope.Scope) =>
  Effect.gen(function* () {
    // of its own, so that it ends where it began among the finalizers of `parent`: those that come later can still send
    const scope = yield* Scope.fork(parent)
    const table = new TopicTable()
    const latches = new Map<number, Latch.Latch>()
    const pendings = new PendingRecords()
    let turns = 0
    let identity: Identity | undefined

    /** Looks at topics anew: partitions and leaders. */
    const look = Effect.fnUntraced(function* (wanted: ReadonlyArray<string>) {
      const metadata = yield* cluster.metadata(wanted)
      const now = yield* Clock.currentTimeMillis
      for (const name of wanted) {
        const found = metadata.get(name)
        if (found === undefined) continue
        const failed = failureOfCode(found.topicErrorCode)
        if (found.partitionMetadata.length > 0) {
          table.learn(found)
          if (table.hasGone(name) && table.missed(name, now) >= maxMissingMillis) table.failGone(name)
        } else if (failed !== undefined && (definite.has(failed.type) || table.missed(name, now) >= maxMissingMillis)) {
          table.failTopic(name, errors.of(failed, { operation: "write to", topic: name }))
        }
      }
      for (const node of table.nodes()) yield* start(node)
      for (const latch of latches.values()) latch.openUnsafe()
    })
    const refresh = Effect.suspend(() => look(table.busy()))

    const take = (node: number): ReadonlyArray<Sending> => {
      const logs = table.ready(node).toSorted((a, b) => a.turn - b.turn)
      const sendings: Array<Sending> = []
      let records = options.maxBatchRecords
      let bytes = options.maxBatchBytes
      for (const log of logs) {
        if (records <= 0 || bytes <= 0) break
        const batch = log.take(records, bytes)
        if (batch === undefined) continue
        log.turn = ++turns
        records -= batch.records.length
        for (const pending of batch.records) bytes -= pending.bytes
        sendings.push({ log, batch })
      }
      return sendings
    }

    /** A transaction coordinator refuses what comes while it takes in something else. */
    const oneByOne = Semaphore.makeUnsafe(1).withPermits(1)

    /** What has to be done before batches can go out: an id for each partition, and its place in the transaction. */
    const prepare = Effect.fnUntraced(function* (sendings: ReadonlyArray<Sending>) {
      for (const { log } of sendings) {
        if (log.identity !== undefined) continue
        if (identity === undefined || identity === log.spent) identity = yield* options.identify
        // That of a transaction is the only one: the broker would take what comes now for a repetition.
        if (identity === log.spent) return yield* Effect.fail(spent)
        log.identity = identity
      }
      yield* options.enlist(sendings.map(({ log: { topic, partition } }) => ({ topic, partition })))
    })

    const context = { cluster, options, errors }
    const sendOnce = Effect.fnUntraced(function* (node: number, sendings: ReadonlyArray<Sending>) {
      const prepared = yield* Effect.result(options.kind === "plain" ? Effect.void : oneByOne(prepare(sendings)))
      return prepared._tag === "Success"
        ? yield* request(node, sendings, context)
        : sendings.map((sending) => settle(sending, prepared.failure, "notSent", context)).includes(true)
    })

    const again = Effect.andThen(Effect.sleep(retryDelay), Effect.ignore(refresh))

    const loop = (node: number, latch: Latch.Latch) =>
      Effect.forever(
        Effect.gen(function* () {
          latch.closeUnsafe()
          if (table.ready(node).length === 0) return yield* latch.await
          if (options.lingerMillis > 0) yield* Effect.sleep(options.lingerMillis)
          const sendings = take(node)
          if (sendings.length > 0 && (yield* sendOnce(node, sendings))) yield* again
        })
      )

    /** Finds leaders for what has none. */
    const seek = (latch: Latch.Latch) =>
      Effect.forever(
        Effect.gen(function* () {
          latch.closeUnsafe()
          if (!table.leaderless()) return yield* latch.await
          yield* Effect.ignore(refresh)
          if (table.leaderless()) yield* Effect.sleep(retryDelay)
        })
      )

    const start = (node: number): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (latches.has(node)) return Effect.void
        const latch = Latch.makeUnsafe(true)
        latches.set(node, latch)
        if (node === nobody) return Effect.asVoid(Effect.forkIn(seek(latch), scope))
        return Effect.asVoid(Effect.replicateEffect(Effect.forkIn(loop(node, latch), scope), requestsOut))
      })

    const timedOut = new BrokerError.RequestTimedOut({ operation: "send", millis: options.deliveryTimeoutMillis })
    const sweepMillis = Math.max(10, Math.min(1_000, options.deliveryTimeoutMillis / 10))
    const expire = Effect.forever(
      pendings.busy.await.pipe(
        Effect.andThen(Effect.sleep(sweepMillis)),
        Effect.andThen(Effect.sync(() => table.expire(Date.now(), timedOut)))
      )
    )

    const growth = Effect.forever(
      Effect.sleep(options.metadataMaxAgeMillis).pipe(
        Effect.andThen(Effect.suspend(() => Effect.ignore(look(table.known()))))
      )
    )

    yield* start(nobody)
    yield* Effect.forkIn(growth, scope)
    yield* Effect.forkIn(expire, scope)
    const sender: Sender = {
      send: (record, done, index = 0, encode) => {
        const pending = pendings.add(record, options.deliveryTimeoutMillis, done, index, encode)
        latches.get(table.add(record, pending))?.openUnsafe()
        return pending
      },
      drained: pendings.drained.await,
      failAll: (error) => table.failAll(error)
    }
    return sender
  })
