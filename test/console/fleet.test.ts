/** OPS-13 and OPS-21: the fleet in the console, by keyboard alone, in a real Chromium. */
import { assert, it } from "@effect/vitest"
import { BrokerError } from "@eventbus/core"
import { FaultPlan } from "@eventbus/testkit"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { eventually, start } from "../../packages/admin/test/api.ts"
import { whenUsable } from "../services/suites.ts"
import { violations } from "./axe.ts"
import { browser, opened, problem, served } from "./browser.ts"
import { authorizer, incident, tokens } from "./incident.ts"
import { fill, press } from "./keyboard.ts"

const shows = (page: Page, text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor()

const signIn = async (page: Page, token: string): Promise<void> => {
  await fill(page, "Token of the admin API", token)
  await page.keyboard.press("Enter")
  await page.getByRole("heading", { name: "Bindings of this process" }).waitFor()
}

/** A process that the console shows, another one, and one that lives by its heartbeat and answers nothing. */
const fleet = Effect.gen(function* () {
  const program = yield* incident([], { fleet: { version: "1.4.2" } })
  const other = yield* start({ fleet: { version: "1.5.0" }, memory: program.memory, bindings: [] })
  yield* eventually(
    program.call("GET", "/eventbus/fleet", { token: tokens.operator }),
    ({ body }) => body.processes.filter(({ control }: { control: string }) => control === "known").length === 2
  )
  return { ...program, other }
})

const silent = (memory: Effect.Success<typeof fleet>["memory"]) =>
  Effect.scoped(
    Effect.flatMap(memory.broker.producer(), (producer) =>
      producer.send({
        ...{ topic: "__eventbus.fleet", partition: 0, key: new TextEncoder().encode("process/silent") },
        value: new TextEncoder().encode(
          JSON.stringify({
            ...{ v: 1, minV: 1, host: "host-b", pid: 7, version: "1.3.0", configHash: "0" },
            ...{ sentAt: Date.now() + 3_600_000, control: "known", bindings: [], omitted: 1 }
          })
        )
      })
    )
  )

/** The address of a process that cannot read the control topic, and so holds its bindings. */
const blindTo = Effect.fnUntraced(function* (memory: Effect.Success<typeof fleet>["memory"]) {
  const error = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "nobody listens" })
  const control = { operation: "fetch", topic: "__eventbus.control" } as const
  yield* memory.addFault(FaultPlan.chance(1, control, { _tag: "Refuse", error }))
  const settings = { onControlUnavailable: "hold", controlTimeout: "100 millis" } as const
  const { web } = yield* start({ memory, authorizer, fleet: settings })
  return yield* served(web)
})

/** A process of a newer version, whose heartbeat this one cannot read. */
const newer = (memory: Effect.Success<typeof fleet>["memory"]) =>
  memory.append("__eventbus.fleet", 0, [
    { key: new TextEncoder().encode("process/newer"), value: new TextEncoder().encode('{"v":2,"minV":2}') }
  ])

