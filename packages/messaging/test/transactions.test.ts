import { assert, describe, it } from "@effect/vitest"
import { MessageBroker, MessageBrokerFactory, Topic } from "@eventbus/messaging"
import { MemoryBroker, VirtualClock } from "@eventbus/testkit"
import { Effect, Layer, Schema } from "effect"
import * as Memory from "./memory.ts"

const topic = Topic.json("orders", Schema.Struct({ id: Schema.Int }))

describe("messages in transactions", () => {
  it.effect(
    "MSG-14 with transactionalEnabled each message is committed in a transaction of its own, many at once",
    () =>
      Effect.gen(function* () {
        const broker = yield* MessageBroker.MessageBroker
        yield* broker.declareTopics([{ name: topic.name, partitions: 1 }])
        const layer = MessageBrokerFactory.layer({ brokers: [Layer.succeed(MessageBroker.MessageBroker, broker)] })
        const results = yield* Effect.gen(function* () {
          const { send } = yield* Effect.flatMap(
            MessageBrokerFactory.MessageBrokerFactory,
            (one) => one.getDefaultProducer
          )
          return yield* Effect.forEach([1, 2, 3], (id) => send({ id }, topic), { concurrency: "unbounded" })
        }).pipe(Effect.provide(layer))
        assert.deepStrictEqual(
          results.map(({ success, errorMessage }) => [success, errorMessage]),
          [
            [true, undefined],
            [true, undefined],
            [true, undefined]
          ]
        )
        const { log } = yield* MemoryBroker.MemoryBroker
        const committed = yield* log(topic.name, 0, "read_committed")
        // The marker of each transaction takes an offset.
        assert.deepStrictEqual(
          committed.map(({ offset, transactional }) => [offset, transactional]),
          [
            [0n, true],
            [2n, true],
            [4n, true]
          ]
        )
      }).pipe(
        Effect.provide(
          Layer.provideMerge(Memory.layer({ producer: { transactionalEnabled: true, linger: 0 } }), VirtualClock.layer)
        )
      )
  )
})
