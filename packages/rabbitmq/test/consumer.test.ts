import { assert, describe, it } from "@effect/vitest"
import { DeadLetterHeaders, Message, MessageConsumer, Topic } from "@eventbus/messaging"
import { Deferred, Effect, Schema } from "effect"
import { onRabbitMq, letters, testBroker } from "./rabbit.ts"

const orders = Topic.json("orders", Schema.Struct({ id: Schema.Number }))
const messageOf = (id: number, key?: string) =>
  Effect.map(Message.of({ id }, orders, key, { "message-id": "" }), (message) => ({
    ...message,
    headers: { "message-id": message.id, tenant: "a" }
  }))

onRabbitMq("a consumer", () => {
  it.live("gets a message once it is confirmed, and dead-letters it after its tries", () =>
    Effect.gen(function* () {
      const { broker, prefix } = yield* testBroker()
      const seen: Array<unknown> = []
      const told: Array<string> = []
      const done = yield* Deferred.make<void>()
      const consumer = MessageConsumer.make({
        topics: [orders],
        groupId: "g",
        retry: { maxAttempts: 3, initialInterval: 50, multiplier: 2 },
        handle: (message) =>
          Effect.suspend(() => {
            seen.push([
              message.payload.id,
              message.key,
              message.attempt,
              message.headers["tenant"],
              message.timestamp > 0
            ])
            return Effect.fail(new Error("boom"))
          })
      })
      yield* broker.consume(consumer, {
        onDeadLetter: (topic) => {
          told.push(topic)
          Deferred.doneUnsafe(done, Effect.void)
        }
      })
      yield* broker.send(yield* messageOf(1, "k1"))
      yield* Deferred.await(done)
      assert.deepStrictEqual(seen, [
        [1, "k1", 1, "a", true],
        [1, "k1", 2, "a", true],
        [1, "k1", 3, "a", true]
      ])
      assert.deepStrictEqual(told, ["orders"])
      const [letter] = yield* letters(`${prefix}.orders-dlq`)
      assert.strictEqual(letter?.properties.headers?.[DeadLetterHeaders.names.retryCount], "2")
    }).pipe(Effect.scoped)
  )
})