whenUsable("OPS-21 the fleet in the console in Chromium", problem, () => {
  it.live("OPS-13 OPS-20 pause everywhere asks why, shows who holds, and release shows who has released", () =>
    Effect.gen(function* () {
      const { address, connector, memory } = yield* fleet
      const { page, complaints } = yield* opened(yield* browser)
      yield* Effect.promise(async () => {
        await page.goto(`${address}/eventbus/console`)
        await signIn(page, tokens.operator)
        await press(page, "payments")
        await press(page, "Pause everywhere")
        await shows(page, "Pause payments in all processes?")
        await fill(page, "Reason", "INC-1204: the ledger is being repaired")
        await page.keyboard.press("Enter")
        await shows(page, /Paused in all processes by anna/)
        await shows(page, /payments is held\. 1 of 1 process/)
        assert.deepStrictEqual(await violations(page), [], "binding")
      })
      assert.deepStrictEqual((yield* connector.snapshot("payments")).pausedBy, ["fleet"])
      yield* silent(memory)
      yield* Effect.promise(async () => {
        await press(page, "Event bus")
        await shows(page, "1 thing holds records back")
        await shows(page, /Paused in all processes by anna.*INC-1204: the ledger is being repaired/)
        await page.getByRole("button", { name: "Release" }).waitFor()
        assert.deepStrictEqual(await violations(page), [], "now")
        await press(page, "Fleet")
        await shows(page, /^3 processes, 0 stale\. 3 versions: /)
        await shows(page, "host-b, pid 7")
        await shows(page, "off by 3,600 s")
        await shows(page, "INC-1204: the ledger is being repaired")
        assert.deepStrictEqual(await violations(page), [], "fleet")
        await press(page, "payments")
        await press(page, "Release")
        await fill(page, "Reason", "INC-1204: the ledger is right")
        await page.keyboard.press("Enter")
        // The process that does not answer is named.
        await shows(page, /payments is released\. 1 of 2 processes answered\. No answer yet: host-b \(pid 7\)/)
        await page.getByRole("button", { name: "Pause everywhere" }).waitFor()
        await press(page, "Fleet")
        await page.getByRole("heading", { name: "Last released" }).waitFor()
        await shows(page, "INC-1204: the ledger is right")
        await shows(page, "by anna: INC-1204: the ledger is being repaired")
        await shows(page, "stale")
        assert.deepStrictEqual(await violations(page), [], "fleet, released")
      })
      yield* newer(memory)
      yield* Effect.promise(async () => {
        await page.getByRole("row", { name: /^newer a newer one live – – – – –/ }).waitFor()
      })
      assert.strictEqual(yield* connector.getState("payments"), "RUNNING")
      assert.deepStrictEqual(complaints, [])
    })
  )

  it.live(
    "OPS-16 who may not operate sees the hold and no button; without a fleet there is none, and Fleet says why",
    () =>
      Effect.gen(function* () {
        const running = yield* browser
        const { address, call, memory } = yield* fleet
        const body = { scope: "fleet", reason: "the bank is down", until: Date.now() + 3_600_000 }
        yield* call("POST", "/eventbus/bindings/orders/pause", { token: tokens.operator, body })
        const { page } = yield* opened(running)
        yield* Effect.promise(async () => {
          await page.goto(`${address}/eventbus/console`)
          await signIn(page, tokens.viewer)
          await shows(page, /Paused in all processes by anna.*until .*the bank is down/)
          assert.strictEqual(await page.getByRole("button", { name: "Release" }).count(), 0)
        })
        const alone = yield* incident([])
        const { page: other } = yield* opened(running)
        yield* Effect.promise(async () => {
          await other.goto(`${alone.address}/eventbus/console`)
          await signIn(other, tokens.operator)
          await press(other, "payments")
          await other.getByRole("button", { name: "Pause" }).first().waitFor()
          assert.strictEqual(await other.getByRole("button", { name: "Pause everywhere" }).count(), 0)
          await press(other, "Fleet")
          await shows(other, /This program belongs to no fleet/)
          assert.deepStrictEqual(await violations(other), [])
        })
        const blind = yield* blindTo(memory)
        const { page: third } = yield* opened(running)
        yield* Effect.promise(async () => {
          await third.goto(`${blind}/eventbus/console`)
          await signIn(third, tokens.operator)
          await press(third, "orders")
          await shows(third, /Paused in this process since .*topic '__eventbus.control' cannot be read/)
          await third.getByRole("button", { name: "Pause everywhere" }).waitFor()
          await press(third, "Stop")
          await fill(third, "Reason", "INC-1205")
          await third.keyboard.press("Enter")
          await shows(third, "not known: this process owns no partition")
          assert.deepStrictEqual(await violations(third), [])
        })
      })
  )
})
