/** A topic is added to the list of a binding, or taken out of it, while old and new processes share the group. */
import { assert } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, append, inTime, scenario, start, until, valuesOf } from "../bus.ts"

class Down extends Data.TaggedError("Down") {}

const settings = { groupId: "billing", value: Serde.string, retry: RetryPolicy.blocking() } as const

const createTopics = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", "payments"]) yield* memory.createTopic(topic, { partitions: 4 })
})

/** One process of a version: it notes what it has handled. */
const process = (topic: string | ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const handled: Array<string> = []
    const binding = Binding.make("billing", {
      ...settings,
      topic,
      handler: ({ record, value }) => Effect.sync(() => void handled.push(`${record.topic} ${value}`))
    })
    return { ...(yield* start(binding)), handled }
  })

const toEach = (topic: string, value: string) =>
  Effect.forEach([0, 1, 2, 3], (partition) => append(topic, partition, [`${value}-${partition}`]))

const all = (topic: string, ...values: ReadonlyArray<string>) =>
  values.flatMap((value) => [0, 1, 2, 3].map((partition) => `${topic} ${value}-${partition}`))

scenario("RCH-11 a deploy adds a topic: while old and new processes share the group, each record is handled once", () =>
  Effect.gen(function* () {
    yield* createTopics
    const old = yield* process("orders")
    yield* toEach("orders", "before")
    yield* until(() => old.handled.length === 4, "1 second")
    const next = yield* process(["orders", "payments"])
    yield* advance("10 seconds")
    yield* toEach("orders", "during")
    yield* toEach("payments", "during")
    yield* until(() => old.handled.length + next.handled.length === 12, "1 second")
    // The old process knows nothing of the new topic, and its members share the old one.
    assert.deepStrictEqual(
      old.handled.filter((each) => each.startsWith("payments")),
      []
    )
    assert.strictEqual(old.handled.length > 4, true)
    yield* inTime(old.close)
    yield* toEach("orders", "after")
    yield* toEach("payments", "after")
    yield* until(() => old.handled.length + next.handled.length === 20, "1 second")
    yield* advance("10 seconds")
    assert.deepStrictEqual(
      [...old.handled, ...next.handled].toSorted(),
      [...all("orders", "before", "during", "after"), ...all("payments", "during", "after")].toSorted()
    )
  })
)

scenario(
  "RCH-11 a topic is taken out of the list: its records and its copies in retry topics stay, and go on when it is back",
  () =>
    Effect.gen(function* () {
      yield* createTopics
      const calls: Array<string> = []
      const version = (topic: string | ReadonlyArray<string>, isDown: boolean) =>
        Binding.make("billing", {
          ...settings,
          topic,
          retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "10 minutes", maxAttempts: 1 }] }),
          onError: { Down: Route.retry },
          handler: ({ record, value }) =>
            Effect.suspend(() => {
              calls.push(`${record.topic} ${value}`)
              return isDown ? Effect.fail(new Down()) : Effect.void
            })
        })
      const both = yield* start(version(["orders", "payments"], true))
      yield* append("payments", 0, ["retried"])
      yield* until(() => both.of("Settled").length === 1, "1 second")
      yield* inTime(both.close)
      const without = yield* start(version("orders", false))
      yield* append("payments", 0, ["unread"])
      yield* advance("30 minutes")
      assert.deepStrictEqual(calls, ["payments retried"])
      const copies = yield* Effect.forEach([0, 1, 2, 3], (partition) => valuesOf("payments.retry-1", partition))
      assert.deepStrictEqual(copies.flat(), ["retried"])
      yield* inTime(without.close)
      yield* start(version(["orders", "payments"], false))
      yield* until(() => calls.length === 3, "1 second")
      assert.deepStrictEqual(calls.toSorted(), ["payments retried", "payments unread", "payments.retry-1 retried"])
    })
)
