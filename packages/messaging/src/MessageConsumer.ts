/**
 * A consumer: the topics that a group reads, and the handler that gets their messages. `make` describes, `layer` runs.
 *
 * A message is acknowledged when its handler has succeeded, or when its copy in a retry or dead letter destination is confirmed, and not before. A crash repeats messages and
 * loses none: handlers meet a message twice now and then. A payload that cannot be decoded is dead-lettered with its bytes, and the handler never sees it.
 */
import * as Kinds from "@eventbus/core/Kinds"
import * as Ranges from "@eventbus/core/Ranges"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { BrokerNotRegistered, NoBrokerRegistered } from "./BrokerRegistration.ts"
import type { Handler, MessageConsumer, Settings } from "./ConsumerDescription.ts"
import * as ObservedConsumer from "./internal/observedConsumer.ts"
import { MessageBrokerFactory, type SkippedBroker } from "./MessageBrokerFactory.ts"
import type { BatchMessageHandler, MessageHandler } from "./MessageHandler.ts"
import * as MessageRetry from "./MessageRetry.ts"
import type { MessagingException } from "./MessagingException.ts"
import * as MessagingMetrics from "./MessagingMetrics.ts"

export type { Handler, MessageConsumer, Naming, Settings } from "./ConsumerDescription.ts"

/** Describes a consumer whose handler gets one message at a time. Throws `ConfigurationValidation` for settings of another kind. */
export const make = <T, E = never, R = never>(
  options: Settings<T, E> & {
    /** Handles one message. */
    readonly handle: MessageHandler<T, E, R>
  }
): MessageConsumer<T, E, R> => {
  Kinds.refuse(Kinds.struct(optional, { ...required, handle: Kinds.func })("MessageConsumer.make", options))
  return describe(options, { _tag: "Single", handle: options.handle })
}

/** Describes a consumer whose handler gets batches. Throws `ConfigurationValidation` for settings of another kind. */
export const makeBatch = <T, E = never, R = never>(
  options: Settings<T, E> & {
    /** Handles one or more messages of one topic. */
    readonly handleBatch: BatchMessageHandler<T, E, R>
    /** Most messages of a batch, 1 or more. Default: the broker's, which is 500. */
    readonly maxMessages?: number
  }
): MessageConsumer<T, E, R> => {
  const given = { ...required, handleBatch: Kinds.func }
  Kinds.refuse(Kinds.struct({ ...optional, maxMessages: count }, given)("MessageConsumer.makeBatch", options))
  return describe(options, { _tag: "Batch", handle: options.handleBatch, maxMessages: options.maxMessages })
}

const count: Ranges.Range = Ranges.binding.maxPollRecords

const topic = Kinds.struct({}, { name: Kinds.name, payload: Kinds.serde }, "a Topic")
const names = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value.map((entry) => entry?.name) : []
const topics: Kinds.Kind = (path, found) => {
  const distinct = Kinds.make("a list of one or more topics, each once", (value) => {
    const all = names(value)
    return all.length > 0 && new Set(all).size === all.length
  })(path, found)
  return distinct.length > 0 ? distinct : Kinds.listOf(topic)(path, found)
}

const required = { topics, groupId: Kinds.name }
const optional = {
  name: Kinds.name,
  brokerType: Kinds.name,
  naming: Kinds.oneOf(["topic", "group"]),
  concurrency: Ranges.binding.concurrency,
  retry: MessageRetry.kind,
  isRetryable: Kinds.func,
  shutdownTimeout: Ranges.binding.shutdownTimeout
}

const describe = <T, E, R>(
  { topics, groupId, name = groupId, ...options }: Settings<T, E>,
  handler: Handler<T, E, R>
): MessageConsumer<T, E, R> => ({
  ...{ name, topics, groupId, handler },
  brokerType: options.brokerType,
  naming: options.naming ?? "topic",
  concurrency: options.concurrency,
  retry: options.retry === undefined ? undefined : MessageRetry.make(options.retry),
  isRetryable: options.isRetryable,
  shutdownTimeout: options.shutdownTimeout
})

/**
 * Runs a consumer for as long as the layer lives. Closing it stops the consumer: no new message then, handlers that run end within `shutdownTimeout`, and what is done is
 * acknowledged. Where its broker is left out on purpose (`MessageBrokerFactory.SkippedBroker`), the consumer is not started, and a log line says so. Fails where no such
 * broker is registered, and for what no waiting cures, such as a wrong setting.
 */
export const layer = <T, E, R>(
  consumer: MessageConsumer<T, E, R>
): Layer.Layer<never, MessagingException | BrokerNotRegistered | NoBrokerRegistered, R | MessageBrokerFactory> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const factory = yield* MessageBrokerFactory
      const skipped = skippedFor(consumer, factory)
      if (skipped !== undefined) return yield* notStarted(consumer.name, skipped)
      const broker = yield* factory.getBroker(consumer.brokerType)
      const metrics = yield* MessagingMetrics.make(broker.type)
      yield* broker.consume(ObservedConsumer.make(consumer, metrics), {
        onDeadLetter: (of) => metrics.unsafe.count("dlq", of, 1)
      })
    })
  )

/** Where a consumer names no broker, it has none when all are left out. */
const skippedFor = (
  { brokerType }: Pick<MessageConsumer<unknown>, "brokerType">,
  { skipped, getDefaultBrokerType }: MessageBrokerFactory["Service"]
): SkippedBroker | undefined =>
  brokerType === undefined
    ? getDefaultBrokerType === undefined
      ? skipped[0]
      : undefined
    : skipped.find(({ type }) => type === brokerType)

const notStarted = (name: string, { type, reason }: SkippedBroker) =>
  Effect.logWarning(`Consumer '${name}' is not started: ${type} is left out (${reason})`)
