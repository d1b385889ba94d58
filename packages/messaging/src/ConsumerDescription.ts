/**
 * A consumer as a value: which topics its group reads, and the handler of their messages. `MessageConsumer.make` makes one, and a broker runs it.
 */
import type { Time } from "@eventbus/core/Time"
import type { MessageBrokerType } from "./MessageBrokerType.ts"
import type { BatchMessageHandler, MessageHandler } from "./MessageHandler.ts"
import type * as MessageRetry from "./MessageRetry.ts"
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
