import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { MessageBroker, MessageBrokerFactory, Topic } from "@eventbus/messaging"
import { MemoryBroker, VirtualClock } from "@eventbus/testkit"
import { Effect, Layer, Schema } from "effect"
import * as Memory from "./memory.ts"

const topic = Topic.json("orders", Schema.Struct({ id: Schema.Int }))

/** A cluster whose transactional producers need a second to connect. The id of each is noted. */
const connectingSlowly = (ids: Array<string>) =>
  Layer.effect(
    Broker.Broker,
    Effect.map(Broker.Broker, (broker) => ({
      ...broker,
      transactionalProducer: (options: Broker.TransactionalProducerOptions) =>
        Effect.sync(() => ids.push(options.transactionalId)).pipe(
          Effect.andThen(Effect.sleep("1 second")),
          Effect.andThen(broker.transactionalProducer(options))
        )
    }))
  )

describe("messages in transactions", () => {
  it.effect(
    "MSG-14 each message is committed in a transaction of its own; sends that come at once share one producer",
    () => {
      const ids: Array<string> = []
      const producer = { transactionalEnabled: true, transactionalIdPrefix: "docs-tx-", linger: 0 }
      const messaging = Memory.onBroker({ producer }).pipe(
        Layer.provide(connectingSlowly(ids)),
        Layer.provideMerge(MemoryBroker.layer()),
        Layer.provideMerge(VirtualClock.layer)
      )
      return Effect.gen(function* () {
        const broker = yield* MessageBroker.MessageBroker
        yield* broker.declareTopics([{ name: topic.name, partitions: 1 }])
        const layer = MessageBrokerFactory.layer({ brokers: [Layer.succeed(MessageBroker.MessageBroker, broker)] })
        const factory = yield* Effect.provide(MessageBrokerFactory.MessageBrokerFactory, layer)
        const { send } = yield* factory.getDefaultProducer
        const results = yield* Effect.forEach([1, 2, 3], (id) => send({ id }, topic), { concurrency: "unbounded" })
        const errors = results.map(({ errorMessage }) => errorMessage)
        assert.deepStrictEqual(errors, [undefined, undefined, undefined])
        assert.strictEqual(ids.length, 1)
        assert.match(ids[0]!, /^docs-tx-[0-9a-f]{8}-[0-9a-f-]{27}$/)
        const { log } = yield* MemoryBroker.MemoryBroker
        const committed = yield* log(topic.name, 0, "read_committed")
        const stored = committed.map(({ offset, transactional }) => `${offset} ${transactional}`)
        // The marker of each transaction takes an offset.
        assert.deepStrictEqual(stored, ["0 true", "2 true", "4 true"])
      }).pipe(Effect.provide(messaging))
    }
  )
})
