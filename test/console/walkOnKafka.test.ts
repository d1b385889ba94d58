/** OPS-20 and OPS-21: the on-call walk on a real Kafka. Its receipts say what a bare client finds in the topics. */
import { assert, describe } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import * as BareClient from "../../packages/kafkajs/test/bareClient.ts"
import * as Bus from "../integration/bus.ts"
import { isSkipped } from "../services/suites.ts"
import { violations } from "./axe.ts"
import { browser, opened, problem } from "./browser.ts"
import { incidentOn, tokens } from "./incident.ts"
import { onCallWalk, orders, reasons, shoot } from "./onCall.ts"

const large = { width: 1_280, height: 800 }

const screens = [
  ["light", "light", large],
  ["dark", "dark", large],
  ["360", "light", { width: 360, height: 740 }],
  ["360-dark", "dark", { width: 360, height: 740 }]
] as const

/** Names the page and its tables where they are wider than the room that they have, but for the rounding of borders. */
const cutOff = `[document.documentElement, ...document.querySelectorAll("table")]
  .filter((each) => (each.parentElement ?? each).scrollWidth > (each.parentElement ?? each).clientWidth + 2)
  .map((each) => each.textContent.slice(0, 80))`

/** On every screen the page breaks no rule and is not wider than the screen. Its picture is for people. */
const looksRight = (page: Page) => async (station: string) => {
  for (const [screen, colorScheme, size] of screens) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize(size)
    // Colors change over a moment.
    await page.waitForTimeout(200)
    assert.deepStrictEqual(await violations(page), [], `${station}, ${screen}`)
    assert.deepStrictEqual(await page.evaluate<ReadonlyArray<string>>(cutOff), [], `${station}, ${screen}`)
    await shoot(page, `walk/${station}-${screen}`, true)
  }
  await page.emulateMedia({ colorScheme: "light" })
  await page.setViewportSize(large)
}

describe.skipIf(isSkipped(problem))("OPS-21 the console in Chromium", () => {
  KafkaSuite.shared("on a real Kafka", (bootstrap) => {
    Bus.story(bootstrap, "OPS-20 OPS-21 the on-call walk, without a mouse, on every screen", () =>
      Effect.gen(function* () {
        assert.isUndefined(problem)
        const names = new Map<string, string>()
        const named = (name: string): string => {
          const known = names.get(name) ?? Bus.fresh(name)
          names.set(name, known)
          return known
        }
        const topic = named("orders")
        for (const each of [topic, named("payments")]) yield* Bus.createTopic(each, 2)
        const publish = yield* BareClient.publisher(bootstrap)
        const { address, heal, call, connector } = yield* incidentOn(orders, named, publish)
        yield* connector.pause("payments")
        const { page, complaints } = yield* opened(yield* browser, { viewport: large })
        yield* onCallWalk({ page, address, topic, heal, at: looksRight(page) })
        assert.deepStrictEqual(complaints, [])

        const dlt = "/eventbus/bindings/orders/dlt"
        const asked = (path: string) =>
          Effect.map(call("GET", `${dlt}${path}`, { token: tokens.operator }), ({ body }) => body)
        const { runs } = yield* asked("/runs")
        assert.deepStrictEqual(
          runs.map(({ state, reason }: Record<string, unknown>) => [state, reason]),
          [
            ["done", reasons.done],
            ["cancelled", reasons.cancelled]
          ]
        )
        const seen = yield* BareClient.observer(bootstrap, Bus.fresh("auditor"), [topic, `${topic}.DLT`])
        const inTopic = () => seen.filter((record) => record.topic === topic)
        yield* Bus.until("the bare client has read the topic", () => inTopic().length >= 12)
        let copies = 0
        for (const { id } of runs) {
          const receipt = yield* asked(`/runs/${id}`)
          const found = inTopic().filter(({ header }) => header("x-eventbus-run-id")?.startsWith(id))
          const { dealtWith, passed, cameBack, waiting, unknown, elsewhere, closed } = receipt
          assert.deepStrictEqual(
            { dealtWith, passed, cameBack, waiting, unknown, elsewhere, closed },
            {
              ...{ dealtWith: found.length, passed: found.length },
              ...{ cameBack: 0, waiting: 0, unknown: 0, elsewhere: 0, closed: true }
            }
          )
          copies += found.length
        }
        // Each order once as it came and once again, and nothing came back.
        assert.deepStrictEqual(
          [inTopic().length, copies, new Set(inTopic().map(({ value }) => value)).size],
          [12, 6, 6]
        )
        assert.strictEqual(seen.filter((record) => record.topic === `${topic}.DLT`).length, 6)
        assert.strictEqual(yield* Bus.lag(named("billing"), topic), 0n)
      })
    )
  })
})
