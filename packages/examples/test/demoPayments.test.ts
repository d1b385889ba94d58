import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { ConfigProvider, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as Cluster from "../src/demo/cluster.ts"
import { type Order, Payments } from "../src/demo/shop.ts"

const bank = Payments.layer.pipe(
  Layer.provide(Cluster.layer),
  Layer.provide(MemoryBroker.layer()),
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({})))
)

/** How a charge of this card ends. */
const answer = Effect.fnUntraced(function* (card: Order["card"]) {
  const payments = yield* Payments
  const charge = payments.charge({ id: `o-${card}`, amount: 1, card }, card)
  const ended = charge.pipe(
    Effect.match({ onSuccess: () => "paid", onFailure: ({ _tag }) => _tag }),
    Effect.catchDefect(() => Effect.succeed("defect"))
  )
  const fiber = yield* Effect.forkChild(ended)
  yield* TestClock.adjust("5 seconds")
  return yield* Fiber.join(fiber)
})

const answers = Effect.forEach(["good", "unreachable", "declined", "cursed"] as const, answer)

describe("the bank of the demo", () => {
  it.effect("charges no unreachable card during the scenario, and charges it for a replay afterwards", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* answers, ["paid", "GatewayDown", "CardDeclined", "defect"])
      const payments = yield* Payments
      yield* payments.reachAll
      assert.deepStrictEqual(yield* answers, ["paid", "paid", "CardDeclined", "defect"])
    }).pipe(Effect.provide(bank))
  )

  it.effect("says in a rehearsal what a replay afterwards will say", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* answers, ["paid", "paid", "CardDeclined", "defect"])
      assert.strictEqual(yield* answer("busy"), "paid")
    }).pipe(Effect.provide(Payments.dryRun))
  )
})
