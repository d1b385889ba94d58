/** OPS-06 and OPS-21: what a transform makes of a letter, on the pages Letter and Group, in a real Chromium by keyboard. */
import { assert, it } from "@effect/vitest"
import { Authorizer } from "@eventbus/admin"
import { Binding, LetterTransform, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Effect, Redacted } from "effect"
import type { Page } from "playwright-core"
import { eventually, Refused, start } from "../../packages/admin/test/api.ts"
import { whenUsable } from "../services/suites.ts"
import { violations } from "./axe.ts"
import { browser, opened, problem, served } from "./browser.ts"
import { fill, press } from "./keyboard.ts"
import { shoot, shows, signIn } from "./onCall.ts"

const script = `"'><img src=x onerror="window.harmed=1"><script>window.harmed=1</script>`

const tokens = { mender: "token-of-the-mender", blind: "token-of-the-blind" }

const authorizer = Authorizer.fromTokens([
  {
    ...{ token: Redacted.make(tokens.mender), name: "mia" },
    permissions: ["view", "view-payload", "replay", "transform"]
  },
  { ...{ token: Redacted.make(tokens.blind), name: "bob" }, permissions: ["view", "transform"] }
])

const textOf = (bytes: Uint8Array | null) => new TextDecoder().decode(bytes ?? new Uint8Array())

/** Two letters: one that the transform repairs, and one that it skips. */
const prepared = Effect.gen(function* () {
  const orders = Binding.make("orders", {
    ...{ topic: "orders", groupId: "billing", value: Serde.string, retry: RetryPolicy.none },
    onError: { Refused: Route.deadLetter("refused") },
    handler: () => Effect.fail(new Refused()),
    transforms: {
      "add-currency": ({ value }) =>
        textOf(value) === "lost"
          ? Effect.fail(new LetterTransform.Skip({ reason: script }))
          : Effect.succeed({ value: JSON.stringify({ ...JSON.parse(textOf(value)), currency: script }) })
    }
  })
  const program = yield* start({ bindings: [orders], authorizer })
  yield* program.append("orders", JSON.stringify({ id: "o-1", note: script }), "lost")
  yield* eventually(
    Effect.flatMap(program.connector.deadLetters("orders"), ({ stats }) => stats),
    ({ count }) => count === 2
  )
  return { ...program, address: yield* served(program.web) }
})

const isHarmed = (page: Page): Promise<boolean> => page.evaluate(() => Reflect.has(globalThis, "harmed"))

const wide = (page: Page): Promise<number> => page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")

const openLetter = async (page: Page, address: string, position: string): Promise<void> => {
  await page.goto(`${address}/eventbus/console#/bindings/default:orders/records/${position}`)
  await page.getByRole("button", { name: "Show the difference" }).waitFor()
}

/** The lines of the part below this name, as they are read without colours. */
const lines = (page: Page, name: string): Promise<ReadonlyArray<string>> =>
  page.locator(`p:text-is("${name}") + pre.diff > *`).allInnerTexts()

const onScreen = (name: string, options: Parameters<typeof opened>[1]) =>
  it.live(`a letter shows line by line what a transform makes of it, by keyboard: ${name}`, () =>
    Effect.gen(function* () {
      const { address } = yield* prepared
      const { page, complaints } = yield* opened(yield* browser, options)
      yield* Effect.promise(async () => {
        await page.goto(`${address}/eventbus/console`)
        await signIn(page, tokens.mender)
        await openLetter(page, address, "0@0")
        await press(page, "Show the difference")
        await shows(page, "add-currency changes value of the copy. The letter itself stays as it is.")
        assert.deepStrictEqual(await lines(page, "Value"), [
          ...["  {", '    "id": "o-1",', `-   "note": ${JSON.stringify(script)}`],
          ...[`+   "note": ${JSON.stringify(script)},`, `+   "currency": ${JSON.stringify(script)}`, "  }"]
        ])
        assert.include(await lines(page, "Headers"), "+ x-eventbus-transformed-by: add-currency")
        assert.strictEqual(await page.locator("pre.diff ins").count(), 3)
        assert.deepStrictEqual(await violations(page), [])
        assert.isAtMost(await wide(page), 0)
        await shoot(page, `transform-${name.replace(/\W+/g, "-")}`, true)
        await openLetter(page, address, "0@1")
        await press(page, "Show the difference")
        await shows(page, `Transform 'add-currency' skips it: ${script}`)
        assert.deepStrictEqual(await violations(page), [])
        assert.isFalse(await isHarmed(page))
      })
      assert.deepStrictEqual(complaints, [])
    })
  )

whenUsable("OPS-06 OPS-21 the difference of a transform in Chromium", problem, () => {
  onScreen("wide", { viewport: { width: 1_280, height: 800 } })
  onScreen("360 px, dark", { colorScheme: "dark", viewport: { width: 360, height: 740 }, hasTouch: true })

  it.live("a plan with a transform shows what becomes of its first letters", () =>
    Effect.gen(function* () {
      const { address, call } = yield* prepared
      const { page, complaints } = yield* opened(yield* browser)
      const { groups } = (yield* call("GET", "/eventbus/bindings/orders/dlt/groups", { token: tokens.mender })).body
      yield* Effect.promise(async () => {
        await page.goto(`${address}/eventbus/console`)
        await signIn(page, tokens.mender)
        await page.goto(`${address}/eventbus/console#/bindings/default:orders/failures/${groups[0].fingerprint}`)
        await page.getByLabel("Transform").selectOption("add-currency")
        await fill(page, "Reason", "INC-1204")
        await press(page, "Plan")
        await page.getByRole("heading", { name: "Letter 0@0" }).waitFor()
        await page.getByRole("heading", { name: "Letter 0@1" }).waitFor()
        assert.include(await lines(page, "Value"), `+   "currency": ${JSON.stringify(script)}`)
        await shows(page, `Transform 'add-currency' skips it: ${script}`)
        assert.deepStrictEqual(await violations(page), [])
        assert.isFalse(await isHarmed(page))
      })
      assert.deepStrictEqual(complaints, [])
    })
  )

  it.live("OPS-16 a caller without view-payload learns which parts change, and sees no line", () =>
    Effect.gen(function* () {
      const { address } = yield* prepared
      const { page } = yield* opened(yield* browser)
      yield* Effect.promise(async () => {
        await page.goto(`${address}/eventbus/console`)
        await signIn(page, tokens.blind)
        await openLetter(page, address, "0@0")
        await press(page, "Show the difference")
        await shows(page, "add-currency changes value of the copy.")
        await shows(page, "The lines are shown with the permission view-payload.")
        assert.strictEqual(await page.locator("pre.diff").count(), 0)
        assert.strictEqual(await page.getByText(script).count(), 0)
      })
    })
  )
})
