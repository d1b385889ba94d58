/**
 * A consumer: the topics that a group reads, and the handler that gets their messages (brokers seed "MessageConsumer"). `make` describes, `layer` runs.
 *
 * A message is acknowledged when its handler has succeeded, or when its copy in a retry or dead letter destination is confirmed, and not before. A crash repeats messages and
 * loses none: handlers meet a message twice now and then. A payload that cannot be decoded is dead-lettered with its bytes, and the handler never sees it.
 */
import * as Kinds from "@eventbus/core/Kinds"
import * as Ranges from "@eventbus/core/Ranges"
import type { Time } from "@eventbus/core/Time"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { BrokerNotRegistered, NoBrokerRegistered } from "./BrokerRegistration.ts"
import * as ObservedConsumer from "./internal/observedConsumer.ts"
import { MessageBrokerFactory, type SkippedBroker } from "./MessageBrokerFactory.ts"
import type { MessageBrokerType } from "./MessageBrokerType.ts"
import type { BatchMessageHandler, MessageHandler } from "./MessageHandler.ts"
import * as MessageRetry from "./MessageRetry.ts"
import type { MessagingException } from "./MessagingException.ts"
import * as MessagingMetrics from "./MessagingMetrics.ts"
import type { Topic } from "./Topic.ts"

/** The settings that every consumer takes. Only `topics` and `groupId` have no default. */
export interface Settings<T, E> {
  /** Names the consumer in logs, states and health. Default: the group's name. */
  readonly name?: string
  /** The topics to read, one or more, each once. */
  readonly topics: readonly [Topic<T>, ...ReadonlyArray<Topic<T>>]
  /** The group: its members share the messages, and each group gets all of them. Not empty. */
  readonly groupId: string
  /** The broker to read from. Default: the default broker of `MessageBrokerFactory`. */
  readonly brokerType?: MessageBrokerType
  /** Handlers that may run at once in this process, 1 or more. On Kafka no more run than the topics have partitions. Default: the broker's, which is 3. */
  readonly concurrency?: number
  /**
   * The names of its retry and dead letter destinations. `topic`: `{topic}-retry` and `{topic}-dlq`. `group`: `{topic}-{group}-retry` and `{topic}-{group}-dlq`, which several
   * groups on one topic need: each has retries and dead letters of its own. Default `topic`.
   */
  readonly naming?: Naming
  /** How a failed message is tried again. Default: the broker's. */
  readonly retry?: MessageRetry.Options
  /**
   * Whether another try may cure an error of the handler. It is asked for typed errors before the list `nonRetryable`. Default: the list, and what the error says of itself by
   * `retryable`. One that throws means yes.
   */
  readonly isRetryable?: (error: E) => boolean
  /** The longest that stopping may wait for handlers that run, before it interrupts them; their messages come again. 0 or more. Default 30 seconds. */
  readonly shutdownTimeout?: Time
}

/** How retry and dead letter destinations are called. */
export type Naming = "topic" | "group"

/** A description of a consumer: nothing runs yet. `E` is what its handler fails with, `R` what it requires. */
export interface MessageConsumer<T, E = never, R = never> {
  /** Its name in logs, states and health. */
  readonly name: string
  /** The topics that it reads. */
  readonly topics: readonly [Topic<T>, ...ReadonlyArray<Topic<T>>]
  /** Its group. */
  readonly groupId: string
  /** Its broker. Undefined: the default broker. */
  readonly brokerType: MessageBrokerType | undefined
  /** Handlers at once. Undefined: the broker's default. */
  readonly concurrency: number | undefined
  /** How its retry and dead letter destinations are called. */
  readonly naming: Naming
  /** How a failed message is tried again. Undefined: the broker's default. */
  readonly retry: MessageRetry.MessageRetry | undefined
  /** Whether another try may cure a typed error. */
  readonly isRetryable: ((error: E) => boolean) | undefined
  /** The longest wait for handlers at the stop. Undefined: 30 seconds. */
  readonly shutdownTimeout: Time | undefined
  /** The handler, of single messages or of batches. */
  readonly handler: Handler<T, E, R>
}

/** The handler of a consumer. */
export type Handler<T, E, R> =
  | {
      readonly _tag: "Single"
      /** Handles one message. */
      readonly handle: MessageHandler<T, E, R>
    }
  | {
      readonly _tag: "Batch"
      /** Handles a batch. */
      readonly handle: BatchMessageHandler<T, E, R>
      /** Most messages of a batch, 1 or more. Undefined: the broker's default, which is 500. */
      readonly maxMessages: number | undefined
    }

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
