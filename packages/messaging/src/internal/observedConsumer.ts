/** A consumer whose handler is counted and timed. */
import * as UserFunction from "@eventbus/core/UserFunction"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { MessageConsumer } from "../ConsumerDescription.ts"
import type { ReceivedMessage } from "../Message.ts"
import type { BatchMessageHandler, MessageHandler } from "../MessageHandler.ts"
import type { MessagingMetrics } from "../MessagingMetrics.ts"

export const make = <T, E, R>(
  consumer: MessageConsumer<T, E, R>,
  { unsafe }: MessagingMetrics
): MessageConsumer<T, E, R> => {
  const observed = <A, E2>(
    { topic: { name } }: ReceivedMessage<T>,
    count: number,
    handle: () => Effect.Effect<A, E2, R>
  ): Effect.Effect<A, E2, R> =>
    Effect.flatMap(Clock.Clock, (clock) => {
      const startedNanos = clock.monotonicTimeNanosUnsafe()
      const stop = () => unsafe.time("process", name, Number(clock.monotonicTimeNanosUnsafe() - startedNanos) / 1e9)
      const checked = () => UserFunction.checked(`the handler of consumer '${consumer.name}'`, handle())
      return Effect.onExit(Effect.suspend(checked), (exit) =>
        Effect.sync(() => {
          stop()
          if (exit._tag === "Success") unsafe.count("received", name, count)
        })
      )
    })
  const { handler } = consumer
  if (handler._tag === "Single") {
    const handle: MessageHandler<T, E, R> = (message) => observed(message, 1, () => handler.handle(message))
    return { ...consumer, handler: { _tag: "Single", handle } }
  }
  const handle: BatchMessageHandler<T, E, R> = (messages) =>
    observed(messages[0], messages.length, () => handler.handle(messages))
  return { ...consumer, handler: { ...handler, handle } }
}
