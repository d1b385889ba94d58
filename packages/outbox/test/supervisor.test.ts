import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import { Monitor } from "../src/internal/base/monitor.ts"
import { supervise } from "../src/internal/base/supervisor.ts"

describe("supervisor", () => {
  it.effect("ruling 86: a dead fiber is counted and started again, after 100 ms, 200 ms and so on to 30 s", () =>
    Effect.gen(function* () {
      const monitor = new Monitor()
      let starts = 0
      let deaths = 0
      const dies = Effect.flatMap(
        Effect.sync(() => ++starts),
        () => undefined as unknown as Effect.Effect<void>
      )
      const fiber = yield* Effect.forkChild(supervise({ name: "worker 1", monitor, onDeath: () => deaths++ }, dies))
      yield* TestClock.adjust(0)
      assert.strictEqual(starts, 1)
      yield* TestClock.adjust(100)
      assert.strictEqual(starts, 2)
      yield* TestClock.adjust(199)
      assert.strictEqual(starts, 2)
      yield* TestClock.adjust(1)
      assert.strictEqual(starts, 3)
      yield* TestClock.adjust("10 minutes")
      assert.isTrue(starts >= 25 && starts <= 31, String(starts))
      assert.strictEqual(deaths, starts)
      const [problem] = monitor.problems(600_000)
      assert.deepInclude(problem, { source: "fiber", name: "worker 1", count: starts })
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(deaths, starts)
    })
  )

  it.effect("ruling 86: repair runs before the restart, and one that has dealt with the cause starts it at once", () =>
    Effect.gen(function* () {
      const steps: Array<string> = []
      let left = 3
      const effect = Effect.suspend(() => {
        steps.push("start")
        return left-- > 0 ? Effect.die("no") : Effect.void
      })
      const repair = () =>
        Effect.sync((): "restart" => {
          steps.push("repair")
          return "restart"
        })
      yield* supervise({ name: "worker 1", monitor: new Monitor(), repair }, effect)
      assert.deepStrictEqual(steps, ["start", "repair", "start", "repair", "start", "repair", "start"])
    })
  )

  const full = {
    throws: () => {
      throw new Error("ENOSPC")
    },
    "is rejected": () => Promise.reject(new Error("ENOSPC"))
  }
  for (const [how, log] of Object.entries(full)) {
    it.effect(`ruling 86: a logger that ${how} keeps no dead fiber from its restart, and is a problem itself`, () => {
      const monitor = new Monitor()
      let starts = 0
      const dies = Effect.suspend(() => (starts++ < 3 ? Effect.die("no") : Effect.void))
      return Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(supervise({ name: "worker 1", monitor }, dies))
        yield* TestClock.adjust("1 second")
        assert.strictEqual(starts, 4)
        assert.isDefined(fiber.pollUnsafe())
        yield* Effect.promise(() => Promise.resolve())
        assert.deepStrictEqual(
          monitor.problems(1000).map(({ source, name, count, lastError }) => [source, name, count, lastError]),
          [
            ["fiber", "worker 1", 3, "no"],
            ["function", "logger", 3, "Error: ENOSPC"]
          ]
        )
      }).pipe(Effect.provide(Logger.layer([Logger.make<unknown, unknown>(log)])))
    })
  }

  it.effect("ruling 86: closing leaves a fiber behind that resists its interruption", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
      const stubborn = Effect.uninterruptible(Effect.never)
      const fiber = yield* Effect.forkChild(
        Effect.provide(supervise({ name: "worker 1", monitor: new Monitor() }, stubborn), logger)
      )
      yield* TestClock.adjust("1 second")
      const closing = yield* Effect.forkChild(Fiber.interrupt(fiber))
      yield* TestClock.adjust("1999 millis")
      assert.isUndefined(closing.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.isDefined(closing.pollUnsafe())
      assert.match(lines.join("\n"), /^outbox: fiber 'worker 1' resists its interruption/)
    })
  )

  it("a problem is logged at once and then at most once a minute, shown for ten minutes, and gone when it is cleared", () => {
    const monitor = new Monitor()
    assert.isTrue(monitor.report("listener", "a:b", "one", 0))
    assert.isFalse(monitor.report("listener", "a:b", "two", 59_999))
    assert.isTrue(monitor.report("listener", "a:b", "three", 60_000))
    assert.deepInclude(monitor.problems(60_000)[0], {
      count: 3,
      lastError: "three",
      sinceMillis: 0,
      lastMillis: 60_000
    })
    assert.deepStrictEqual(monitor.problems(660_000), [])
    assert.isTrue(monitor.clear("listener", "a:b"))
    assert.isFalse(monitor.clear("listener", "a:b"))
    for (let i = 0; i < 1500; i++) monitor.report("listener", `l${i}`, "x", 700_000)
    assert.strictEqual(monitor.problems(700_000).length, 1000)
  })
})
