/** The producer of the port: its ways to publish, on a `Sender`. */
import { type Broker, type BrokerError, type ConsumerRecord, Ranges } from "@eventbus/core"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { type ClientFailure, failure } from "../../ClientFailure.ts"
import { headerEncoder } from "../batch/encodedRecord.ts"
import { unusableCodec } from "../codec/compress.ts"
import type { BrokerErrors } from "../connection/brokerErrors.ts"
import { type Cluster, connect } from "../connection/cluster.ts"
import { defaults, type Options } from "../connection/options.ts"
import type { SecuredOptions } from "../connection/security.ts"
import { check } from "../wire/failures.ts"
import { call } from "../wire/requests.ts"
import type { Identity } from "./partitionLog.ts"
import type { OnSettled } from "./pendingRecords.ts"
import { makeSender, type Sender } from "./sender.ts"
import type { SenderOptions } from "./senderState.ts"

/** The bounds that the options of a producer set. */
export type ProducerLimits = Omit<
  SenderOptions,
  "kind" | "acks" | "transactionalId" | "produceApi" | "newIdentity" | "beforeSend" | "onWritten"
>

export const producerLimits = (options: Options, producer: Broker.ProducerOptions): ProducerLimits => ({
  codec: producer.compression ?? "none",
  lingerMillis: Duration.toMillis(producer.linger ?? 0),
  maxBatchRecords: producer.maxBatchRecords ?? 1_000,
  maxBatchBytes: producer.maxBatchBytes ?? 512 * 1024,
  deliveryTimeoutMillis: Duration.toMillis(producer.deliveryTimeout ?? "120 seconds"),
  requestTimeoutMillis: Ranges.millisOf(options.requestTimeout ?? defaults.requestTimeoutMillis),
  metadataMaxAgeMillis: Ranges.millisOf(options.metadataMaxAge ?? defaults.metadataMaxAgeMillis)
})

const isError = (
  outcome: ConsumerRecord.RecordMetadata | BrokerError.BrokerError
): outcome is BrokerError.BrokerError => "_tag" in outcome

/** The port's producer on a sender. */
export const producerOf = (sender: Sender): Broker.Producer => {
  const sendEach: Broker.Producer["sendEach"] = (records, onAnswer) =>
    Effect.callback((resume) => {
      let unanswered = records.length
      if (unanswered === 0) return resume(Effect.void)
      const encode = headerEncoder()
      const onSettled: OnSettled = (outcome, index) => {
        onAnswer(index, isError(outcome) ? Result.fail(outcome) : Result.succeed(outcome))
        unanswered -= 1
        if (unanswered === 0) resume(Effect.void)
      }
      const pending = records.map((record, index) => sender.send(record, onSettled, index, encode))
      return Effect.sync(() => {
        for (const one of pending) one.cancel()
      })
    })
  return {
    send: (record) =>
      Effect.callback((resume) => {
        const pending = sender.send(record, (outcome) =>
          resume(isError(outcome) ? Effect.fail(outcome) : Effect.succeed(outcome))
        )
        return Effect.sync(() => pending.cancel())
      }),
    sendEach,
    sendAll: (records) =>
      Effect.suspend(() => {
        const answers = new Array<Result.Result<ConsumerRecord.RecordMetadata, BrokerError.BrokerError>>(records.length)
        const all = sendEach(records, (index, answer) => {
          answers[index] = answer
        })
        return Effect.flatMap(all, () => Effect.fromResult(Result.all(answers)))
      })
  }
}

/** A producer id for idempotence. Every node issues them. */
const newProducerId = (cluster: Cluster): Effect.Effect<Identity, ClientFailure> =>
  Effect.gen(function* () {
    const broker = yield* cluster.anyNode
    const answer = yield* call(broker, "InitProducerId", { transactionTimeout: 60_000 })
    yield* check(answer.errorCode)
    return { producerId: BigInt(answer.producerId), producerEpoch: answer.producerEpoch }
  })

/** Fails where the producer names a codec that cannot be used. */
export const requireCodec = ({ compression = "none" }: Broker.ProducerOptions): Effect.Effect<void, ClientFailure> => {
  const unusable = unusableCodec(compression)
  return unusable === undefined ? Effect.void : Effect.fail(failure("INVALID_CONFIG", `compression: ${unusable}`))
}

/** The guarantees that the requests of a producer ask for. An idempotent one is acknowledged by all replicas. */
export const guaranteesOf = ({ acks, idempotent }: Broker.ProducerOptions): Pick<SenderOptions, "kind" | "acks"> => ({
  kind: (idempotent ?? acks !== "leader") ? "idempotent" : "plain",
  acks: acks === "leader" ? 1 : -1
})

export const makeProducer = Effect.fnUntraced(function* (
  options: SecuredOptions,
  errors: BrokerErrors,
  producer: Broker.ProducerOptions
) {
  const guarantees = guaranteesOf(producer)
  if (guarantees.kind === "idempotent" && guarantees.acks === 1) {
    const failed = failure("INVALID_CONFIG", "an idempotent producer needs acks 'all'")
    return yield* Effect.fail(errors.of(failed, { operation: "producer" }))
  }
  yield* errors.map(requireCodec(producer), { operation: "producer" })
  const cluster = yield* errors.map(connect(options, producer.clientId), { operation: "connect" })
  const limits = producerLimits(options, producer)
  const sender = yield* makeSender(
    cluster,
    {
      ...limits,
      ...guarantees,
      transactionalId: undefined,
      produceApi: "Produce",
      newIdentity: newProducerId(cluster),
      beforeSend: () => Effect.void,
      onWritten: () => {}
    },
    errors,
    yield* Effect.scope
  )
  // In a fiber of its own: the closing fiber may be interrupted or uninterruptible, and neither may change how long this waits.
  const closing = Effect.timeoutOption(sender.drained, producer.closeTimeout ?? limits.deliveryTimeoutMillis)
  yield* Effect.addFinalizer(() => Effect.flatMap(Effect.forkDetach(closing), Fiber.join))
  return producerOf(sender)
})
