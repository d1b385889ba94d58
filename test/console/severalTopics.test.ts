/** RCH-11: a binding of two topics in a real Chromium: its topics, its partitions, and the dead letters of each topic by itself. */
import { assert, it } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Effect } from "effect"
import { eventually, Refused, start } from "../../packages/admin/test/api.ts"
import { whenUsable } from "../services/suites.ts"
import { browser, opened, problem, served } from "./browser.ts"
import { authorizer, tokens } from "./incident.ts"
import { press } from "./keyboard.ts"
import { shows, signIn } from "./onCall.ts"

/** A letter of each topic, at the same position. */
const ledger = Effect.gen(function* () {
  const binding = Binding.make("ledger", {
    ...{ topic: ["orders", "payments"], groupId: "accounting", value: Serde.string },
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [] }),
    onError: { Refused: Route.deadLetter("refused") },
    handler: () => Effect.fail(new Refused())
  })
  const program = yield* start({ bindings: [binding], authorizer })
  yield* program.append("orders", "an order")
  yield* program.append("payments", "a payment")
  yield* eventually(
    Effect.flatMap(program.connector.deadLetters("ledger"), ({ stats }) => stats),
    ({ count }) => count === 2
  )
  return yield* served(program.web)
})

whenUsable("RCH-11 a binding of two topics in Chromium", problem, () => {
  it.live("RCH-11 both topics are named, and a group and a letter are those of their topic", () =>
    Effect.gen(function* () {
      const address = yield* ledger
      const { page, complaints } = yield* opened(yield* browser)
      yield* Effect.promise(async () => {
        await page.goto(`${address}/eventbus/console`)
        await signIn(page, tokens.operator)
        await shows(page, "ledger has 2 dead letters")
        await page.getByRole("row", { name: /ledger.*orders, payments.*accounting/ }).waitFor()

        await press(page, "ledger")
        await shows(page, /^orders-0$/)
        await shows(page, /^payments-0$/)

        await press(page, "Failures")
        await shows(page, "2 dead letters wait, for 2 reasons.")
        // Both groups have the name of the error; the second line of each is its topic.
        await page
          .getByRole("row", { name: /Refused.*payments/ })
          .getByRole("link")
          .focus()
        await page.keyboard.press("Enter")
        await page.getByRole("link", { name: "0@0" }).waitFor()
        await press(page, "0@0")
        await shows(page, "payments-0 at 0")
        await shows(page, "a payment")
        assert.match(page.url(), /records\/0%400\/payments$/)
        assert.strictEqual(await page.getByText("an order").count(), 0)
      })
      assert.deepStrictEqual(complaints, [])
    })
  )
})
