/** Users may replace the defaults; these tests show where each replacement applies. */
import { assert, describe } from "@effect/vitest"
import { Binding, IdempotencyStore, Interceptor, RetryPolicy, Route, TopicName } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Clock, Context, Effect, Layer } from "effect"
import { advance, append, bytes, headersOf, orders, scenario, settle, start, text } from "../bus.ts"

const topic = Effect.flatMap(MemoryBroker.MemoryBroker, ({ createTopic }) => createTopic("orders"))

const noting =
  (notes: Array<string>, name: string): Interceptor.Interceptor =>
  (handle, { binding, tier, records }) =>
    Effect.onExit(
      Effect.andThen(
        Effect.sync(() => notes.push(`${name} ${binding} tier ${tier} ${records.map(({ value }) => text(value))}`)),
        handle
      ),
      ({ _tag }) => Effect.sync(() => notes.push(`${name} ${_tag}`))
    )

describe("interceptors", () => {
  scenario("EXT-01 BND-06 run around each attempt, those of the program outside those of the binding", () =>
    Effect.gen(function* () {
      yield* topic
      yield* append("orders", 0, ["a"])
      const notes: Array<string> = []
      let calls = 0
      const binding = Binding.make("orders", {
        ...orders,
        retry: RetryPolicy.blocking({ maxAttempts: 2 }),
        interceptors: [noting(notes, "own")],
        handler: () => (++calls === 1 ? Effect.fail("no") : Effect.void),
        onError: () => Route.retry
      })
      const layers = Interceptor.layer(noting(notes, "second")).pipe(
        Layer.provideMerge(Interceptor.layer(noting(notes, "first")))
      )
      yield* Effect.provide(start(binding), layers)
      yield* advance("1 second")
      const begun = ["first", "second", "own"].map((name) => `${name} orders tier 0 a`)
      assert.deepStrictEqual(notes, [
        ...begun,
        ...["own Failure", "second Failure", "first Failure"],
        ...begun,
        ...["own Success", "second Success", "first Success"]
      ])
    })
  )

  scenario(
    "EXT-01 an interceptor provides services to the handler and can cut it short; an interceptor that throws fails the record",
    () =>
      Effect.gen(function* () {
        yield* topic
        yield* append("orders", 0, ["slow", "thrown", "fine"])
        const Tenant = Context.Reference<string>("test/Tenant", { defaultValue: () => "nobody" })
        const seen: Array<string> = []
        const { of } = yield* start(
          Binding.make("orders", {
            ...orders,
            retry: RetryPolicy.none,
            interceptors: [
              (handle) => Effect.provideService(handle, Tenant, "ann"),
              (handle) =>
                Effect.timeoutOrElse(handle, { duration: "1 second", orElse: () => Effect.die(new Error("slow")) }),
              (handle, { records }) => {
                if (text(records[0]?.value) === "thrown") throw new TypeError("mine")
                return handle
              }
            ],
            handler: ({ value }) =>
              Effect.gen(function* () {
                if (value === "slow") return yield* Effect.never
                seen.push(`${value} of ${yield* Tenant}`)
              })
          })
        )
        yield* advance("5 seconds")
        assert.deepStrictEqual(seen, ["fine of ann"])
        assert.deepStrictEqual(
          of("Settled")
            .map(({ settlement, failure }) => `${settlement} ${failure?.message ?? ""}`)
            .sort(),
          ["DeadLettered mine", "DeadLettered slow", "Handled "]
        )
      })
  )

  scenario("EXT-01 run around batches and transactions, once for all records of a call", () =>
    Effect.gen(function* () {
      yield* topic
      yield* append("orders", 0, ["a", "b", "c"])
      const notes: Array<string> = []
      const interceptors = [noting(notes, "own")]
      yield* start(
        Binding.makeBatch("batches", { ...orders, interceptors, handleBatch: () => Effect.void }),
        Binding.makeTransactional("transfers", {
          ...orders,
          groupId: "t",
          interceptors,
          naming: TopicName.perGroup,
          handler: () => Effect.void
        })
      )
      yield* advance("1 second")
      assert.deepStrictEqual(notes.filter((note) => note.includes("tier")).sort(), [
        "own batches tier 0 a,b,c",
        "own transfers tier 0 a",
        "own transfers tier 0 b",
        "own transfers tier 0 c"
      ])
    })
  )
})

