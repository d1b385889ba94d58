/** OPS-12 and OPS-21: the outbox's dead events, dealt with in a real Chromium by keyboard: groups, plan, apply, receipt, and one event by itself. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { start } from "../../packages/admin/test/api.ts"
import * as OutboxOf from "../../packages/admin/test/outboxOf.ts"
import { whenUsable } from "../services/suites.ts"
import { violations } from "./axe.ts"
import { browser, opened, problem, served } from "./browser.ts"
import { authorizer, tokens } from "./incident.ts"
import { fill, press } from "./keyboard.ts"
import { shows } from "./onCall.ts"

const script = `"'><img src=x onerror="window.harmed=1"><script>window.harmed=1</script>`

/** Two events of one group and one of another, all of whose texts want to be a script. */
const withDead = Effect.gen(function* () {
  const { die, outbox, store } = yield* OutboxOf.make
  const texts = { aggregateId: script, payload: { script }, headers: { script } }
  for (const eventId of ["e-0", "e-1"]) yield* die({ ...texts, eventId, error: `Refused: ${script}` })
  yield* die({ ...texts, eventId: "<b>e 2", error: `TypeError: ${script}` })
  const program = yield* start({ outbox, authorizer })
  return { ...program, store, address: yield* served(program.web) }
})

const signIn = async (page: Page, address: string, token: string): Promise<void> => {
  await page.goto(`${address}/eventbus/console`)
  await fill(page, "Token of the admin API", token)
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { name: "Bindings of this process" }).waitFor()
}

whenUsable("OPS-12 OPS-21 dead events in Chromium", problem, () => {
  it.live("a group is planned, applied and followed to its receipt, and one event is deleted for good", () =>
    Effect.gen(function* () {
      const { address, store, call } = yield* withDead
      const { page, complaints } = yield* opened(yield* browser)
      const isFine = async (name: string) => assert.deepStrictEqual(await violations(page), [], name)
      yield* Effect.promise(async () => {
        await signIn(page, address, tokens.operator)
        await press(page, "Outbox")
        await shows(page, "3 events are dead, for 2 reasons.")
        // The message of a group has no numbers and no quotes.
        await shows(page, /<script>window.harmed/)
        await isFine("Outbox")
        await press(page, "Refused")
        await shows(page, "2 events are dead.")
        await isFine("group")
        await fill(page, "Reason", script)
        await page.keyboard.press("Enter")
        await shows(page, "2 events are replayed.")
        await isFine("plan")
        await press(page, "Apply")
        await shows(page, "Apply this plan to 2 events?")
        await press(page, "Apply")
        await shows(page, "Of 2 events: 2 wait for their delivery.")
        await isFine("receipt")
      })
      yield* store.markDone(["e-0", "e-1"])
      yield* Effect.promise(async () => {
        await shows(page, "Of 2 events: 2 delivered. The receipt is closed.")
        await press(page, "All dead events")
        await press(page, "TypeError")
        await press(page, "<b>e 2")
        await page.getByRole("heading", { name: "Why it died" }).waitFor()
        await isFine("event")
        await press(page, "Delete")
        await shows(page, "Nothing brings it back.")
        await fill(page, "Reason", "INC-1204")
        await page.keyboard.press("Enter")
        await shows(page, "No event is dead.")
        assert.isFalse(await page.evaluate(() => Reflect.has(globalThis, "harmed")))
      })
      assert.deepStrictEqual((yield* call("GET", "/eventbus/outbox/dead/events", { token: tokens.operator })).body, {
        events: []
      })
      assert.deepStrictEqual(complaints, [])
    })
  )

  it.live(
    "OPS-16 a caller who may only look has no button and sees no payload; without an outbox the page says so",
    () =>
      Effect.gen(function* () {
        const running = yield* browser
        const { address } = yield* withDead
        const { page } = yield* opened(running)
        yield* Effect.promise(async () => {
          await signIn(page, address, tokens.viewer)
          await page.goto(`${address}/eventbus/console#/outbox/events/e-0`)
          await shows(page, "are shown with the permission view-payload")
          await page.waitForLoadState("networkidle", { timeout: 3_000 }).catch(() => undefined)
          for (const name of ["Replay", "Delete", "Plan"])
            assert.strictEqual(await page.getByRole("button", { name, exact: true }).count(), 0, name)
          assert.notInclude(await page.content(), "window.harmed")
        })
        const without = yield* start({ authorizer })
        const bare = yield* opened(running)
        const elsewhere = yield* served(without.web)
        yield* Effect.promise(async () => {
          await signIn(bare.page, elsewhere, tokens.operator)
          await press(bare.page, "Outbox")
          await shows(bare.page, "The program shows no outbox to the console.")
          assert.deepStrictEqual(await violations(bare.page), [])
        })
      })
  )
})
