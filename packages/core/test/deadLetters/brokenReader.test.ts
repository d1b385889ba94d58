import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, scenario, text } from "../../../../test/scenarios/bus.ts"
import type { Broker } from "../../src/Broker.ts"
import * as DeadLetter from "../../src/DeadLetter.ts"
import type { StrategyEvent } from "../../src/EventBusEvent.ts"
import * as Strategy from "../../src/internal/deadLetters/strategy.ts"

describe("DLT-20 ruling 86 the consumer of a custom handler of dead letters", () => {
  scenario("whose partition dies of a defect is made anew, and goes on behind its last commit", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders.DLT")
      yield* append("orders.DLT", 0, ["a", "b", "c"])
      let commits = 0
      const broker: Broker["Service"] = {
        ...memory.broker,
        consumer: (options) =>
          Effect.map(memory.broker.consumer(options), (session) => ({
            ...session,
            commit: (offsets) => (++commits === 2 ? Effect.die(new Error("a bug")) : session.commit(offsets))
          }))
      }
      const got: Array<string | null> = []
      const events: Array<StrategyEvent> = []
      yield* Strategy.run({
        deadLetter: DeadLetter.custom(({ value }) => Effect.sync(() => got.push(text(value)))),
        ...{ broker, groupId: "billing", adopts: [], deadLetterTopic: "orders.DLT" },
        ...{ maxBufferedBytes: 16_777_216, handlerTimeoutMillis: 420_000 },
        replays: { replayDue: () => Effect.die("not used") },
        onEvent: (event) => events.push(event),
        failures: { failed: () => {}, worked: () => {} }
      })
      for (let second = 0; second < 60; second++) yield* advance("1 second")
      assert.deepStrictEqual(got, ["a", "b", "b", "c"])
      assert.deepStrictEqual(
        events.map(({ _tag }) => _tag),
        ["StrategyFailed"]
      )
      assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), 3n)
    })
  )
})
