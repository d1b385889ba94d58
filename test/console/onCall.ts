/** The steps of a person on call, who has no mouse: find, look, rehearse, plan with a canary, apply, cancel, the rest, receipt. */
import { mkdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { tokens } from "./incident.ts"
import { fill, press } from "./keyboard.ts"

/** `CONSOLE_SCREENSHOTS=docs/images` writes those that the README shows anew. */
const screenshots = process.env["CONSOLE_SCREENSHOTS"] ?? "node_modules/.cache/console"

/** Writes a picture of what the screen shows, or of the whole page. */
export const shoot = async (page: Page, name: string, fullPage = false): Promise<void> => {
  const path = join(fileURLToPath(new URL(`../../${screenshots}`, import.meta.url)), `${name}.png`)
  mkdirSync(dirname(path), { recursive: true })
  await page.screenshot({ path, fullPage })
}

export const shows = (page: Page, text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor()

/** By keyboard, from the sign-in on. */
export const signIn = async (page: Page, token: string): Promise<void> => {
  // The heading takes the focus once it is painted, also from a field that somebody has begun to fill.
  await page.locator("h1:focus").waitFor()
  await fill(page, "Token of the admin API", token)
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { name: "Bindings of this process" }).waitFor()
}

interface Walk {
  readonly page: Page
  readonly address: string
  /** The topic of the orders. */
  readonly topic: string
  readonly heal: Effect.Effect<void>
  /** Looks at what the page shows. */
  readonly at: (station: string) => Promise<void>
}

/** Ends with a cancelled run and a done one, whose reasons are `reasons`. */
export const onCallWalk = Effect.fnUntraced(function* ({ page, address, topic, heal, at }: Walk) {
  yield* Effect.promise(async () => {
    await page.goto(`${address}/eventbus/console`)
    await at("sign-in")
    await signIn(page, tokens.operator)
    // Find: what holds records back, and where dead letters are.
    assert.strictEqual(await page.title(), "Now · Event bus")
    await shows(page, "1 thing holds records back")
    await shows(page, /^Binding 'payments' on cluster 'default': paused by operator$/)
    await shows(page, "orders has 6 dead letters")
    await shows(page, "Live")
    await at("now")
    await press(page, "Look at the failures of orders")
    // Look: why.
    await shows(page, "6 dead letters wait, for 1 reason.")
    await at("failures")
    await press(page, "Refused")
    await shows(page, /the gateway of the bank does not answer/)
    // Rehearse, while the handler still refuses.
    await press(page, "Rehearse")
    await shows(page, "Today's code, of 6 letters: 6 would fail again.")
    await at("rehearsed")
  })
  yield* heal
  yield* Effect.promise(async () => {
    await press(page, "Rehearse")
    await shows(page, "Today's code, of 6 letters: 6 would pass.")
    // A slow run with a canary, to be cancelled.
    await fill(page, "Most copies a second", "1")
    await fill(page, "Copies that go first and alone", "1")
    await fill(page, "Reason", reasons.cancelled)
    await press(page, "Plan")
    await shows(page, "6 letters are replayed.")
    await shows(page, `${topic} (6)`)
    await at("planned")
    await press(page, "Apply")
    await press(page, "Apply")
    await page.getByRole("heading", { name: "orders · Replay" }).waitFor()
    await shows(page, /^[1-5] of 6 letters dealt with/)
    await press(page, "Cancel")
    await fill(page, "Reason", "too slow")
    await press(page, "Cancel")
    await shows(page, "cancelled")
    await shows(page, /The receipt is closed\./)
    await at("cancelled")
    // The rest, to its end.
    await press(page, "Failures")
    await press(page, "Refused")
    await fill(page, "Reason", reasons.done)
    await press(page, "Plan")
    await shows(page, /letters? (is|are) replayed\./)
    await press(page, "Apply")
    await press(page, "Apply")
    await shows(page, /The receipt is closed\./)
    await shows(page, "done")
    await at("receipt")
    await press(page, "Runs")
    await shows(page, `Replay: ${reasons.done}`)
    await shows(page, `Replay: ${reasons.cancelled}`)
    await at("runs")
  })
})

export const reasons = { cancelled: "INC-1204: the gateway is back", done: "INC-1204: the rest" }

/** The orders of the incident. */
export const orders = ["first", "second", "third", "fourth", "fifth", "sixth"]
