/**
 * The client side of publishing. Records wait per topic, one request per topic is in flight, and a request without an answer is retried until its
 * records exceed the delivery timeout. It owns the waiting records and their sequence numbers.
 */
import { type Broker, BrokerError, type ConsumerRecord, LogLine, Partitioner, ProducerClock } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Cluster } from "./cluster.ts"
import { readRecord, snapshot } from "./givenRecord.ts"
import type { Connection } from "./network.ts"
import { recordBytes } from "./partitionLog.ts"
import { appendBatch, type PendingRecord, type ProduceSource } from "./produceRequest.ts"
import type { ProducerEpoch } from "./transactionCoordinator.ts"

type Answer = Exit.Exit<ConsumerRecord.RecordMetadata, BrokerError.BrokerError>

interface ProducerSettings {
  readonly idempotence: "on" | "off"
  readonly lingerMillis: number
  readonly maxBatchRecords: number
  readonly maxBatchBytes: number
  readonly deliveryTimeoutMillis: number
  readonly closeTimeoutMillis: number
  /** The codec of records that name none. */
  readonly compression: ConsumerRecord.Compression
}

export const settings = (options: Broker.ProducerOptions): ProducerSettings => ({
  idempotence: options.idempotent === false || options.acks === "leader" ? "off" : "on",
  lingerMillis: Duration.toMillis(options.linger ?? 0),
  maxBatchRecords: options.maxBatchRecords ?? 1000,
  maxBatchBytes: options.maxBatchBytes ?? 524_288,
  compression: options.compression ?? "none",
  deliveryTimeoutMillis: Duration.toMillis(options.deliveryTimeout ?? "120 seconds"),
  closeTimeoutMillis: Duration.toMillis(options.closeTimeout ?? options.deliveryTimeout ?? "120 seconds")
})

/** The records that wait for one topic. Its fiber runs only while records wait. */
interface TopicQueue {
  readonly topic: string
  waiting: Array<PendingRecord>
  running: boolean
  /** The next partition for a record without a key. */
  nextPartition: number
  readonly sequences: Map<number, number>
}

/** First wait before a retry. It doubles up to a second, as `retry.backoff.ms` and `retry.backoff.max.ms` say. */
const firstBackoffMillis = 100
const maxBackoffMillis = 1000

