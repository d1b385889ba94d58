import { assert, describe } from "@effect/vitest"
import { Binding } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, start, until, valuesOf } from "../scenarios/bus.ts"

const values = Array.from({ length: 50 }, (_, index) => `v${index}`)

describe("C11 pause from inside the handler, second run: an operator's pause after record 10", () => {
  for (const [name, settings] of Object.entries({
    single: {},
    batch: { listenerType: "BATCH" },
    "by key": { processingOrder: "key", maxInFlight: 1 }
  } as const)) {
    scenario(
      `REB-10 ${name}: records 11 to 50 wait for the resume; then each is handled once, in the order of its mode`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders")
          yield* append("orders", 0, values)
          const handled: Array<string> = []
          const app = yield* start(
            Binding.make("orders", {
              ...orders,
              ...settings,
              maxPollRecords: 50,
              handler: ({ value }) =>
                Effect.andThen(
                  Effect.sleep("10 millis"),
                  Effect.sync(() => handled.push(value))
                )
            })
          )
          yield* until(() => handled.length === 9, "10 millis")
          yield* app.connector.pause("orders")
          yield* advance("1 hour")
          assert.deepStrictEqual(handled, values.slice(0, 10))
          // A batch is acknowledged as a whole; a pause flushes what is finished at that moment.
          assert.strictEqual(yield* memory.committed("billing", "orders", 0), name === "batch" ? 9n : 10n)
          yield* app.connector.resume("orders")
          yield* until(() => handled.length === 50, "100 millis")
          // Every record has a key of its own here: by key, nothing is promised about the order between them.
          if (name === "by key") assert.sameMembers(handled, values)
          else assert.deepStrictEqual(handled, values)
          assert.deepStrictEqual(
            yield* Effect.exit(valuesOf("orders.DLT")).pipe(Effect.map((exit) => exit._tag)),
            "Failure"
          )
        })
    )
  }
})
