/** The producer of a broker: header with the id, result, time limit and metrics around the broker's `send`. */
import * as BrokerError from "@eventbus/core/BrokerError"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Message from "../Message.ts"
import type { MessageBroker } from "../MessageBroker.ts"
import type { MessageProducer } from "../MessageProducer.ts"
import * as MessageResult from "../MessageResult.ts"
import * as MessagingException from "../MessagingException.ts"
import type { MessagingMetrics } from "../MessagingMetrics.ts"
import type { Topic } from "../Topic.ts"

export const make = (broker: MessageBroker["Service"], { unsafe }: MessagingMetrics): MessageProducer => {
  /**
   * The message has its id among its headers. Failures are told by `failed`, an interruption ends it. One effect around the broker's, since it runs for every message.
   */
  const sent = <T, E>(clock: Clock.Clock, message: Message.Message<T>, failed: Failed<E>) => {
    const startedNanos = clock.monotonicTimeNanosUnsafe()
    const { id, topic } = message
    return Effect.matchCauseEffect(broker.send(message), {
      onSuccess: (place) => {
        unsafe.time("send", topic.name, Number(clock.monotonicTimeNanosUnsafe() - startedNanos) / 1e9)
        unsafe.count("sent", topic.name, 1)
        return Effect.succeed(MessageResult.success(id, topic.name, clock.currentTimeMillisUnsafe(), place))
      },
      onFailure: (cause) => {
        if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause as Cause.Cause<never>)
        unsafe.count("failed", topic.name, 1)
        return failed(Cause.squash(cause), message, clock.currentTimeMillisUnsafe())
      }
    })
  }

  const asResult = <T>(error: unknown, { id, topic }: Message.Message<T>, atMillis: number) =>
    Effect.succeed(MessageResult.failure(id, topic.name, atMillis, error))

  return {
    brokerType: broker.type,
    send: <T>(given: Message.Message<T> | T, topic?: Topic<T>, key?: string) =>
      Effect.withFiber(({ context }) => {
        const clock = Context.get(context, Clock.Clock)
        const message =
          topic === undefined
            ? withId(given as Message.Message<T>)
            : withNewId(given as T, topic, key, clock.currentTimeMillisUnsafe())
        return sent(clock, message, asResult)
      }),
    sendAndWait: (message) =>
      Effect.withFiber(({ context }) => sent(Context.get(context, Clock.Clock), withId(message), Effect.fail)).pipe(
        Effect.timeoutOrElse({
          duration: broker.sendTimeoutMillis,
          orElse: () => {
            unsafe.count("failed", message.topic.name, 1)
            return Effect.fail(timedOut(broker.sendTimeoutMillis))
          }
        }),
        Effect.mapError((cause) => MessagingException.sendFailed(broker.type, message.id, message.topic.name, cause))
      )
  }
}

type Failed<E> = <T>(
  error: unknown,
  message: Message.Message<T>,
  atMillis: number
) => Effect.Effect<MessageResult.MessageResult, E>

/** The id of the message replaces a header of that name. */
const withId = <T>({ id, payload, topic, key, headers, timestamp }: Message.Message<T>): Message.Message<T> => ({
  id,
  payload,
  topic,
  key,
  headers: headers === Message.noHeaders ? { [Message.idHeader]: id } : { ...headers, [Message.idHeader]: id },
  timestamp
})

/** The message of a payload. No caller ever sees it, so it is not frozen and needs no copy with its id. */
const withNewId = <T>(payload: T, topic: Topic<T>, key: string | undefined, timestamp: number): Message.Message<T> => {
  const id = globalThis.crypto.randomUUID()
  return { id, payload, topic, key, headers: { [Message.idHeader]: id }, timestamp }
}

const timedOut = (millis: number): BrokerError.RequestTimedOut =>
  new BrokerError.RequestTimedOut({ operation: "send", millis })
