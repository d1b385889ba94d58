import { assert, describe, it } from "@effect/vitest"
import { Binding, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, type Fiber, Scheduler } from "effect"
import { advance, append, orders, runScenario, start } from "../bus.ts"

/** Effect's own scheduler, by which one fiber yields once more than it would, at the step `at` from when `steps` is 0: it always does at its 2048th. */
class OneYieldMore extends Scheduler.MixedScheduler {
  steps = Number.NEGATIVE_INFINITY
  readonly at: number
  constructor(at: number) {
    super()
    this.at = at
  }
  override shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    return ++this.steps === this.at || super.shouldYield(fiber)
  }
}

describe("a partition that is paused for back-pressure (ruling 9)", () => {
  for (const processingOrder of ["partition", "key"] as const)
    it(`${processingOrder}: is fetched again, at whatever point a fiber yields`, async () => {
      for (let at = 1; at < 60; at++) {
        const scheduler = new OneYieldMore(at)
        const scenario = Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          yield* memory.createTopic("orders", { partitions: 1 })
          const handled: Array<string> = []
          const handler = ({ value }: { readonly value: string }) => Effect.sync(() => void handled.push(value))
          const settings = {
            ackMode: "MANUAL",
            maxBufferedRecords: 3,
            retry: RetryPolicy.none,
            processingOrder
          } as const
          yield* start(Binding.make("orders", { ...orders, ...settings, handler }))
          yield* advance("1 second")
          scheduler.steps = 0
          yield* append("orders", 0, ["a", "b", "c"])
          yield* advance("10 millis")
          scheduler.steps = Number.NEGATIVE_INFINITY
          yield* advance("1 minute")
          yield* append("orders", 0, ["d"])
          yield* advance("1 minute")
          assert.deepStrictEqual(handled.toSorted(), ["a", "b", "c", "d"], `one more yield at step ${at}`)
        })
        await runScenario(Effect.provideService(scenario, Scheduler.Scheduler, scheduler))
      }
    })
})
