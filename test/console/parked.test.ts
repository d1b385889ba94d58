/** PKO-05: parked keys in a real Chromium, by keyboard: a held key is retried or skipped with a reason. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { eventually } from "../../packages/admin/test/api.ts"
import { canary, held } from "../../packages/admin/test/parkedOrders.ts"
import { whenUsable } from "../services/suites.ts"
import { violations } from "./axe.ts"
import { browser, opened, problem, served } from "./browser.ts"
import { authorizer, tokens } from "./incident.ts"
import { fill, press } from "./keyboard.ts"
import { shows } from "./onCall.ts"

const signIn = async (page: Page, address: string, token: string): Promise<void> => {
  await page.goto(`${address}/eventbus/console`)
  await fill(page, "Token of the admin API", token)
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { name: "Bindings of this process" }).waitFor()
  await page.goto(`${address}/eventbus/console#/bindings/default:orders`)
  await page.getByRole("link", { name: "Parked keys" }).click()
}

whenUsable("PKO-05 parked keys in Chromium", problem, () => {
  for (const [verb, handles] of [
    ["Retry", ["b1", "a1", "a2"]],
    ["Skip", ["b1", "a2"]]
  ] as const) {
    it.live(`PKO-05 ${verb}: the held key is listed with its record, followers and error, and goes on`, () =>
      Effect.gen(function* () {
        const { web, handled, failing } = yield* held({ authorizer })
        const address = yield* served(web)
        failing.clear()
        const { page, complaints } = yield* opened(yield* browser)
        yield* Effect.promise(async () => {
          await signIn(page, address, tokens.operator)
          await shows(page, "1 key held, 0 waiting, 0 draining.")
          await shows(page, "orders 0@0")
          await shows(page, "customer-a")
          await shows(page, `Closed: no account ${canary}`)
          assert.deepStrictEqual(await violations(page), [], "page")
          await press(page, verb)
          await shows(page, `${verb} orders 0@0 of orders?`)
          assert.deepStrictEqual(await violations(page), [], "dialog")
          await fill(page, "Reason", "INC-1204")
          await press(page, verb)
          await shows(page, "No key is parked.")
        })
        yield* eventually(
          Effect.sync(() => handled.length),
          (count) => count === handles.length
        )
        assert.deepStrictEqual([handled, complaints], [[...handles], []])
      })
    )
  }

  it.live("PKO-05 a caller without the permissions sees neither key nor message nor a button", () =>
    Effect.gen(function* () {
      const { web } = yield* held({ authorizer })
      const address = yield* served(web)
      const { page } = yield* opened(yield* browser, { viewport: { width: 360, height: 740 }, hasTouch: true })
      yield* Effect.promise(async () => {
        await signIn(page, address, tokens.viewer)
        await shows(page, "orders 0@0")
        assert.strictEqual(await page.getByText(canary).count(), 0)
        assert.strictEqual(await page.getByText("customer-a").count(), 0)
        assert.strictEqual(await page.getByRole("button", { name: /Retry$|Skip$/ }).count(), 0)
        assert.deepStrictEqual(await violations(page), [])
        assert.isAtMost(await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth"), 0)
      })
    })
  )
})