describe("header enrichment", () => {
  scenario("BND-15 EXT-01 a binding adds headers for its handler; the record and its copies stay unchanged", () =>
    Effect.gen(function* () {
      yield* topic
      const memory = yield* MemoryBroker.MemoryBroker
      const own = { key: "region", value: bytes("theirs") }
      yield* memory.append("orders", 0, [{ value: bytes("a"), headers: [own] }])
      const seen: Array<ReadonlyMap<string, string | null>> = []
      yield* start(
        Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.none,
          enrich: ({ partition }) => [
            { key: "region", value: bytes(`eu-${partition}`) },
            { key: "x-eventbus-binding-name", value: bytes("forged") }
          ],
          handler: (delivery) =>
            Effect.suspend(() => {
              seen.push(headersOf(delivery))
              return Effect.die("no")
            })
        })
      )
      yield* settle
      assert.strictEqual(seen[0]?.get("region"), "eu-0")
      assert.strictEqual(seen[0]?.get("x-eventbus-binding-name"), "orders")
      assert.strictEqual(headersOf((yield* memory.log("orders.DLT", 0))[0]).get("region"), "theirs")
    })
  )
})

describe("listeners", () => {
  scenario("EXT-01 NFR-09 a listener that throws changes nothing, and the others hear every event", () =>
    Effect.gen(function* () {
      yield* topic
      const { connector, of } = yield* start()
      yield* connector.subscribe(() => {
        throw new Error("mine")
      })
      yield* connector.register(Binding.make("orders", { ...orders, handler: () => Clock.currentTimeMillis }))
      yield* append("orders", 0, ["a", "b"])
      yield* settle
      assert.strictEqual(of("Settled").filter(({ settlement }) => settlement === "Handled").length, 2)
    })
  )
})

describe("strategies", () => {
  scenario("EXT-02 a custom naming strategy names the topics of copies", () =>
    Effect.gen(function* () {
      yield* topic
      yield* append("orders", 0, ["a"])
      const naming: TopicName.NamingStrategy = {
        name: "shouting",
        retry: ({ topic }, n) => `${topic}.AGAIN-${n}`,
        deadLetter: ({ topic, groupId }) => `${groupId}.${topic}.DEAD`
      }
      yield* start(
        Binding.make("orders", { ...orders, naming, retry: RetryPolicy.none, handler: () => Effect.die("no") })
      )
      yield* settle
      const { log } = yield* MemoryBroker.MemoryBroker
      assert.strictEqual((yield* log("billing.orders.DEAD", 0)).length, 1)
    })
  )

  scenario(
    "EXT-02 NFR-03 delivery is at least once; with an idempotency store a repeated record is not handled again",
    () =>
      Effect.gen(function* () {
        yield* topic
        const { setCommitted } = yield* MemoryBroker.MemoryBroker
        yield* append("orders", 0, ["a", "b"])
        const handled: Array<string> = []
        const handler = ({ value }: { readonly value: string }) => Effect.sync(() => handled.push(value))
        const twice = <R>(binding: Binding.Binding<R>) =>
          Effect.gen(function* () {
            for (const offset of [0n, 1n]) {
              // As after a crash before the commit.
              yield* setCommitted("billing", "orders", 0, offset)
              const app = yield* start(binding)
              yield* settle
              yield* app.close
            }
            return handled.splice(0)
          })
        assert.deepStrictEqual(yield* twice(Binding.make("orders", { ...orders, handler })), ["a", "b", "b"])
        const once = Binding.make("orders", { ...orders, idempotency: {}, handler })
        assert.deepStrictEqual(yield* Effect.provide(twice(once), IdempotencyStore.layerMemory()), ["a", "b"])
      })
  )
})
