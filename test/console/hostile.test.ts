/** OPS-21: text that wants to be a script stays text, on every page; and no page has a violation of WCAG 2.2 AA, whatever the screen. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { whenUsable } from "../services/suites.ts"
import { violations } from "./axe.ts"
import { browser, opened, problem } from "./browser.ts"
import { incident, tokens } from "./incident.ts"
import { shoot, shows } from "./onCall.ts"

const script = `"'><img src=x onerror="window.harmed=1"><script>window.harmed=1</script><a href="javascript:window.harmed=1">`

const isHarmed = (page: Page): Promise<boolean> => page.evaluate(() => Reflect.has(globalThis, "harmed"))

const signedIn = async (page: Page, address: string): Promise<void> => {
  await page.goto(`${address}/eventbus/console`)
  const token = page.getByLabel("Token of the admin API")
  await token.fill(tokens.operator)
  await token.press("Enter")
  await page.getByRole("heading", { name: "Bindings of this process" }).waitFor()
}

/** A hostile letter, a plan for it, and its run. */
const prepared = Effect.gen(function* () {
  const program = yield* incident(
    [{ key: script, value: script, headers: [[script, script]] }, { value: "harmless" }],
    { message: script, audit: {}, fleet: { version: script } }
  )
  const dlt = "/eventbus/bindings/orders/dlt"
  const post = (path: string, body?: unknown) =>
    program.call("POST", `${dlt}${path}`, { token: tokens.operator, ...(body === undefined ? {} : { body }) })
  const plan = yield* post("/plans", { action: "replay", select: { records: ["0@0"] }, reason: script, canary: 0 })
  assert.strictEqual(plan.status, 201, plan.text)
  assert.strictEqual((yield* post(`/plans/${plan.body.id}/apply`)).status, 202)
  // A name, a reason and a position that want to be scripts are in the audit log.
  const hostile = encodeURIComponent(script)
  yield* program.call("POST", `/eventbus/bindings/${hostile}/pause?reason=${hostile}&tier=${hostile}`, {
    token: tokens.operator
  })
  const groups = yield* program.call("GET", `${dlt}/groups`, { token: tokens.operator })
  const [{ fingerprint }] = groups.body.groups
  yield* program.connector.pause("payments")
  const toAll = (verb: string, tier: number) =>
    program.call("POST", `/eventbus/bindings/orders/${verb}`, {
      token: tokens.operator,
      body: { scope: "fleet", reason: script, tier }
    })
  // A hold that is over, and one that is not.
  for (const [verb, tier] of [
    ["pause", 1],
    ["resume", 1],
    ["pause", 1]
  ] as const)
    assert.strictEqual((yield* toAll(verb, tier)).status, 202)
  const of = "#/bindings/default:orders"
  /** Each page, with a text of it. */
  const pages: ReadonlyArray<readonly [string, string | RegExp]> = [
    ["#/", /^(1 thing holds|\d+ things hold) records back/],
    [of, "Partitions of this process"],
    ["#/fleet", "Last released"],
    [`${of}/failures`, /dead letters? waits?/],
    [`${of}/failures/${fingerprint}`, "Letters"],
    [`${of}/records/0@0`, "Headers"],
    [`${of}/runs`, "Replay:"],
    [`${of}/runs/${plan.body.id}`, "The receipt is closed"],
    [`${of}/records/${encodeURIComponent(script)}`, "cannot be used"],
    [`#/bindings/${encodeURIComponent(script)}`, "is registered"],
    ["#/audit", "applyPlan"],
    ["#/nowhere", "There is no such page"]
  ]
  return { ...program, pages }
})

const show = async (page: Page, address: string, [hash, text]: readonly [string, string | RegExp]): Promise<void> => {
  await page.goto(`${address}/eventbus/console${hash}`)
  await shows(page, text)
  await page.waitForTimeout(100)
}

whenUsable("OPS-21 the console in Chromium", problem, () => {
  it.live("a script in every field (key, value, header, error, reason, name) is shown and never run", () =>
    Effect.gen(function* () {
      const { address, pages } = yield* prepared
      const { page, complaints } = yield* opened(yield* browser)
      yield* Effect.promise(async () => {
        await signedIn(page, address)
        for (const each of pages) {
          await show(page, address, each)
          assert.strictEqual(await isHarmed(page), false, each[0])
          assert.strictEqual(await page.locator("main img, main script, main a[href^=javascript]").count(), 0, each[0])
        }
        await show(page, address, pages[5]!)
        // Key, value, header and its name, and the message of the error.
        assert.isAtLeast(await page.getByText(script, { exact: true }).count(), 5)
      })
      assert.deepStrictEqual(complaints, [])
    })
  )

  for (const [screen, options] of [
    ["1,280 px", { viewport: { width: 1_280, height: 800 } }],
    ["360 px", { viewport: { width: 360, height: 740 }, hasTouch: true }]
  ] as const)
    it.live(
      `no page has an axe violation, light or dark, or is wider than the screen: ${screen}`,
      () =>
        Effect.gen(function* () {
          const { address, pages } = yield* prepared
          const { page } = yield* opened(yield* browser, options)
          const judge = async (name: string) => {
            for (const colorScheme of ["light", "dark"] as const) {
              // Without a transition, in which colours are neither those of light nor those of dark.
              await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
              assert.deepStrictEqual(await violations(page), [], `${name}, ${colorScheme}`)
              const picture = name.replace(/v1-\w+|[\w-]{36}/g, "").replace(/\W+/g, "-")
              await shoot(page, `${screen.replace(/\W+/g, "-")}-${colorScheme}${picture}`, true)
            }
          }
          yield* Effect.promise(async () => {
            await page.goto(`${address}/eventbus/console`)
            await page.getByLabel("Token of the admin API").waitFor()
            await judge(" sign in")
            await signedIn(page, address)
            for (const each of pages) {
              await show(page, address, each)
              await judge(each[0])
              const wide = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")
              assert.isAtMost(wide, 0, each[0])
            }
            await show(page, address, pages[1]!)
            await page.getByRole("button", { name: "Pause" }).first().click()
            await page.getByRole("dialog").waitFor()
            await judge(" dialog")
          })
        }),
      120_000
    )
})
