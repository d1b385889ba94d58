/** Outcomes: acknowledgement, and the end of a consumer. */

import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { assert } from "vitest"
import * as MessageBroker from "../MessageBroker.ts"
import { Away, consume, eventually, ids, type Outcome, order, orders, producer, quietTime, unique } from "./harness.ts"

export const stopping: ReadonlyArray<Outcome> = [
  {
    title: "a consumer that stops waits for its handler, acknowledges the message, and gets no new one",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const groupId = unique("group")
      const [started, finish] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const first = yield* consume(
        topic,
        () => Effect.andThen(Deferred.succeed(started, undefined), Deferred.await(finish)),
        { groupId, name: `${groupId}-1` }
      )
      const { send } = yield* producer
      yield* Effect.forEach(["1", "2"], (id) => send(order(id), topic), { discard: true })
      yield* Deferred.await(started)
      const stopped = yield* Effect.forkChild(first.stop)
      yield* quietTime
      yield* Deferred.succeed(finish, undefined)
      yield* Fiber.join(stopped)
      assert.deepStrictEqual(ids(first), ["1"])
      const second = yield* consume(topic, undefined, { groupId, name: `${groupId}-2` })
      yield* second.awaits(1)
      yield* quietTime
      assert.deepStrictEqual(ids(second), ["2"])
    })
  },
  {
    title: "a handler that outlasts shutdownTimeout is interrupted, and its message comes again",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const groupId = unique("group")
      let interrupted = 0
      const first = yield* consume(
        topic,
        () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++)),
        { groupId, name: `${groupId}-1`, shutdownTimeout: 500 }
      )
      const { send } = yield* producer
      yield* send(order("1"), topic)
      yield* first.awaits(1)
      yield* first.stop
      assert.strictEqual(interrupted, 1)
      const second = yield* consume(topic, undefined, { groupId, name: `${groupId}-2` })
      yield* second.awaits(1)
      assert.deepStrictEqual(ids(second), ["1"])
      yield* eventually(() => assert.deepStrictEqual([first.told, second.told], [[], []]))
    })
  },
  {
    title: "a message that waits for its next try when the consumer stops is tried by the next one",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const groupId = unique("group")
      const retry = { initialInterval: 1_000 }
      const failing = () => Effect.fail(new Away({ detail: "away" }))
      const first = yield* consume(topic, failing, { groupId, name: `${groupId}-1`, retry })
      const { send } = yield* producer
      yield* send(order("1"), topic)
      yield* first.awaits(1)
      yield* first.stop
      const second = yield* consume(topic, undefined, { groupId, name: `${groupId}-2`, retry })
      yield* second.awaits(1)
      assert.deepStrictEqual(ids(second), ["1"])
    })
  },
  {
    title: "ruling 90 a broker names what it cannot do, by a typed answer",
    run: Effect.gen(function* () {
      const broker = yield* MessageBroker.MessageBroker
      for (const capability of MessageBroker.capabilities) {
        const answer = yield* Effect.result(MessageBroker.require(broker, capability))
        assert.strictEqual(answer._tag, broker.capabilities.has(capability) ? "Success" : "Failure", capability)
        if (answer._tag === "Failure") {
          assert.deepInclude(answer.failure, { _tag: "UnsupportedCapability", brokerType: broker.type, capability })
        }
      }
    })
  }
]
