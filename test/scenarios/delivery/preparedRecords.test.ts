/** Records whose serde has to fetch something before it can decode them. */
import { assert, describe } from "@effect/vitest"
import { Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Latch } from "effect"
import { advance, append, scenario, settle, start, text, until, valuesOf } from "../bus.ts"
import { Down, kinds } from "../kinds.ts"

/** Text; what begins with `#` can be decoded only while its schema is here. */
const makeSerde = () => {
  const arrives = Latch.makeUnsafe(false)
  let isHere = false
  let waiting = 0
  const needs = (bytes: Uint8Array | null) => text(bytes)?.startsWith("#") === true
  const serde: Serde.Serde<string | null> = {
    ...Serde.make<string | null>({
      name: "fetched",
      decode: (bytes) => {
        if (needs(bytes) && !isHere) throw new Error("its schema is not here")
        return text(bytes)
      },
      encode: () => new Uint8Array()
    }),
    prepare: (bytes) =>
      isHere || !needs(bytes)
        ? undefined
        : Effect.suspend(() => {
            waiting++
            return Effect.ensuring(
              arrives.await,
              Effect.sync(() => waiting--)
            )
          })
  }
  return {
    serde: Serde.nullable(serde),
    waiting: () => waiting,
    arrive: Effect.sync(() => {
      isHere = true
      arrives.openUnsafe()
    }),
    leave: Effect.sync(() => {
      isHere = false
      arrives.closeUnsafe()
    })
  }
}

const values = ["1", "2", "#3", "4", "#5", "6"]

for (const [kind, bindingOf] of Object.entries(kinds)) {
  describe(`records whose serde waits for a schema, ${kind}`, () => {
    scenario(
      "SER-06 LIF-21 an outage dead-letters nothing, and health names it: records before it are handled and committed, the rest in order afterwards",
      () =>
        Effect.gen(function* () {
          const memory = yield* cluster
          yield* append("orders", 0, values)
          const handled: Array<string | null> = []
          const { serde, arrive, waiting } = makeSerde()
          const app = yield* start(
            bindingOf({ value: serde, handle: ({ value }) => Effect.sync(() => handled.push(value)) })
          )
          yield* advance("1 hour")
          assert.deepStrictEqual(handled, ["1", "2"])
          assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
          assert.strictEqual(waiting(), 1)
          const { status, reasons } = yield* app.connector.health
          assert.strictEqual(status, "DOWN")
          assert.deepInclude(reasons[0], { _tag: "SerdeWaiting", topic: "orders", lag: 4n, forMillis: 3_600_000 })
          yield* arrive
          yield* until(() => handled.length === values.length, "1 second")
          yield* advance("1 second")
          assert.strictEqual((yield* app.connector.health).status, "UP")
          assert.deepStrictEqual(handled, values)
          assert.deepStrictEqual(
            app.of("Settled").map(({ settlement, attempts }) => `${settlement} ${attempts}`),
            values.map(() => "Handled 1")
          )
          assert.deepStrictEqual(app.of("SessionCrashed"), [])
          assert.deepStrictEqual(app.of("ProcessingBudgetReached"), [])
          assert.strictEqual(waiting(), 0)
        })
    )

    scenario("SER-06 a stop ends the wait at once and leaves the record; the next process handles it", () =>
      Effect.gen(function* () {
        yield* cluster
        yield* append("orders", 0, values)
        const handled: Array<string | null> = []
        const { serde, arrive, waiting } = makeSerde()
        const binding = bindingOf({ value: serde, handle: ({ value }) => Effect.sync(() => handled.push(value)) })
        const first = yield* start(binding)
        assert.strictEqual(waiting(), 1)
        yield* first.close
        assert.strictEqual(waiting(), 0)
        assert.deepStrictEqual(handled, ["1", "2"])
        assert.deepStrictEqual(first.of("DrainTimedOut"), [])
        yield* arrive
        const second = yield* start(binding)
        yield* until(() => handled.length === values.length, "1 second")
        assert.deepStrictEqual(handled, values)
        assert.deepStrictEqual(
          [...first.of("Settled"), ...second.of("Settled")].map(({ settlement }) => settlement),
          values.map(() => "Handled")
        )
      })
    )

    scenario("SER-06 a record also waits in its retry topic, after its delay", () =>
      Effect.gen(function* () {
        yield* cluster
        yield* append("orders", 0, ["#1"])
        const tiers: Array<number> = []
        const { serde, arrive, leave, waiting } = makeSerde()
        yield* arrive
        const app = yield* start(
          bindingOf({
            value: serde,
            handle: ({ tier }) => {
              tiers.push(tier)
              return tier === 0 ? Effect.fail(new Down()) : Effect.void
            }
          })
        )
        yield* until(() => app.of("Settled").length === 1)
        const before = tiers.length
        yield* leave
        yield* advance("1 hour")
        assert.strictEqual(waiting(), 1)
        assert.strictEqual(tiers.length, before)
        yield* arrive
        yield* until(() => app.of("Settled").length === 2, "1 second")
        assert.strictEqual(tiers.at(-1), 1)
        assert.strictEqual(app.of("Settled").at(-1)?.settlement, "Handled")
      })
    )

    scenario("SER-02 when a serde fails while it prepares, the record is dead-lettered", () =>
      Effect.gen(function* () {
        yield* cluster
        yield* append("orders", 0, ["throws", "dies", "good"])
        const handled: Array<string | null> = []
        const broken: Serde.Serde<string | null> = {
          ...Serde.make<string | null>({
            name: "broken",
            decode: (bytes) => {
              const value = text(bytes)
              if (value !== "good") throw new Error("not prepared")
              return value
            },
            encode: () => new Uint8Array()
          }),
          prepare: (bytes) => {
            if (text(bytes) === "throws") throw new Error("thrown")
            return text(bytes) === "dies" ? Effect.die("died") : undefined
          }
        }
        const app = yield* start(
          bindingOf({ value: broken, handle: ({ value }) => Effect.sync(() => handled.push(value)) })
        )
        yield* until(() => app.of("Settled").length === 3, "1 second")
        assert.deepStrictEqual(handled, ["good"])
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["throws", "dies"])
        assert.deepStrictEqual(app.of("SessionCrashed"), [])
      })
    )
  })
}

const cluster = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.createTopic("out")
  yield* settle
  return memory
})
