/** OPS-11 and OPS-21: a record that holds its partition, decided about in a real Chromium by keyboard, on the pages Now and Binding. */
import { assert, it } from "@effect/vitest"
import { Binding, Route, Serde } from "@eventbus/core"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { eventually, Refused, start } from "../../packages/admin/test/api.ts"
import { whenUsable } from "../services/suites.ts"
import { violations } from "./axe.ts"
import { browser, opened, problem, served } from "./browser.ts"
import { authorizer, tokens } from "./incident.ts"
import { fill, press } from "./keyboard.ts"
import { shows } from "./onCall.ts"

const script = `"'><img src=x onerror="window.harmed=1"><script>window.harmed=1</script>`

/** A binding that halts at each record whose value is bad. */
const halted = Effect.fnUntraced(function* (...values: ReadonlyArray<string>) {
  const handled: Array<string> = []
  const orders = Binding.make("orders", {
    ...{ topic: "orders", groupId: "billing", value: Serde.string, onError: { Refused: Route.pause } },
    handler: ({ value }) =>
      value.startsWith("bad")
        ? Effect.fail(Object.assign(new Refused(), { message: script }))
        : Effect.sync(() => void handled.push(value))
  })
  const program = yield* start({ bindings: [orders], authorizer })
  yield* program.append("orders", ...values)
  yield* eventually(program.connector.snapshot("orders"), ({ held }) => held.length === 1)
  return { ...program, handled, address: yield* served(program.web) }
})

const signIn = async (page: Page, address: string, token: string): Promise<void> => {
  await page.goto(`${address}/eventbus/console`)
  await fill(page, "Token of the admin API", token)
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { name: "Bindings of this process" }).waitFor()
}

whenUsable("OPS-11 OPS-21 held records in Chromium", problem, () => {
  it.live("a held record is dead-lettered on Now, and the next one skipped on Binding, each with a reason", () =>
    Effect.gen(function* () {
      const { address, handled, call } = yield* halted("bad", "bad again", "last")
      const { page, complaints } = yield* opened(yield* browser)
      yield* Effect.promise(async () => {
        await signIn(page, address, tokens.operator)
        await shows(page, "orders has 1 record that waits for a decision")
        await shows(page, "orders 0@0")
        // The message of the error wants to be a script.
        await shows(page, script)
        assert.deepStrictEqual(await violations(page), [], "Now")
        await press(page, "Dead-letter")
        await shows(page, "Dead-letter orders 0@0 of orders?")
        assert.deepStrictEqual(await violations(page), [], "dialog")
        await fill(page, "Reason", script)
        await press(page, "Dead-letter")
        await shows(page, "orders 0@1")
      })
      const letters = yield* eventually(
        call("GET", "/eventbus/bindings/orders/dlt/records", { token: tokens.operator }),
        ({ body }) => body.letters.length === 1
      )
      assert.deepStrictEqual([letters.body.letters[0].reason, letters.body.letters[0].detail], ["MANUAL", script])
      yield* Effect.promise(async () => {
        await page.goto(`${address}/eventbus/console#/bindings/default:orders`)
        await page.getByRole("heading", { name: "Records that wait for a decision" }).waitFor()
        assert.deepStrictEqual(await violations(page), [], "Binding")
        await press(page, "Skip")
        // Without a reason nothing is sent.
        await press(page, "Skip")
        assert.isTrue(await page.getByRole("dialog").isVisible())
        await page.getByRole("textbox", { name: "Reason" }).fill("INC-1204")
        await page.keyboard.press("Enter")
        await page.getByRole("heading", { name: "Records that wait for a decision" }).waitFor({ state: "detached" })
        assert.isFalse(await page.evaluate(() => Reflect.has(globalThis, "harmed")))
      })
      yield* eventually(
        Effect.sync(() => handled.length),
        (count) => count === 1
      )
      assert.deepStrictEqual([handled, complaints], [["last"], []])
    })
  )

  it.live("a caller without the permissions sees the record, and neither its message nor a button", () =>
    Effect.gen(function* () {
      const { address } = yield* halted("bad")
      const { page } = yield* opened(yield* browser, { viewport: { width: 360, height: 740 }, hasTouch: true })
      yield* Effect.promise(async () => {
        await signIn(page, address, tokens.viewer)
        await shows(page, "orders 0@0")
        assert.strictEqual(await page.getByText(script).count(), 0)
        assert.strictEqual(await page.getByRole("button", { name: /Skip$|Dead-letter/ }).count(), 0)
        assert.deepStrictEqual(await violations(page), [])
        assert.isAtMost(await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth"), 0)
      })
    })
  )
})
