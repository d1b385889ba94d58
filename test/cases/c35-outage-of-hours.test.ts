import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, orders, scenario, start, Turns } from "../scenarios/bus.ts"
import { Down, kinds, type Setup } from "../scenarios/kinds.ts"

/** Retry and breaker of the README. */
const readme = {
  retry: RetryPolicy.tiered({
    blocking: { maxAttempts: 3, initialBackoff: "200 millis" },
    tiers: ["1 minute", "5 minutes", "12 minutes"]
  }),
  circuitBreaker: { slidingWindowSize: 50, failureRateThreshold: 50, waitDurationInOpenState: "30 seconds" }
} as const

interface Outage {
  readonly partitions: number
  /** The outage, in minutes. */
  readonly minutes: number
  /** Records per minute. */
  readonly rate: number
  readonly binding: (handle: Setup["handle"]) => Binding.Binding<never>
}

/** Every call fails for hours, then none does. */
const outage = ({ partitions, minutes, rate, binding }: Outage) =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    yield* memory.createTopic("orders", { partitions })
    yield* memory.createTopic("out")
    let isDown = true
    const calls = { open: 0, halfOpen: new Map<number, number>() }
    const firstHanded = new Map<string, boolean>()
    const app = yield* start(
      binding(({ value }) =>
        Effect.suspend(() => {
          const state = app.of("BreakerChanged").at(-1)?.to ?? "CLOSED"
          if (state === "OPEN") calls.open++
          const changes = app.of("BreakerChanged").length
          if (state === "HALF_OPEN") calls.halfOpen.set(changes, (calls.halfOpen.get(changes) ?? 0) + 1)
          const hasOpened = changes > 0
          if (!firstHanded.has(value!)) firstHanded.set(value!, hasOpened)
          return isDown ? Effect.fail(new Down()) : Effect.void
        })
      )
    )
    let written = 0
    const write = (count: number) =>
      Effect.gen(function* () {
        for (let each = 0; each < count; each++, written++) {
          const key = bytes(`k${written % 50}`)
          yield* memory.append("orders", written % partitions, [{ key, value: bytes(`v${written}`) }])
        }
      })
    for (let minute = 0; minute < minutes; minute++) {
      yield* write(rate)
      yield* advance("1 minute")
    }
    isDown = false
    for (let second = 0; second < 300; second++) yield* advance("1 second")
    const settled = app.of("Settled").filter(({ settlement }) => settlement !== "HeldByBreaker")
    const valueOf = ({ record }: { readonly record: { readonly value: Uint8Array | null } }) =>
      new TextDecoder().decode(record.value!)
    const after = Array.from({ length: written }, (_, index) => `v${index}`).filter(
      (value) => firstHanded.get(value) !== false
    )
    const ofAfter = new Set(after)
    const copied = settled.filter((at) => at.settlement !== "Handled" && ofAfter.has(valueOf(at)))
    assert.deepStrictEqual(copied.map(valueOf), [])
    const handled = settled.filter((at) => at.settlement === "Handled").map(valueOf)
    // Each of them once: nothing is lost, and nothing is repeated.
    const times = Map.groupBy(handled, (value) => value)
    const opened = app
      .of("BreakerChanged")
      .slice(-3)
      .map(({ to, snapshot }) => `${to} ${snapshot.sinceMillis}`)
    assert.deepStrictEqual(after.filter((value) => times.get(value)?.length !== 1).slice(0, 9), [], opened.join())
    assert.isAtLeast(after.length, written - 20)
    assert.strictEqual(calls.open, 0)
    assert.isAtMost(Math.max(...calls.halfOpen.values()), 5)
    assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
  }).pipe(Effect.provideService(Turns, 100))

const single =
  (settings: object) =>
  (handle: Setup["handle"]): Binding.Binding<never> =>
    Binding.make("orders", {
      ...{ ...orders, ...settings, onError: { Down: Route.retry, Invalid: Route.deadLetter() } },
      handler: ({ value, tier, attempt }) => handle({ value, tier, attempt, atMillis: 0 })
    })

describe("C35 an outage of hours", () => {
  for (const [name, retry] of [
    ["tiers", readme.retry],
    ["no tiers", RetryPolicy.blocking({ maxAttempts: 3, initialBackoff: "200 millis" })]
  ] as const) {
    scenario(`ruling 72 CB-08 CB-15 ${name}: retry and breaker of the README, 200 records in three hours`, () =>
      outage({ partitions: 3, minutes: 200, rate: 1, binding: single({ ...readme, retry }) })
    )

    for (const partitions of [1, 12]) {
      scenario(
        `ruling 72 CB-15 ${name}, ${partitions} partitions: six hours, default breaker, ten records a minute`,
        () =>
          outage({
            ...{ partitions, minutes: 360, rate: 10 },
            binding: single({ circuitBreaker: {}, ...(name === "tiers" ? { retry: RetryPolicy.tiered() } : { retry }) })
          })
      )
    }
  }

  for (const [kind, bindingOf] of Object.entries(kinds)) {
    for (const partitions of [1, 12]) {
      scenario(`ruling 72 CB-08 ${kind}, ${partitions} partitions: an hour of outage uses up no record`, () =>
        outage({
          ...{ partitions, minutes: 60, rate: 10 },
          binding: (handle) => bindingOf({ handle, circuitBreaker: {} })
        })
      )
    }
  }
})
