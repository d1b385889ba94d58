/**
 * A dependency that is down while records keep coming, with a breaker that has no probe: its trials are calls for records, again and again (ruling 72). A second
 * member comes and goes meanwhile, with a breaker of its own. `OUTAGE_SECONDS` is how long the dependency is down; 15 unless it is set.
 */
import { assert } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Data, Effect, Exit, Scope } from "effect"
import * as Bus from "./bus.ts"

class Down extends Data.TaggedError("Down") {}

const seconds = Number(process.env["OUTAGE_SECONDS"] ?? 15)
const partitions = 4
const permitted = 3
const minimumCalls = 5

const retries = {
  tiers: RetryPolicy.tiered({
    blocking: { maxAttempts: 2, initialBackoff: "20 millis" },
    tiers: [300, 600].map((delay) => ({ delay, maxAttempts: 1 }))
  }),
  "no tiers": RetryPolicy.blocking({ maxAttempts: 2, initialBackoff: "20 millis" })
}

/** One process with a breaker of its own. It remembers which records it got for the first time after its breaker had opened, and how many calls each state saw. */
const member = Effect.fnUntraced(function* (name: string, retry: RetryPolicy.RetryPolicy, isDown: () => boolean) {
  const hadOpened = new Map<string, boolean>()
  const handled: Array<string> = []
  const calls = { open: 0, halfOpen: new Map<number, number>() }
  const scope = yield* Effect.acquireRelease(Scope.make(), (open) => Scope.close(open, Exit.void))
  let app: Bus.App | undefined
  const made = Binding.make(name, {
    ...{ topic: name, groupId: name, value: Serde.string, retry },
    ...{ sessionTimeout: "6 seconds", heartbeatInterval: "300 millis" },
    circuitBreaker: {
      ...{ slidingWindowSize: 10, minimumNumberOfCalls: minimumCalls, failureRateThreshold: 50 },
      ...{ waitDurationInOpenState: "400 millis", permittedNumberOfCallsInHalfOpenState: permitted }
    },
    handler: ({ value }) =>
      Effect.suspend(() => {
        const changes = app?.of("BreakerChanged") ?? []
        const state = changes.at(-1)?.to
        if (state === "OPEN") calls.open++
        if (state === "HALF_OPEN") calls.halfOpen.set(changes.length, (calls.halfOpen.get(changes.length) ?? 0) + 1)
        if (!hadOpened.has(value)) hadOpened.set(value, changes.length > 0)
        if (isDown()) return Effect.fail(new Down())
        handled.push(value)
        return Effect.void
      }),
    onError: { Down: Route.retry }
  })
  app = yield* Scope.provide(Bus.start(made), scope)
  const settledAs = (...settlements: ReadonlyArray<string>) =>
    app!
      .of("Settled")
      .flatMap((event) => (settlements.includes(event.settlement) ? [Bus.text(event.record.value) ?? ""] : []))
  const copied = () => settledAs("Routed", "DeadLettered")
  const deadLettered = () => settledAs("DeadLettered")
  return { app, handled, calls, copied, deadLettered, hadOpened, leave: Scope.close(scope, Exit.void) }
})

type Member = Effect.Success<ReturnType<typeof member>>

/** Copies are of records that were handed over before the breaker opened, and of no more of them than open it. */
const assertPrice = ({ app, calls, copied, hadOpened }: Member) => {
  const afterwards = copied().filter((value) => hadOpened.get(value) !== false)
  assert.deepStrictEqual(afterwards, [], "copied although it came after the breaker had opened")
  // Others may run while the call that opens it does: one of each partition.
  assert.isAtMost(new Set(copied()).size, minimumCalls + partitions)
  assert.isAtMost(calls.open, partitions)
  assert.isAtMost(Math.max(0, ...calls.halfOpen.values()), permitted)
  assert.isAbove(app.of("BreakerChanged").length, 2)
}

KafkaSuite.shared("an outage", (bootstrap) => {
  for (const [kind, retry] of Object.entries(retries)) {
    Bus.story(
      bootstrap,
      `C35 ruling 72 ${kind}: of the records that came after the breaker had opened, none is copied, dead-lettered or lost, also when a member comes and goes`,
      () =>
        Effect.gen(function* () {
          const name = Bus.fresh("outage")
          yield* Bus.createTopic(name, partitions)
          let isDown = false
          let published = 0
          const traffic = Effect.fnUntraced(function* (millis: number) {
            const endsAt = performance.now() + millis
            while (performance.now() < endsAt) {
              yield* Bus.publish(Bus.numbered(name, partitions, 4, published))
              published += 4
              yield* Effect.sleep("200 millis")
            }
          })
          const first = yield* member(name, retry, () => isDown)
          yield* traffic(1_000)
          yield* Bus.until("it works", () => first.handled.length === published)
          isDown = true
          yield* traffic((seconds * 1_000) / 3)
          const second = yield* member(name, retry, () => isDown)
          yield* traffic((seconds * 1_000) / 3)
          yield* second.leave
          yield* traffic((seconds * 1_000) / 3)
          isDown = false
          const ended = () =>
            new Set([...first.handled, ...second.handled, ...first.deadLettered(), ...second.deadLettered()])
          const missing = () => {
            const known = ended()
            return Array.from({ length: published }, (_, n) => String(n)).filter((n) => !known.has(n))
          }
          yield* Bus.until("all are handled", () => missing().length === 0, {
            within: "60 seconds",
            otherwise: () => [missing().slice(0, 20), first.app.of("BreakerChanged").at(-1)]
          })
          yield* Bus.lagIsZero(name, name)
          assertPrice(first)
          assertPrice(second)
          const trials = [first, second].map(({ calls }) => Array.from(calls.halfOpen.values()))
          console.log(
            `outage of ${seconds} s, ${kind}: ${published} records, ${new Set(first.copied()).size} and ${new Set(second.copied()).size} copied before the breakers opened, ` +
              `trials ${trials.map((each) => `${each.reduce((sum, calls) => sum + calls, 0)} in ${each.length} windows`).join(", ")}`
          )
        }),
      180_000 + 2_000 * seconds
    )
  }
})
