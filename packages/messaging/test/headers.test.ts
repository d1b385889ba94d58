import { assert, describe, it } from "@effect/vitest"
import { Serde } from "@eventbus/core"
import { Message, MessageBroker, MessageConsumer, Topic } from "@eventbus/messaging"
import { VirtualClock } from "@eventbus/testkit"
import { Deferred, Effect, Layer } from "effect"
import * as Memory from "./memory.ts"

describe("headers of messages on Kafka", () => {
  it.effect("C08 names that objects inherit arrive like any other", () =>
    Effect.gen(function* () {
      const names = ["__proto__", "constructor", "toString", "", "ключ"]
      const headers = Object.fromEntries(names.map((name) => [name, `value of ${name}`]))
      const topic = Topic.make("odd", Serde.string)
      const broker = yield* MessageBroker.MessageBroker
      yield* broker.declareTopics([{ name: "odd", partitions: 1 }])
      const seen = yield* Deferred.make<Message.Headers>()
      const consumer = MessageConsumer.make({
        ...{ topics: [topic], groupId: "g" },
        handle: (message) => Deferred.succeed(seen, message.headers)
      })
      yield* broker.consume(consumer, { onDeadLetter: () => {} })
      yield* broker.send(yield* Message.of("x", topic, "k", headers))
      assert.deepStrictEqual(Object.entries(yield* Deferred.await(seen)), Object.entries(headers))
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(Memory.layer(), VirtualClock.layer)))
  )
})
