/** OPS-20 and OPS-21: the walk of a person on call, by keyboard alone, in a real Chromium: find, look, rehearse, plan, apply, cancel, receipt. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { whenUsable } from "../services/suites.ts"
import { browser, opened, problem } from "./browser.ts"
import { incident, tokens } from "./incident.ts"
import { fill, press, tabTo } from "./keyboard.ts"

/** `CONSOLE_SCREENSHOTS=docs/images` writes those that the README shows anew. */
const screenshots = process.env["CONSOLE_SCREENSHOTS"] ?? "node_modules/.cache/console"

const shoot = async (page: Page, name: string): Promise<void> => {
  const folder = fileURLToPath(new URL(`../../${screenshots}`, import.meta.url))
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `${name}.png`) })
}

const shows = (page: Page, text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor()

/** By keyboard, from the sign-in on. */
const signIn = async (page: Page, token: string): Promise<void> => {
  await fill(page, "Token of the admin API", token)
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { name: "Bindings of this process" }).waitFor()
}

const orders = ["first", "second", "third", "fourth", "fifth", "sixth"].map((value) => ({ key: value, value }))

whenUsable("OPS-21 the console in Chromium", problem, () => {
  it.live("OPS-20 OPS-21 the on-call walk, without a mouse", () =>
    Effect.gen(function* () {
      const { address, heal, call, connector, memory } = yield* incident(orders)
      yield* connector.pause("payments")
      const { page, complaints } = yield* opened(yield* browser)
      yield* Effect.promise(async () => {
        await page.goto(`${address}/eventbus/console`)
        await signIn(page, tokens.operator)
        // Find: what holds records back, and where dead letters are.
        assert.strictEqual(await page.title(), "Now · Event bus")
        await shows(page, "1 thing holds records back")
        await shows(page, /^Binding 'payments' on cluster 'default': paused by operator$/)
        await shows(page, "orders has 6 dead letters")
        await shows(page, "Live")
        await shoot(page, "console")
        await press(page, "Look at the failures of orders")
        // Look: why.
        await shows(page, "6 dead letters wait, for 1 reason.")
        await press(page, "Refused")
        await shows(page, /the gateway of the bank does not answer/)
      })
      yield* Effect.promise(async () => {
        // Rehearse, while the handler still refuses.
        await press(page, "Rehearse")
        await shows(page, "Today's code, of 6 letters: 6 would fail again.")
      })
      yield* heal
      yield* Effect.promise(async () => {
        await press(page, "Rehearse")
        await shows(page, "Today's code, of 6 letters: 6 would pass.")
        // A slow run, to be cancelled.
        await fill(page, "Most copies a second", "1")
        await fill(page, "Copies that go first and alone", "1")
        await fill(page, "Reason", "INC-1204: the gateway is back")
        await press(page, "Plan")
        await shows(page, "6 letters are replayed.")
        await shows(page, "orders (6)")
        await press(page, "Apply")
        await press(page, "Apply")
        await page.getByRole("heading", { name: "orders · Replay" }).waitFor()
        await shows(page, /^[1-5] of 6 letters dealt with/)
        await press(page, "Cancel")
        await fill(page, "Reason", "too slow")
        await press(page, "Cancel")
        await shows(page, "cancelled")
        await shows(page, /The receipt is closed\./)
        // The rest, to its end.
        await press(page, "Failures")
        await press(page, "Refused")
        await fill(page, "Reason", "INC-1204: the rest")
        await press(page, "Plan")
        await shows(page, /letters? (is|are) replayed\./)
        await press(page, "Apply")
        await press(page, "Apply")
        await shows(page, /The receipt is closed\./)
        await shows(page, "done")
        await press(page, "Runs")
        await shows(page, "Replay: INC-1204: the rest")
        await shows(page, "Replay: INC-1204: the gateway is back")
      })
      const { runs } = (yield* call("GET", "/eventbus/bindings/orders/dlt/runs", { token: tokens.operator })).body
      assert.deepStrictEqual(
        runs.map(({ state, by, reason }: { state: string; by: string; reason: string }) => [state, by, reason]),
        [
          ["done", "anna", "INC-1204: the rest"],
          ["cancelled", "anna", "INC-1204: the gateway is back"]
        ]
      )
      // Each letter was published again exactly once.
      assert.strictEqual((yield* memory.log("orders", 0)).length, 12)
      assert.deepStrictEqual(complaints, [])
    })
  )

  it.live("OPS-21 commands ask first, and the page follows the state by the stream", () =>
    Effect.gen(function* () {
      const { address, connector } = yield* incident([])
      const { page, complaints } = yield* opened(yield* browser)
      yield* Effect.promise(async () => {
        await page.goto(`${address}/eventbus/console`)
        await signIn(page, tokens.operator)
        await shows(page, "All bindings work")
        await press(page, "payments")
        await press(page, "Pause")
        await shows(page, "Pause payments in this process?")
        // Escape leaves everything as it is, and gives the focus back.
        await page.keyboard.press("Escape")
        await page.getByRole("dialog").waitFor({ state: "hidden" })
      })
      assert.strictEqual((yield* connector.snapshot("payments")).state, "RUNNING")
      yield* Effect.promise(async () => {
        await page.keyboard.press("Enter")
        await fill(page, "Reason", "INC-1204: the ledger is being repaired")
        await page.keyboard.press("Enter")
        await page.getByRole("button", { name: "Resume" }).waitFor()
      })
      assert.strictEqual((yield* connector.snapshot("payments")).state, "PAUSED")
      yield* Effect.promise(async () => {
        await press(page, "Event bus")
        await shows(page, "1 thing holds records back")
      })
      yield* connector.resume("payments")
      yield* Effect.promise(() => shows(page, "All bindings work"))
      assert.deepStrictEqual(complaints, [])
    })
  )

  it.live("OPS-16 OPS-21 a caller has no button for what it may not do; readOnly leaves none", () =>
    Effect.gen(function* () {
      const running = yield* browser
      const commands = ["Pause", "Stop", "Rehearse", "Plan"]
      const buttonsOf = Effect.fnUntraced(function* (address: string, token: string | undefined) {
        const { page } = yield* opened(running)
        return yield* Effect.promise(async () => {
          await page.goto(`${address}/eventbus/console`)
          if (token !== undefined) await signIn(page, token)
          const seen: Array<string> = []
          for (const [path, ready] of [
            ["", "Partitions of this process"],
            ["/records/0@0", "Came from"]
          ] as const) {
            await page.goto(`${address}/eventbus/console#/bindings/default:orders${path}`)
            await shows(page, ready)
            await page.waitForLoadState("networkidle", { timeout: 3_000 }).catch(() => undefined)
            for (const name of commands)
              if ((await page.getByRole("button", { name, exact: true }).count()) > 0) seen.push(name)
          }
          return [seen, await page.getByText("are shown with the permission view-payload").count()]
        })
      })
      const open = yield* incident([{ value: "secret-of-the-payload" }])
      assert.deepStrictEqual(yield* buttonsOf(open.address, tokens.operator), [commands, 0])
      assert.deepStrictEqual(yield* buttonsOf(open.address, tokens.viewer), [[], 1])
      const readOnly = yield* incident([{ value: "one" }], { readOnly: true })
      assert.deepStrictEqual(yield* buttonsOf(readOnly.address, tokens.operator), [[], 0])
      const loopback = yield* incident([{ value: "one" }], { authorizer: undefined })
      assert.deepStrictEqual(yield* buttonsOf(loopback.address, undefined), [[], 1])
    })
  )

  it.live("OPS-16 OPS-21 a token for one binding opens that binding by its name; a wrong one is refused in words", () =>
    Effect.gen(function* () {
      const { address } = yield* incident([])
      const { page } = yield* opened(yield* browser)
      yield* Effect.promise(async () => {
        await page.goto(`${address}/eventbus/console`)
        await fill(page, "Token of the admin API", "wrong")
        await page.keyboard.press("Enter")
        await shows(page, /no valid credential/)
        await fill(page, "Token of the admin API", tokens.orders)
        await page.keyboard.press("Enter")
        await shows(page, "Not all bindings are yours")
        await fill(page, "Name of a binding", "orders")
        await page.keyboard.press("Enter")
        await shows(page, "Partitions of this process")
        await tabTo(page, "Pause")
      })
    })
  )

  it.live("OPS-21 where no stream comes, the page asks again and again; where nobody answers, it says so", () =>
    Effect.gen(function* () {
      const { address, connector } = yield* incident([])
      const { page } = yield* opened(yield* browser)
      yield* Effect.promise(async () => {
        await page.route("**/stream", (route) => route.abort())
        await page.goto(`${address}/eventbus/console`)
        await signIn(page, tokens.operator)
        await shows(page, "Every few seconds")
        await shows(page, "All bindings work")
      })
      yield* connector.pause("payments")
      yield* Effect.promise(async () => {
        await shows(page, "1 thing holds records back")
        await page.route("**/eventbus/**", (route) => route.abort())
        await shows(page, "No answer")
        // The last state that was known stays.
        await shows(page, "1 thing holds records back")
      })
    })
  )
})
