import { assert, describe, it } from "@effect/vitest"
import { VirtualClock } from "@eventbus/testkit"
import { Clock, Effect, Fiber, Schedule } from "effect"

describe("VirtualClock", () => {
  it.effect("sleeps end in the order of their ends and take no real time", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const step = (name: string, millis: number) =>
        Effect.andThen(
          Effect.sleep(millis),
          Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => log.push(`${name}@${now}`)))
        )
      yield* Effect.all([step("c", 86_400_000), step("a", 10), step("b", 20), step("b2", 20)], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(log, ["a@10", "b@20", "b2@20", "c@86400000"])
    }).pipe(Effect.provide(VirtualClock.layer))
  )

  it.effect("time stands still while any fiber has work", () =>
    Effect.gen(function* () {
      const hops = Effect.repeat(Effect.yieldNow, { times: 5000 })
      yield* Effect.all([hops, hops, hops], { concurrency: "unbounded" }).pipe(Effect.timeout("1 millis"))
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
    }).pipe(Effect.provide(VirtualClock.layer))
  )

  it.effect("an interrupted sleep does not move the clock", () =>
    Effect.gen(function* () {
      const sleeper = yield* Effect.forkChild(Effect.sleep("1 hour"), { startImmediately: true })
      yield* Fiber.interrupt(sleeper)
      yield* Effect.sleep("1 second")
      assert.strictEqual(yield* Clock.currentTimeMillis, 1000)
    }).pipe(Effect.provide(VirtualClock.layer))
  )

  it.effect("schedules, timeouts and promises work on a virtual clock", () =>
    Effect.gen(function* () {
      let tries = 0
      const flaky = Effect.suspend(() =>
        ++tries < 6 ? Effect.fail("not yet") : Effect.promise(() => Promise.resolve(tries))
      )
      assert.strictEqual(yield* Effect.retry(flaky, Schedule.exponential("1 minute")), 6)
      assert.strictEqual(yield* Clock.currentTimeMillis, 31 * 60_000)
      const timedOut = yield* Effect.never.pipe(Effect.timeout("1 day"), Effect.flip)
      assert.strictEqual(timedOut._tag, "TimeoutError")
    }).pipe(Effect.provide(VirtualClock.layer))
  )
})