export const make = Effect.fnUntraced(function* (
  cluster: Cluster,
  connection: Connection,
  settings: ProducerSettings,
  epoch?: ProducerEpoch
): Effect.fn.Return<Broker.Producer & { readonly flush: Effect.Effect<void> }, never, Scope.Scope> {
  const producerId = cluster.producerId()
  const queues = new Map<string, TopicQueue>()
  const clock = yield* Clock.Clock
  const log = logging(yield* Effect.context<never>())
  const recordTime = new ProducerClock.ProducerClock()
  const senders = yield* FiberSet.make<void>()
  const fork = yield* FiberSet.runtime(senders)()
  // The wait runs in a fiber of its own: the closing fiber may be interrupted or uninterruptible, and neither may change the length of the wait.
  const closing = Effect.timeoutOption(FiberSet.awaitEmpty(senders), settings.closeTimeoutMillis)
  yield* Effect.addFinalizer(() => Effect.flatMap(Effect.forkDetach(closing), Fiber.join))

  const sender: Sender = {
    cluster,
    connection,
    nowMillis: () => clock.currentTimeMillisUnsafe(),
    deliveryTimeoutMillis: settings.deliveryTimeoutMillis,
    source: {
      clientId: connection.clientId,
      producerId: settings.idempotence === "on" ? producerId : undefined,
      epoch
    }
  }

  const queueOf = (topic: string): TopicQueue => {
    const known = queues.get(topic)
    if (known) return known
    const queue: TopicQueue = { topic, waiting: [], running: false, nextPartition: 0, sequences: new Map() }
    queues.set(topic, queue)
    return queue
  }

  const enqueue = (given: ConsumerRecord.ProducerRecord, answer: (answer: Answer) => void): void => {
    const record = readRecord(given)
    if ("_tag" in record) {
      answer(Exit.fail(record))
      return
    }
    const queue = queueOf(record.topic)
    const target = choosePartition(cluster, queue, record)
    if (typeof target !== "number") {
      answer(Exit.fail(target))
      return
    }
    const sequence = queue.sequences.get(target) ?? 0
    queue.sequences.set(target, sequence + 1)
    const nowMillis = clock.currentTimeMillisUnsafe()
    const correction = recordTime.correctionMillis(record.topic, nowMillis)
    const content = snapshot(record, nowMillis + correction, settings.compression)
    queue.waiting.push({
      ...{ ...content, partition: target, sequence, answer },
      bytes: recordBytes(content),
      otherTime: otherTimes({ record, recordTime, correction, nowMillis, log }),
      deadlineMillis: nowMillis + settings.deliveryTimeoutMillis
    })
    if (queue.running) return
    queue.running = true
    fork(drain(queue))
  }

  const drain = (queue: TopicQueue): Effect.Effect<void> =>
    Effect.gen(function* () {
      // Records that are sent in the same step share a request.
      yield* settings.lingerMillis > 0 ? Effect.sleep(settings.lingerMillis) : Effect.yieldNow
      while (queue.waiting.length > 0) yield* deliver(sender, queue.topic, takeBatch(queue, settings))
      queue.running = false
    })

  const send = (record: ConsumerRecord.ProducerRecord) =>
    Effect.callback<ConsumerRecord.RecordMetadata, BrokerError.BrokerError>((resume) => enqueue(record, resume))
  return { send, ...sendingMany(enqueue), flush: FiberSet.awaitEmpty(senders) }
})

/** The parts of a producer that send its requests. */
interface Sender {
  readonly cluster: Cluster
  readonly connection: Connection
  readonly source: ProduceSource
  readonly nowMillis: () => number
  readonly deliveryTimeoutMillis: number
}

/** Sends a batch until it is answered or its records exceed the delivery timeout. */
const deliver = Effect.fnUntraced(function* (sender: Sender, topic: string, batch: ReadonlyArray<PendingRecord>) {
  const { cluster, connection, source, nowMillis, deliveryTimeoutMillis } = sender
  const call = { operation: "produce", clientId: connection.clientId, topic } as const
  let waiting = batch
  let backoffMillis = firstBackoffMillis
  while (waiting.length > 0) {
    const timeoutMillis = Math.min(
      cluster.kernel.settings.requestTimeoutMillis,
      Math.max(1, waiting[0]!.deadlineMillis - nowMillis())
    )
    const sent = waiting
    const exchange = cluster.network.exchange(
      connection,
      call,
      (decision) => Effect.sync(() => appendBatch(cluster, topic, sent, decision, source)),
      timeoutMillis
    )
    const answered = yield* Effect.option(exchange)
    if (answered._tag === "Some") {
      answerAll(sent, answered.value)
      return
    }
    waiting = expire(sent, nowMillis(), deliveryTimeoutMillis)
    yield* Effect.sleep(backoffMillis)
    backoffMillis = Math.min(maxBackoffMillis, backoffMillis * 2)
  }
})

/** The calls that send many records at once, in order. */
const sendingMany = (
  enqueue: (record: ConsumerRecord.ProducerRecord, answer: (answer: Answer) => void) => void
): Pick<Broker.Producer, "sendAll" | "sendEach"> => {
  const sendEach: Broker.Producer["sendEach"] = (records, onAnswer) =>
    Effect.callback((resume) => {
      let open = records.length
      let interrupted = false
      if (open === 0) return resume(Effect.void)
      records.forEach((record, index) => {
        enqueue(record, (answer) => {
          if (interrupted) return
          onAnswer(index, asResult(answer))
          if (--open === 0) resume(Effect.void)
        })
      })
      return Effect.sync(() => {
        interrupted = true
      })
    })
  return {
    sendEach,
    sendAll: (records) =>
      Effect.suspend(() => {
        const answers: Array<Result.Result<ConsumerRecord.RecordMetadata, BrokerError.BrokerError>> = []
        const all = sendEach(records, (index, answer) => {
          answers[index] = answer
        })
        return Effect.flatMap(all, () => Effect.fromResult(Result.all(answers)))
      })
  }
}

