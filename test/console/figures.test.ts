/** Figures of the console in a real Chromium, and of its API: printed, and asserted only as far as any machine keeps them. The aims are 300 ms for the first paint, 16 ms for an update (p95) and 20 ms for 200 bindings (p99). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { CDPSession } from "playwright-core"
import { binding, start } from "../../packages/admin/test/api.ts"
import { whenUsable } from "../services/suites.ts"
import { browser, opened, problem, served } from "./browser.ts"

/** The milliseconds that the page has worked: script, styles and layout. */
const workedMillis = async (session: CDPSession): Promise<number> => {
  const { metrics } = await session.send("Performance.getMetrics")
  const of = (name: string) => metrics.find((metric) => metric.name === name)?.value ?? 0
  return 1_000 * (of("ScriptDuration") + of("RecalcStyleDuration") + of("LayoutDuration"))
}

/** 200 bindings, of which one consumes. */
const bindings = Array.from({ length: 200 }, (_, index) =>
  binding(`orders-${index}`, { topic: index === 0 ? "orders" : `orders-${index}`, autoStartup: index === 0 })
)

/** The value that this share of them does not exceed. */
const quantile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(values.length * share) - 1)]!

/** The browser compiles the page's functions in these. They are not measured. */
const firstUpdates = 4

/** A quantile of 0.95 needs more of them than a test has time for. Even, since every second one resumes the binding. */
const measuredUpdates = 2 * Math.ceil(Number(process.env["CONSOLE_UPDATES"] ?? 6) / 2)

whenUsable("OPS-21 figures of the console in Chromium", problem, () => {
  it.live("the first paint comes within two seconds", () =>
    Effect.gen(function* () {
      const { web } = yield* start()
      const address = yield* served(web)
      const { page } = yield* opened(yield* browser)
      const paints: Array<number> = []
      yield* Effect.promise(async () => {
        for (let round = 0; round < 5; round++) {
          await page.goto(`${address}/eventbus/console?${round}`)
          await page.getByLabel("Token of the admin API").waitFor()
          paints.push(
            await page.evaluate(
              () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN
            )
          )
        }
      })
      const [first, ...later] = paints.map(Math.round)
      console.log(`Console: first paint after ${first} ms, then ${later.join(", ")} ms`)
      for (const paint of paints) assert.isBelow(paint, 2_000)
    })
  )

  it.live(
    "an update of 200 bindings takes less than half a second",
    () =>
      Effect.gen(function* () {
        const { web, connector } = yield* start({ bindings, authorizer: undefined })
        const address = yield* served(web)
        const { page } = yield* opened(yield* browser)
        const session = yield* Effect.promise(async () => {
          await page.goto(`${address}/eventbus/console`)
          await page.getByText("25 of 200 bindings").waitFor()
          await page.getByLabel("Only with this in name, topic or group").fill("orders-199")
          await page.getByText("1 of 200 bindings").waitFor()
          await page.getByRole("link", { name: "orders-199" }).waitFor()
          await page.getByLabel("Only with this in name, topic or group").fill("")
          await page.getByText("25 of 200 bindings").waitFor()
          const opening = await page.context().newCDPSession(page)
          await opening.send("Performance.enable")
          return opening
        })
        const updates: Array<number> = []
        for (let round = 0; round < firstUpdates + measuredUpdates; round++) {
          const before = yield* Effect.promise(() => workedMillis(session))
          yield* round % 2 === 0 ? connector.pause("orders-0") : connector.resume("orders-0")
          // A look of the test at the page would be work of the page.
          yield* Effect.sleep("1500 millis")
          const worked = (yield* Effect.promise(() => workedMillis(session))) - before
          if (round >= firstUpdates) updates.push(worked)
        }
        yield* Effect.promise(() => page.getByText("All bindings work").first().waitFor())
        const [middle, high, most] = [0.5, 0.95, 1].map((share) => quantile(updates, share).toFixed(1))
        console.log(`Console: update of 200 bindings ${middle} ms in the middle, p95 ${high} ms, ${most} ms at most`)
        assert.isBelow(quantile(updates, 0.5), 500)
      }),
    60_000 + 2_000 * measuredUpdates
  )
})

describe("OPS-21 figures of the admin API over a socket", () => {
  const title = "half of the requests for 200 bindings are answered within 200 ms, also while 50 consoles are open"
  const figures = () =>
    Effect.gen(function* () {
      const { web, connector } = yield* start({ bindings, authorizer: undefined })
      const address = yield* served(web)
      const ask = Effect.promise(async () => {
        const began = performance.now()
        const found = (await (await fetch(`${address}/eventbus/bindings`)).json()) as ReadonlyArray<unknown>
        assert.strictEqual(found.length, 200)
        return performance.now() - began
      })
      const figure = Effect.fnUntraced(function* (what: string) {
        const before = process.cpuUsage()
        const began = performance.now()
        const times: Array<number> = []
        for (let round = 0; round < 300; round++) times.push(yield* ask)
        const { user, system } = process.cpuUsage(before)
        const [middle, high] = [0.5, 0.99].map((share) => quantile(times, share).toFixed(1))
        const share = (user + system) / 10 / (performance.now() - began)
        console.log(
          `GET bindings of 200, ${what}: ${middle} ms in the middle, p99 ${high} ms, ${share.toFixed(0)} % CPU`
        )
        assert.isBelow(quantile(times, 0.5), 200)
      })
      for (let round = 0; round < 200; round++) yield* ask
      yield* figure("nobody else")
      const leaving = new AbortController()
      yield* Effect.promise(() =>
        Promise.all(
          Array.from({ length: 50 }, async () => {
            const { body } = await fetch(`${address}/eventbus/stream`, { signal: leaving.signal })
            void body!.pipeTo(new WritableStream()).catch(() => {})
          })
        )
      )
      const changing = yield* Effect.forkChild(
        Effect.forever(
          Effect.andThen(
            connector.pause("orders-0"),
            Effect.delay(Effect.andThen(connector.resume("orders-0"), Effect.sleep("500 millis")), "500 millis")
          )
        )
      )
      yield* figure("50 streams of changes open")
      yield* Fiber.interrupt(changing)
      leaving.abort()
    })
  it.live(title, figures, 180_000)
})
