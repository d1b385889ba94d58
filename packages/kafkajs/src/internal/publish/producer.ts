/** The producer of the port: its ways to publish, on a `Sender`. */
import type { Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import { Duration, Effect, Fiber, Result } from "effect"
import { headerEncoder } from "../batch/outgoing.ts"
import { type Cluster, connect } from "../connection/cluster.ts"
import { defaults, type Options } from "../connection/options.ts"
import type { PortErrors } from "../connection/portErrors.ts"
import type { Secured } from "../connection/security.ts"
import { type ClientFailure, check, failure } from "../wire/errors.ts"
import { call } from "../wire/wire.ts"
import type { Identity } from "./partitionLog.ts"
import type { Done } from "./pendingRecords.ts"
import { makeSender, type Sender, type SenderOptions } from "./sender.ts"

/** What the options of a producer bound. */
type Limits = Omit<SenderOptions, "kind" | "acks" | "transactionalId" | "identify" | "enlist">

export const limits = (options: Options, producer: Broker.ProducerOptions): Limits => ({
  lingerMillis: Duration.toMillis(producer.linger ?? 0),
  maxBatchRecords: producer.maxBatchRecords ?? 1_000,
  maxBatchBytes: producer.maxBatchBytes ?? 512 * 1024,
  deliveryTimeoutMillis: Duration.toMillis(producer.deliveryTimeout ?? "120 seconds"),
  requestTimeoutMillis: Duration.toMillis(options.requestTimeout ?? defaults.requestTimeoutMillis),
  metadataMaxAgeMillis: Duration.toMillis(options.metadataMaxAge ?? defaults.metadataMaxAgeMillis)
})

const isError = (
  outcome: ConsumerRecord.RecordMetadata | BrokerError.BrokerError
): outcome is BrokerError.BrokerError => "_tag" in outcome

/** The producer of the port on a sender. */
export const sending = (sender: Sender): Broker.Producer => {
  const sendEach: Broker.Producer["sendEach"] = (records, onAnswer) =>
    Effect.callback((resume) => {
      let open = records.length
      if (open === 0) return resume(Effect.void)
      const encode = headerEncoder()
      const done: Done = (outcome, index) => {
        onAnswer(index, isError(outcome) ? Result.fail(outcome) : Result.succeed(outcome))
        open -= 1
        if (open === 0) resume(Effect.void)
      }
      const pending = records.map((record, index) => sender.send(record, done, index, encode))
      return Effect.sync(() => {
        for (const one of pending) one.giveUp()
      })
    })
  return {
    send: (record) =>
      Effect.callback((resume) => {
        const pending = sender.send(record, (outcome) =>
          resume(isError(outcome) ? Effect.fail(outcome) : Effect.succeed(outcome))
        )
        return Effect.sync(() => pending.giveUp())
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

/** A producer id for idempotence; any node gives one. */
const initProducerId = (cluster: Cluster): Effect.Effect<Identity, ClientFailure> =>
  Effect.gen(function* () {
    const broker = yield* cluster.anyNode
    const answer = yield* call(broker, "InitProducerId", { transactionTimeout: 60_000 })
    yield* check(answer.errorCode)
    return { producerId: BigInt(answer.producerId), producerEpoch: answer.producerEpoch }
  })

const kindOf = (producer: Broker.ProducerOptions) =>
  (producer.idempotent ?? producer.acks !== "leader") ? ("idempotent" as const) : ("plain" as const)

export const makeProducer = Effect.fnUntraced(function* (
  options: Secured,
  errors: PortErrors,
  producer: Broker.ProducerOptions
) {
  const kind = kindOf(producer)
  if (kind === "idempotent" && producer.acks === "leader") {
    const failed = failure("INVALID_CONFIG", "an idempotent producer needs acks 'all'")
    return yield* Effect.fail(errors.of(failed, { operation: "producer" }))
  }
  const cluster = yield* errors.map(connect(options, producer.clientId), { operation: "connect" })
  const bounds = limits(options, producer)
  const sender = yield* makeSender(
    cluster,
    {
      ...bounds,
      kind,
      acks: producer.acks === "leader" ? 1 : -1,
      transactionalId: undefined,
      identify: initProducerId(cluster),
      enlist: () => Effect.void
    },
    errors,
    yield* Effect.scope
  )
  // In a fiber of its own: whoever closes may be interrupted or uninterruptible, and neither may change how long is waited.
  const closing = Effect.timeoutOption(sender.drained, producer.closeTimeout ?? bounds.deliveryTimeoutMillis)
  yield* Effect.addFinalizer(() => Effect.flatMap(Effect.forkDetach(closing), Fiber.join))
  return sending(sender)
})