interface Refusable {
  readonly record: ConsumerRecord.ProducerRecord
  readonly recordTime: ProducerClock.ProducerClock
  readonly correction: number
  readonly nowMillis: number
  readonly log: (text: string) => void
}

/** The times to try for a record whose time is refused (ruling 76), one per call. A time that the record came with may be final. */
const otherTimes = ({ record, recordTime, correction, nowMillis, log }: Refusable): (() => number | undefined) => {
  let tried = record.timestamp === undefined ? correction : ("ownIfAccepted" as const)
  return () => {
    if (record.timestamp !== undefined && record.replaceTimestamp !== true) return undefined
    const next = recordTime.refused(record.topic, tried, nowMillis)
    if (next?.log !== undefined) log(next.log)
    tried = next?.millis ?? tried
    return next === undefined ? undefined : nowMillis + next.millis
  }
}

const logging = (context: Context.Context<never>) => (text: string) => {
  Effect.runForkWith(context)(LogLine.warning(text))
}

const asResult = (answer: Answer): Result.Result<ConsumerRecord.RecordMetadata, BrokerError.BrokerError> =>
  Exit.isSuccess(answer)
    ? Result.succeed(answer.value)
    : Result.fail(Option.getOrThrowWith(Cause.findErrorOption(answer.cause), () => Cause.squash(answer.cause)))

/** The broker answers each record, or refuses the request as a whole. */
const answerAll = (
  batch: ReadonlyArray<PendingRecord>,
  answer: Exit.Exit<ReadonlyArray<Answer>, BrokerError.BrokerError>
): void => {
  batch.forEach((pending, index) => {
    pending.answer(Exit.isSuccess(answer) ? answer.value[index]! : Exit.failCause(answer.cause))
  })
}

const choosePartition = (
  cluster: Cluster,
  queue: TopicQueue,
  record: ConsumerRecord.ProducerRecord
): number | BrokerError.BrokerError => {
  const { topic } = record
  const problem = cluster.topicProblem(topic)
  if (problem) return problem
  const partitions = cluster.kernel.topics.partitionCount(topic)
  if (record.partition !== undefined) {
    if (Number.isInteger(record.partition) && record.partition >= 0 && record.partition < partitions)
      return record.partition
    return new BrokerError.RecordRejected({ topic, detail: `it names partition ${record.partition} of ${partitions}` })
  }
  if (record.key !== null) return Partitioner.partitionFor(record.key, partitions)
  return queue.nextPartition++ % partitions
}

const takeBatch = (queue: TopicQueue, settings: ProducerSettings): ReadonlyArray<PendingRecord> => {
  let count = 0
  let bytes = 0
  while (count < queue.waiting.length && count < settings.maxBatchRecords) {
    bytes += queue.waiting[count]!.bytes
    if (count > 0 && bytes > settings.maxBatchBytes) break
    count++
  }
  const batch = queue.waiting.slice(0, count)
  queue.waiting = queue.waiting.slice(count)
  return batch
}

/** Fails the records that are past their deadline and returns the others. Deadlines grow in sending order. */
const expire = (
  batch: ReadonlyArray<PendingRecord>,
  nowMillis: number,
  millis: number
): ReadonlyArray<PendingRecord> => {
  const alive = batch.filter((pending) => pending.deadlineMillis > nowMillis)
  for (const pending of batch) {
    if (pending.deadlineMillis > nowMillis) continue
    pending.answer(Exit.fail(new BrokerError.RequestTimedOut({ operation: "send", millis })))
  }
  return alive
}
