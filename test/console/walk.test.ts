/** OPS-20 and OPS-21: the walk of a person on call, by keyboard alone, in a real Chromium: find, look, rehearse, plan, apply, cancel, receipt. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { whenUsable } from "../services/suites.ts"
import { browser, opened, problem } from "./browser.ts"
import { incident, tokens } from "./incident.ts"
import { fill, press, tabTo } from "./keyboard.ts"
import { onCallWalk, orders, reasons, shoot, shows, signIn } from "./onCall.ts"

whenUsable("OPS-21 the console in Chromium", problem, () => {
  it.live("OPS-20 OPS-21 the on-call walk, without a mouse", () =>
    Effect.gen(function* () {
      const { address, heal, call, connector, memory } = yield* incident(orders.map((value) => ({ key: value, value })))
      yield* connector.pause("payments")
      const { page, complaints } = yield* opened(yield* browser)
      const at = async (station: string) => (station === "now" ? shoot(page, "console") : undefined)
      yield* onCallWalk({ page, address, topic: "orders", heal, at })
      const { runs } = (yield* call("GET", "/eventbus/bindings/orders/dlt/runs", { token: tokens.operator })).body
      assert.deepStrictEqual(
        runs.map(({ state, by, reason }: { state: string; by: string; reason: string }) => [state, by, reason]),
        [
          ["done", "anna", reasons.done],
          ["cancelled", "anna", reasons.cancelled]
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
