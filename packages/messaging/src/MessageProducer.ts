/**
 * Sends messages to one broker. `MessageBrokerFactory` gives it.
 */
import type * as Effect from "effect/Effect"
import type { Message } from "./Message.ts"
import type { MessageBrokerType } from "./MessageBrokerType.ts"
import type { MessageResult } from "./MessageResult.ts"
import type { MessagingException } from "./MessagingException.ts"
import type { Topic } from "./Topic.ts"

/** Sends messages to one broker. */
export interface MessageProducer {
  /** The kind of its broker. */
  readonly brokerType: MessageBrokerType
  /**
   * Sends a message, or a payload for which it makes one. The result says whether the broker keeps it; the effect never fails. Fork it to go on at once: the broker sends
   * what is in flight together.
   */
  readonly send: {
    <T>(message: Message<T>): Effect.Effect<MessageResult>
    <T>(payload: NoInfer<T>, topic: Topic<T>, key?: string): Effect.Effect<MessageResult>
  }
  /**
   * Sends a message and waits for the acknowledgement, at most for the broker's time limit, 30 seconds by default. Fails with `MessagingException` where there is none. After
   * a time limit the message may have been written or not.
   */
  readonly sendAndWait: <T>(message: Message<T>) => Effect.Effect<MessageResult, MessagingException>
}
