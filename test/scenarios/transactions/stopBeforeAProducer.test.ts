import { assert, describe } from "@effect/vitest"
import { Binding, BrokerError } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, inTime, now, orders, scenario, start } from "../bus.ts"

/** The claim to a transactional id is refused each time. */
const claims = FaultPlan.chance(
  1,
  { operation: "endTransaction" },
  { _tag: "Refuse", error: new BrokerError.CoordinatorUnavailable({ detail: "it is starting" }) }
)

describe("a stop while a transactional partition cannot get its producer", () => {
  scenario(
    "ruling 35 LIF-12 ends the wait for the next attempt",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["a"])
        const app = yield* start(Binding.makeTransactional("orders", { ...orders, handler: () => Effect.void }))
        for (let step = 0; step < 30; step++) yield* advance("1 second")
        const began = yield* now
        yield* inTime(app.connector.stop("orders"), "100 millis")
        assert.isAtMost((yield* now) - began, 500)
        assert.deepStrictEqual(app.of("DrainTimedOut"), [])
        assert.deepStrictEqual(app.of("Started"), [])
      }),
    { faults: FaultPlan.make([claims]) }
  )
})
