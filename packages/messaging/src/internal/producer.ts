/** The producer of a broker: header with the id, result, time limit and metrics around the broker's `send`. */
import * as BrokerError from "@eventbus/core/BrokerError"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Message from "../Message.ts"
import type { MessageBroker } from "../MessageBroker.ts"
import type { MessageProducer } from "../MessageProducer.ts"
import * as MessageResult from "../MessageResult.ts"
import * as MessagingException from "../MessagingException.ts"
import type { MessagingMetrics } from "../MessagingMetrics.ts"
import type { Topic } from "../Topic.ts"

export const make = (broker: MessageBroker["Service"], { unsafe }: MessagingMetrics): MessageProducer => {
  /** Fails with the broker's error, or with a defect of code that it calls. */
  const acknowledged = <T>(message: Message.Message<T>): Effect.Effect<MessageResult.MessageResult, unknown> =>
    Effect.flatMap(Clock.Clock, (clock) => {
      const startedNanos = clock.currentTimeNanosUnsafe()
      const topic = message.topic.name
      return broker.send(withId(message)).pipe(
        Effect.map((place) => {
          unsafe.time("send", topic, Number(clock.currentTimeNanosUnsafe() - startedNanos) / 1e9)
          unsafe.count("sent", topic, 1)
          return MessageResult.success(message.id, topic, clock.currentTimeMillisUnsafe(), place)
        }),
        Effect.catchCause((cause) => {
          if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause as Cause.Cause<never>)
          unsafe.count("failed", topic, 1)
          return Effect.fail(Cause.squash(cause))
        })
      )
    })

  const sendMessage = <T>(message: Message.Message<T>): Effect.Effect<MessageResult.MessageResult> =>
    Effect.catch(acknowledged(message), (error) =>
      Effect.map(Clock.currentTimeMillis, (at) => MessageResult.failure(message.id, message.topic.name, at, error))
    )

  return {
    brokerType: broker.type,
    send: <T>(given: Message.Message<T> | T, topic?: Topic<T>, key?: string) =>
      topic === undefined
        ? sendMessage(given as Message.Message<T>)
        : Effect.flatMap(Message.of(given as T, topic, key), sendMessage),
    sendAndWait: (message) =>
      acknowledged(message).pipe(
        Effect.timeoutOrElse({
          duration: broker.sendTimeoutMillis,
          orElse: () => Effect.fail(timedOut(broker.sendTimeoutMillis))
        }),
        Effect.mapError((cause) => MessagingException.sendFailed(broker.type, message.id, message.topic.name, cause))
      )
  }
}

/** The id of the message replaces a header of that name. */
const withId = <T>(message: Message.Message<T>): Message.Message<T> => ({
  ...message,
  headers: { ...message.headers, [Message.idHeader]: message.id }
})

const timedOut = (millis: number): BrokerError.RequestTimedOut =>
  new BrokerError.RequestTimedOut({ operation: "send", millis })
