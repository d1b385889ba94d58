/** Keys whose locks lead their group nowhere: the partition waits until an operator accepts the loss, and the locks become dead letters. */
import { assert, describe } from "@effect/vitest"
import { Binding, Outside, RetryPolicy, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, inTime, scenario, start, text } from "../bus.ts"
import { changed, keyed, locks, publishKeyed } from "./keys.ts"

const tier = "orders.retry-1"

/** Keys a and b are parked under a topic that is not there any more, and c1 is new. */
const stranded = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  yield* memory.createTopic("orders.DLT")
  const app = yield* start(keyed({ fails: { a1: 1, b1: 1 }, tiers: ["60 seconds"] }).binding)
  yield* publishKeyed("a1", "a2", "b1")
  yield* advance("1 second")
  const own = yield* locks
  yield* inTime(app.close)
  yield* memory.append(
    tier,
    0,
    own.map((lock) => changed(lock, { bond: "another//orders/0/billing" }))
  )
  // The locks of this topic are done with: only those of the other one are left.
  const end = BigInt((yield* memory.log(tier, 0)).length - own.length)
  yield* memory.setCommitted("billing", tier, 0, end)
  yield* publishKeyed("c1")
  return memory
})

const letters = Effect.gen(function* () {
  const { log } = yield* MemoryBroker.MemoryBroker
  return (yield* log("orders.DLT", 0)).map(({ value }) => text(value))
})

const process = Effect.fnUntraced(function* () {
  const { binding, handled } = keyed({ tiers: ["60 seconds"] })
  const app = yield* start(binding)
  yield* advance("10 seconds")
  return { app, handled, parked: yield* app.connector.parked("orders") }
})

describe("PKO-05 stranded keys", () => {
  scenario(
    "PKO-05 they stop their partition, are listed, and after acceptLoss are dead letters, also for later owners",
    () =>
      Effect.gen(function* () {
        yield* stranded
        const { app, handled, parked } = yield* process()
        const seen = (yield* inTime(parked.list)).map(({ key, state }) => [text(key), state])
        assert.deepStrictEqual(
          [seen, handled],
          [
            [
              ["a", "stranded"],
              ["b", "stranded"]
            ],
            []
          ]
        )
        const refused = yield* inTime(Effect.flip(parked.acceptLoss(1, "INC-1204")))
        assert.strictEqual(refused._tag, "StrandedKeysChanged")
        yield* Effect.repeat(advance("5 seconds"), { times: 3 })
        assert.deepStrictEqual([handled, yield* letters], [[], []])
        yield* inTime(parked.acceptLoss(2, "INC-1204"))
        yield* Effect.repeat(advance("5 seconds"), { times: 3 })
        assert.deepStrictEqual([handled, yield* letters], [["c1"], ["a1", "b1"]])
        assert.deepStrictEqual(
          app.of("KeyDecided").map(({ decision }) => decision.kind),
          ["accept-loss", "accept-loss"]
        )
        yield* inTime(app.close)
        const next = yield* process()
        yield* advance("90 seconds")
        assert.deepStrictEqual([yield* inTime(next.parked.list), next.handled, yield* letters], [[], [], ["a1", "b1"]])
      })
  )

  scenario("PKO-05 an acceptance outlives the process that took it, and covers no lock that came later", () =>
    Effect.gen(function* () {
      const memory = yield* stranded
      const log = yield* memory.log(tier, 0)
      const outside = yield* inTime(Outside.make([keyed({ tiers: ["60 seconds"] }).binding]))
      yield* inTime((yield* outside.parked("orders")).acceptLoss(2, "INC-1204"))
      const late = log.at(-1)!
      yield* memory.append(tier, 0, [changed(late, { bond: "third//orders/0/billing" })])
      const { handled, parked } = yield* process()
      assert.deepStrictEqual([handled, yield* letters], [[], []])
      assert.strictEqual((yield* inTime(parked.list)).length, 1)
      yield* inTime(parked.acceptLoss(1, "INC-1205"))
      yield* Effect.repeat(advance("5 seconds"), { times: 3 })
      assert.deepStrictEqual([handled, [...(yield* letters)].sort()], [["c1"], ["a1", "b1", "b1"]])
    })
  )

  scenario(
    "PKO-05 a renamed group does not start while keys of its former name are parked, and starts when they are done",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const former = keyed({ fails: { a1: 1 }, tiers: ["60 seconds"] })
        const app = yield* start(former.binding)
        yield* publishKeyed("a1", "a2")
        yield* advance("1 second")
        const [committed] = [yield* memory.committed("billing", "orders", 0)]
        yield* inTime(app.close)
        const handled: Array<string> = []
        const renamed = Binding.make("orders", {
          ...{ topic: "orders", groupId: "invoicing", adopts: ["billing"], value: Serde.string },
          ...{ orderingMode: "PER_KEY", processingOrder: "key" },
          retry: RetryPolicy.tiered({ tiers: [{ delay: "60 seconds", maxAttempts: 1 }], blocking: { maxAttempts: 1 } }),
          handler: ({ value }) => Effect.sync(() => void handled.push(value))
        })
        yield* memory.setCommitted("invoicing", "orders", 0, committed ?? 0n)
        const early = yield* start(renamed)
        yield* advance("2 minutes")
        const { reasons } = yield* early.connector.health
        assert.deepStrictEqual([handled, reasons.some(({ _tag }) => _tag === "UnitIncomplete")], [[], true])
        yield* inTime(early.close)
        const again = keyed({ tiers: ["60 seconds"] })
        const last = yield* start(again.binding)
        yield* advance("90 seconds")
        assert.deepStrictEqual(again.handled, ["a1", "a2"])
        yield* inTime(last.close)
        yield* start(renamed)
        yield* publishKeyed("a3")
        yield* advance("2 minutes")
        assert.deepStrictEqual(handled, ["a3"])
      })
  )
})
