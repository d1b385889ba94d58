/** PKO-05: parked keys in a real Chromium, by keyboard: a held key is retried or skipped, and the loss of a stranded one accepted, with a reason. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { eventually } from "../../packages/admin/test/api.ts"
import { canary, held, stranded } from "../../packages/admin/test/parkedOrders.ts"
import { whenUsable } from "../services/suites.ts"
import { violations } from "./axe.ts"
import { browser, opened, problem, served } from "./browser.ts"
import { authorizer, tokens } from "./incident.ts"
import { fill, press } from "./keyboard.ts"
import { shows } from "./onCall.ts"

const signIn = async (
  page: Page,
  address: string,
  token: string,
  welcome = "Bindings of this process"
): Promise<void> => {
  await page.goto(`${address}/eventbus/console`)
  await fill(page, "Token of the admin API", token)
  await page.keyboard.press("Enter")
  await shows(page, welcome)
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

  it.live("PKO-05 Accept loss: the stranded key becomes a dead letter, and its partition goes on", () =>
    Effect.gen(function* () {
      const { web, handled, memory } = yield* stranded({ authorizer })
      const address = yield* served(web)
      const { page, complaints } = yield* opened(yield* browser)
      yield* Effect.promise(async () => {
        await signIn(page, address, tokens.operator)
        await shows(page, "1 stranded.")
        await shows(page, "Needs accept-loss")
        await press(page, "Accept loss")
        await shows(page, "Accept the loss of 1 stranded key of orders?")
        assert.deepStrictEqual(await violations(page), [], "dialog")
        assert.deepStrictEqual(handled, [])
        await fill(page, "Reason", "INC-1204")
        await press(page, "Accept loss")
        await shows(page, "No key is parked.")
      })
      yield* eventually(
        Effect.sync(() => handled),
        (values) => values.length > 0
      )
      const letters = (yield* memory.log("orders.DLT", 0)).map(({ value }) => new TextDecoder().decode(value!))
      assert.deepStrictEqual([handled, letters, complaints], [["c1"], ["a1"], []])
    })
  )

  it.live("PKO-05 a caller without the permission to discard sees a stranded key, and no button", () =>
    Effect.gen(function* () {
      const { web } = yield* stranded({ authorizer })
      const address = yield* served(web)
      const { page } = yield* opened(yield* browser)
      yield* Effect.promise(async () => {
        await signIn(page, address, tokens.orders, "Not all bindings are yours")
        await shows(page, "Needs accept-loss")
        assert.strictEqual(await page.getByRole("button", { name: "Accept loss" }).count(), 0)
      })
    })
  )

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
