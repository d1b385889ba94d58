/** How the services of this program send: by the default broker, whichever that is. */
import { Message, MessageBrokerFactory, type Topic } from "@eventbus/messaging"
import { Effect } from "effect"

/** Sends a payload. The result says whether the broker keeps it; wait for it, or fork the effect and go on. Fails where the program runs without messaging. */
export const send = Effect.fnUntraced(function* <T>(payload: T, topic: Topic.Topic<T>, key?: string) {
  const { getDefaultProducer } = yield* MessageBrokerFactory.MessageBrokerFactory
  const producer = yield* getDefaultProducer
  return yield* producer.send(yield* Message.of(payload, topic, key))
})
