import { assert, describe } from "@effect/vitest"
import { Binding, type Broker, DeadLetter, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Latch, Queue } from "effect"
import { advance, append, inTime, orders, scenario, settle, start, text, until } from "../bus.ts"
import { Down } from "../kinds.ts"

const admin = <A, E>(use: (admin: Broker.Admin) => Effect.Effect<A, E>) =>
  MemoryBroker.MemoryBroker.use((memory) => inTime(Effect.scoped(Effect.flatMap(memory.broker.admin, use))))

const remake = (topic: string) =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    yield* admin((topics) => topics.deleteTopics([topic]))
    yield* memory.createTopic(topic)
  })

/** Another client commits in the name of the group, and leaves it. */
const commitWith = (metadata: string, offset: bigint) =>
  MemoryBroker.MemoryBroker.use(({ broker }) =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* broker.consumer({ groupId: "billing", topics: ["orders"] })
        const event = yield* Queue.take(session.events)
        if (event._tag !== "Assigned") return assert.fail(event._tag)
        yield* session.commit([{ topic: "orders", partition: 0, generation: event.generation, offset, metadata }])
      })
    )
  )

/** Notes the values that it has handled; the former topic's wait until the latch opens. */
const waiting = (handled: Array<string>, formerMayEnd: Latch.Latch) => ({
  ...orders,
  handler: ({ value }: { readonly value: string }) =>
    Effect.andThen(
      value.startsWith("former") ? formerMayEnd.await : Effect.void,
      Effect.sync(() => handled.push(value))
    )
})

describe("a topic is deleted and made again at once, while a record of the former one is handled", () => {
  for (const kind of ["make", "makeTransactional"] as const) {
    scenario(`CLN-13 ${kind}: the late commit for the former topic skips no record of the new one`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const formerMayEnd = Latch.makeUnsafe(false)
        const handled: Array<string> = []
        const options = waiting(handled, formerMayEnd)
        const app = yield* start(
          kind === "make" ? Binding.make("orders", options) : Binding.makeTransactional("orders", options)
        )
        yield* append("orders", 0, ["former-0"])
        yield* settle
        yield* remake("orders")
        yield* append("orders", 0, ["new-0", "new-1"])
        yield* formerMayEnd.open
        yield* until(() => handled.includes("new-1"), "5 seconds")
        assert.deepStrictEqual(handled, ["former-0", "new-0", "new-1"])
        // The next member starts behind the new records.
        yield* app.close
        yield* append("orders", 0, ["new-2"])
        yield* start(kind === "make" ? Binding.make("orders", options) : Binding.makeTransactional("orders", options))
        yield* until(() => handled.includes("new-2"), "5 seconds")
        assert.deepStrictEqual(handled, ["former-0", "new-0", "new-1", "new-2"])
      })
    )
  }

  scenario("CLN-13 an offset that a bridge has translated from another cluster is taken, metadata and all", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["a", "b", "c"])
      yield* commitWith("eventbus:topic=other-cluster/some-id", 2n)
      const handled: Array<string> = []
      yield* start(
        Binding.make("orders", { ...orders, handler: ({ value }) => Effect.sync(() => handled.push(value)) })
      )
      yield* settle
      assert.deepStrictEqual(handled, ["c"])
    })
  )

  scenario("CLN-13 a copy in a retry topic that the connector has made again is handled", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const formerMayEnd = Latch.makeUnsafe(false)
      const handled: Array<string> = []
      const calls = new Set<string>()
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 second"] }),
          onError: { Down: Route.retry },
          handler: ({ value }) =>
            Effect.gen(function* () {
              const isFirst = !calls.has(value)
              calls.add(value)
              if (isFirst) return yield* new Down()
              if (value === "former") yield* formerMayEnd.await
              handled.push(value)
            })
        })
      )
      yield* append("orders", 0, ["former"])
      yield* until(() => app.of("Started").length === 2, "1 second")
      assert.deepStrictEqual(handled, [])
      yield* admin((topics) => topics.deleteTopics(["orders.retry-1"]))
      // Its copy makes the retry topic again, before the handler of the former one has ended.
      yield* append("orders", 0, ["new"])
      yield* advance("10 seconds")
      const [copy] = yield* memory.log("orders.retry-1", 0)
      assert.strictEqual(text(copy?.value), "new")
      yield* formerMayEnd.open
      yield* until(() => handled.length === 2, "5 seconds")
      assert.deepStrictEqual(handled, ["former", "new"])
    })
  )

  scenario("CLN-13 a custom handler gets all dead letters of the new topic", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      for (const topic of ["orders", "orders.DLT"]) yield* memory.createTopic(topic)
      const formerMayEnd = Latch.makeUnsafe(false)
      const handled: Array<string | null> = []
      const deadLetter = DeadLetter.custom(({ value }) =>
        Effect.andThen(
          text(value) === "former-1" ? formerMayEnd.await : Effect.void,
          Effect.sync(() => handled.push(text(value)))
        )
      )
      yield* start(Binding.make("orders", { ...orders, deadLetter, handler: () => Effect.die("no") }))
      yield* append("orders", 0, ["former-0", "former-1"])
      yield* until(() => handled.length === 1, "1 minute")
      yield* remake("orders.DLT")
      yield* append("orders.DLT", 0, ["new-0", "new-1", "new-2"])
      yield* formerMayEnd.open
      yield* advance("10 seconds")
      assert.deepStrictEqual(handled, ["former-0", "former-1", "new-0", "new-1", "new-2"])
    })
  )
})
