/** Many records, processes that come and go, retries that pile up behind a small buffer. */
import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { type App, advance, append, bytes, inTime, orders, scenario, start, until, valuesOf } from "../bus.ts"
import { Down, kinds } from "../kinds.ts"

const partitions = [0, 1, 2, 3, 4, 5]
const each = 300

describe("load", () => {
  for (const processingOrder of ["partition", "key", "unordered"] as const) {
    scenario(
      `TST-09 order ${processingOrder}: 1,800 records, one process, then three, then one; a tenth fails twice: no record is lost, and none is repeated in order`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders", { partitions: partitions.length })
          for (const at of partitions)
            yield* append(
              "orders",
              at,
              Array.from({ length: each }, (_, index) => `${at}-${index}`)
            )
          const handled = new Map<string, number>()
          const failures = new Map<string, number>()
          const binding = Binding.make("orders", {
            ...orders,
            processingOrder,
            ackMode: "MANUAL",
            maxBufferedRecords: 60,
            retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["10 seconds", "1 minute"] }),
            onError: { Down: Route.retry },
            handler: ({ value }) =>
              Effect.gen(function* () {
                yield* Effect.sleep("50 millis")
                const failed = failures.get(value) ?? 0
                if (value.endsWith("7") && failed < 2) {
                  failures.set(value, failed + 1)
                  return yield* new Down()
                }
                handled.set(value, (handled.get(value) ?? 0) + 1)
              })
          })
          const first = yield* start(binding)
          yield* advance("1 second")
          const more: Array<App> = []
          for (let process = 0; process < 2; process++) {
            more.push(yield* start(binding))
            yield* advance("2 seconds")
          }
          const { members } = yield* memory.group("billing")
          assert.deepStrictEqual(
            members.map(({ assignment }) => assignment.filter(({ topic }) => topic === "orders").length),
            [2, 2, 2]
          )
          for (const process of more) yield* inTime(process.close, "1 second")
          yield* until(() => handled.size === partitions.length * each, "5 seconds")
          yield* advance("1 second")
          const repeated = [...handled.values()].reduce((sum, times) => sum + times - 1, 0)
          // Side by side, what was handled behind a record that failed while its partition was given up is the next owner's, too.
          assert.isAtMost(repeated, processingOrder === "partition" ? 0 : partitions.length * 16)
          assert.isTrue(first.of("FetchPaused").some(({ reasons }) => reasons.includes("backpressure")))
          for (const at of partitions) {
            assert.strictEqual(yield* memory.committed("billing", "orders", at), BigInt(each))
          }
        })
    )
  }

  for (const [kind, bindingOf] of Object.entries(kinds)) {
    scenario(`TST-09 backpressure ${kind}: every record goes at once into one tier, and all come back on time`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.createTopic("out")
        yield* memory.append(
          "orders",
          0,
          Array.from({ length: 1_500 }, (_, index) => ({ key: bytes(`k${index % 50}`), value: bytes(String(index)) }))
        )
        const late: Array<number> = []
        const app = yield* start(
          bindingOf({
            handle: ({ tier, atMillis }) =>
              tier === 0 ? Effect.fail(new Down()) : Effect.sync(() => void late.push(atMillis - 10_000))
          })
        )
        yield* until(() => app.of("Settled").filter(({ settlement }) => settlement === "Routed").length === 1_500)
        yield* advance("10 seconds")
        yield* until(() => late.length >= 1_500)
        assert.strictEqual(late.length, 1_500)
        assert.isAtLeast(Math.min(...late), 0)
        assert.isAtMost(Math.max(...late), 1_000)
        assert.deepStrictEqual(
          yield* Effect.exit(valuesOf("orders.DLT")).pipe(Effect.map((exit) => exit._tag)),
          "Failure"
        )
      })
    )
  }
})
