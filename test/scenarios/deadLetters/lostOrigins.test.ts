/** Copies whose headers name no origin in the topics of the binding: those of a mirror that renames topics, and those that had no room for it. */
import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, bytes, inTime, scenario, start, text, until } from "../bus.ts"

class Down extends Data.TaggedError("Down") {}

/** A service in a process of its own with one tier. Its handler fails while `isDown`. */
const service = Effect.fnUntraced(function* (groupId: string, topic: string) {
  const state = { isDown: true, calls: [] as Array<string> }
  const app = yield* start(
    Binding.make(groupId, {
      ...{ topic, groupId, value: Serde.string, onError: { Down: Route.retry } },
      retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 second", maxAttempts: 1 }] }),
      handler: ({ value }) =>
        Effect.suspend(() => {
          state.calls.push(value)
          return state.isDown ? Effect.fail(new Down()) : Effect.void
        })
    })
  )
  const deadLettered = (count: number) =>
    until(() => app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered").length >= count, "1 second")
  return { state, deadLettered, deadLetters: yield* app.connector.deadLetters(groupId) }
})

const valuesOf = (topic: string) =>
  MemoryBroker.MemoryBroker.use((memory) =>
    Effect.map(memory.log(topic, 0), (records) => records.map(({ value }) => text(value)))
  )

/** A copy as its group wrote it. */
const copy = (value: string, headers: Readonly<Record<string, string>>) => ({
  key: bytes(value),
  value: bytes(value),
  headers: Object.entries(headers).map(([key, text]) => ({ key: `x-eventbus-${key}`, value: bytes(text) }))
})

const origin = { "original-topic": "orders", "original-partition": "0", "original-offset": "7" }

describe("copies without an origin in the topics of the binding", () => {
  scenario(
    "C33 ruling 70 ruling 71 behind a mirror that renames topics, a replay goes to the topic of its binding",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        for (const topic of ["orders", "eu.orders", "eu.orders.DLT"]) yield* memory.createTopic(topic)
        const billing = yield* service("billing", "orders")
        const shipping = yield* service("shipping", "eu.orders")
        // As they were in the other cluster, byte for byte: a dead letter, and a copy that waited in the tier.
        const letter = copy("dead there", { ...origin, "copy-owner": "orders.DLT/shipping" })
        yield* memory.append("eu.orders.DLT", 0, [letter])
        const waiting = copy("due here", { ...origin, "copy-owner": "orders.retry-1/shipping" })
        yield* memory.append("eu.orders.retry-1", 0, [waiting])
        yield* shipping.deadLettered(1)
        shipping.state.isDown = false
        assert.deepInclude(yield* inTime(shipping.deadLetters.replay(9)), { replayed: 2, refused: 0 })
        yield* advance("1 minute")
        assert.deepStrictEqual(shipping.state.calls, ["due here", "dead there", "due here"])
        // This cluster has a topic of the first name, too. Nothing of it was meant.
        assert.deepStrictEqual([yield* valuesOf("orders"), billing.state.calls], [[], []])
      })
  )

  scenario(
    "C34 ruling 71 a copy that had no room for its origin is replayed to the main topic, for its own group alone",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const billing = yield* service("billing", "orders")
        const shipping = yield* service("shipping", "orders")
        yield* memory.append("orders.retry-1", 0, [copy("large", { "copy-owner": "orders.retry-1/billing" })])
        yield* billing.deadLettered(1)
        billing.state.isDown = false
        assert.deepInclude(yield* inTime(billing.deadLetters.replay(9)), { replayed: 1, refused: 0 })
        yield* advance("1 minute")
        assert.deepStrictEqual([billing.state.calls, shipping.state.calls], [["large", "large"], []])
        assert.deepStrictEqual(yield* valuesOf("orders"), ["large"])
      })
  )
})
