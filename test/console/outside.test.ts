/** OPS-21 and OPS-22: the console that looks from outside, in a real Chromium: what it says of itself, and which buttons it does not have. */
import { assert, it } from "@effect/vitest"
import { Binding, Serde } from "@eventbus/core"
import { Effect } from "effect"
import { outsideOf } from "../../packages/admin/test/outsideOf.ts"
import { whenUsable } from "../services/suites.ts"
import { violations } from "./axe.ts"
import { browser, opened, problem, served } from "./browser.ts"
import { authorizer, incident, tokens } from "./incident.ts"
import { press } from "./keyboard.ts"
import { shoot, shows } from "./onCall.ts"

const named = (name: string, topic: string, groupId: string) =>
  Binding.make(name, { ...{ topic, groupId, value: Serde.string }, handler: () => Effect.void })

whenUsable("OPS-21 the console from outside in Chromium", problem, () => {
  it.live("OPS-22 says what it sees and what it does not, has no button Start, and leads to the dead letters", () =>
    Effect.gen(function* () {
      const { memory, append, close } = yield* incident([{ value: "one" }, { value: "two" }])
      yield* close
      yield* append("payments", "a", "b", "c")
      const bindings = [named("orders", "orders", "billing"), named("payments", "payments", "accounting")]
      const { web } = yield* outsideOf(memory, { bindings, authorizer })
      const address = yield* served(web)
      const { page, complaints } = yield* opened(yield* browser)
      yield* Effect.promise(async () => {
        await page.goto(`${address}/eventbus/console#token=${tokens.operator}`)
        await page.getByRole("heading", { name: "Bindings of the configuration" }).waitFor()
        await shows(page, "Nobody consumes 2 bindings")
        await shows(page, /looks from outside, straight on Kafka, and runs no bindings/)
        await shows(page, /It does not see whether handlers work/)
        await shows(page, "Group accounting has no members, and 3 records to handle.")
        await shows(page, "orders has 2 dead letters")
        const text = (await page.locator("main").textContent()) ?? ""
        for (const lie of ["All bindings work", "stopped", "created", "DOWN", "is paused"]) assert.notInclude(text, lie)
        assert.deepStrictEqual(await violations(page), [], "Now")
        await shoot(page, "outside")
        await press(page, "payments")
        await shows(page, "This console runs no bindings: use the fleet, or the console of a process that runs it.")
        await shows(page, "payments-0")
        for (const verb of ["Start", "Stop", "Pause", "Resume"])
          assert.strictEqual(await page.getByRole("button", { name: verb, exact: true }).count(), 0, verb)
        assert.deepStrictEqual(await violations(page), [], "Binding")
        await press(page, "Event bus")
        await press(page, "Look at the failures of orders")
        await shows(page, /2 dead letters/)
      })
      assert.deepStrictEqual(complaints, [])
    })
  )
})
