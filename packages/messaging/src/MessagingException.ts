/**
 * Failures of a broker, in words that name no broker's client. The error of the client is the cause.
 */
import * as Schema from "effect/Schema"
import type { MessageBrokerType } from "./MessageBrokerType.ts"

/** A failed send, a consumer that cannot run, or another failure of a broker. */
export class MessagingException extends Schema.TaggedError<MessagingException>()("MessagingException", {
  /** The failure, for people. */
  text: Schema.String,
  /** The kind of the broker. Absent when no broker is concerned. */
  brokerType: Schema.optionalKey(Schema.String),
  /** The id of the message. Absent when no single message is concerned. */
  messageId: Schema.optionalKey(Schema.String),
  /** The name of the topic. Absent when no topic is concerned. */
  topic: Schema.optionalKey(Schema.String),
  /** The error behind it. Absent when there is none. */
  cause: Schema.optionalKey(Schema.Defect())
}) {
  /** Whether the same call may succeed later: what the cause says of itself, and true where it says nothing. */
  get retryable(): boolean {
    const cause: unknown = this.cause
    return !(typeof cause === "object" && cause !== null && "retryable" in cause && cause.retryable === false)
  }
  override get message(): string {
    return this.text
  }
}

/** `Failed to send message {id} to topic {topic} via {broker}`, with its cause. */
export const sendFailed = (
  brokerType: MessageBrokerType,
  messageId: string,
  topic: string,
  cause: unknown
): MessagingException => {
  const text = `Failed to send message ${messageId} to topic ${topic} via ${brokerType}`
  return new MessagingException({ text, brokerType, messageId, topic, cause })
}

/** `Failed to receive message from topic {topic} via {broker}`, with its cause. */
export const receiveFailed = (brokerType: MessageBrokerType, topic: string, cause: unknown): MessagingException => {
  const text = `Failed to receive message from topic ${topic} via ${brokerType}`
  return new MessagingException({ text, brokerType, topic, cause })
}
