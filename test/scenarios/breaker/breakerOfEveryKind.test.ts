import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, bytes, inTime, runScenario, scenario, start, Turns, until } from "../bus.ts"
import { Down, Invalid, kinds } from "../kinds.ts"

const breaker = {
  minimumNumberOfCalls: 3,
  slidingWindowSize: 3,
  permittedNumberOfCallsInHalfOpenState: 1,
  waitDurationInOpenState: "30 seconds"
} as const

/** Topic `orders` with records in all of its partitions, and more of them waiting in both retry topics. */
const filled = Effect.fnUntraced(function* (partitions: number, each: number) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("out")
  for (const topic of ["orders", "orders.retry-1", "orders.retry-2"]) {
    yield* memory.createTopic(topic, { partitions })
    for (let partition = 0; partition < partitions; partition++) {
      yield* append(
        topic,
        partition,
        Array.from({ length: each }, (_, index) => `${topic}-${partition}-${index}`)
      )
    }
  }
  return memory
})

describe("one circuit breaker for main topic, tiers and consumers", () => {
  for (const [kind, bindingOf] of Object.entries(kinds)) {
    scenario(`CB-03 CB-09 C07 ruling 27 ${kind}: one trial call over 12 partitions, 3 topics and 3 consumers`, () =>
      Effect.gen(function* () {
        yield* filled(12, 5)
        let isDown = true
        let running = 0
        let mostAtOnce = 0
        let calls = 0
        const app = yield* start(
          bindingOf({
            concurrency: 3,
            circuitBreaker: breaker,
            handle: () =>
              Effect.gen(function* () {
                calls++
                mostAtOnce = Math.max(mostAtOnce, ++running)
                yield* Effect.sleep("500 millis")
                if (isDown) return yield* new Down()
              }).pipe(Effect.ensuring(Effect.sync(() => running--)))
          })
        )
        // Every record of the tiers is due by then, and the breaker has been open for a while.
        yield* advance("70 seconds")
        assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
        const before = calls
        mostAtOnce = 0
        yield* until(() => app.of("BreakerChanged").at(-1)?.to === "HALF_OPEN", "250 millis")
        yield* advance("400 millis")
        assert.strictEqual(calls, before + 1)
        for (let second = 0; second < 29; second++) yield* advance("1 second")
        // A batch is one call of several records, one after the other.
        assert.isAtMost(calls, before + (kind === "whole batches" ? 4 : 1))
        assert.strictEqual(mostAtOnce, 1)
        isDown = false
        yield* until(() => app.of("BreakerChanged").at(-1)?.to === "CLOSED", "1 second")
        const finished = () => app.of("Settled").filter(({ settlement }) => settlement === "Handled").length
        yield* until(() => finished() >= 180, "10 seconds")
        assert.deepStrictEqual(
          app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered"),
          []
        )
      })
    )

    scenario(`CB-11 ${kind}: the breaker does not hang, however a trial call ends`, () =>
      Effect.promise(async () => {
        for (const seed of [1, 2, 3, 4, 5, 17])
          await runScenario(Effect.provideService(troubled(bindingOf, seed), Turns, 60))
      })
    )
  }
})

/** A dependency that comes and goes, poison, permanent errors, defects, rebalances, pauses and a clogged handler: at the end all is finished. */
const troubled = (bindingOf: (typeof kinds)[keyof typeof kinds], seed: number) =>
  Effect.gen(function* () {
    const random = randomFrom(seed)
    const memory = yield* filled(3, 3)
    for (const topic of ["orders", "orders.retry-1"]) {
      yield* memory.append(topic, 0, [{ key: bytes("k"), value: new Uint8Array([0xff]) }])
    }
    let isOver = false
    const setup = {
      consumer: random() < 0.5 ? ("separate" as const) : ("shared" as const),
      circuitBreaker: {
        ...breaker,
        permittedNumberOfCallsInHalfOpenState: 1 + Math.floor(random() * 3),
        automaticPauseOnOpen: random() < 0.5
      },
      handle: () =>
        Effect.suspend((): Effect.Effect<void, Down | Invalid> => {
          if (isOver) return Effect.void
          const chance = random()
          if (chance < 0.4) return Effect.fail(new Down())
          if (chance < 0.5) return Effect.fail(new Invalid())
          if (chance < 0.6) return Effect.die("defect")
          if (chance < 0.65) return Effect.interrupt
          if (chance < 0.7) return Effect.sleep("90 seconds")
          return Effect.sleep(random() * 1_000)
        })
    }
    const app = yield* start(bindingOf(setup))
    for (let step = 0; step < 10; step++) {
      yield* advance(random() * 40_000)
      const chance = random()
      if (chance < 0.3) yield* inTime(Effect.ignore(app.connector.pause("orders")))
      else if (chance < 0.6) yield* Effect.ignore(app.connector.resume("orders"))
      else if (chance < 0.8) {
        const other = yield* start(bindingOf(setup))
        yield* advance(random() * 40_000)
        yield* inTime(other.close)
      }
    }
    yield* Effect.ignore(app.connector.resume("orders"))
    isOver = true
    for (let minute = 0; minute < 15; minute++) yield* advance("1 minute")
    for (const topic of ["orders", "orders.retry-1", "orders.retry-2"]) {
      for (const partition of [0, 1, 2]) {
        const end = (yield* memory.log(topic, partition)).at(-1)?.offset ?? -1n
        const group = setup.consumer === "separate" && topic !== "orders" ? "billing.retry" : "billing"
        const committed = (yield* memory.committed(group, topic, partition)) ?? 0n
        assert.isAtLeast(Number(committed), Number(end) + 1, `seed ${seed}: ${topic}-${partition}`)
      }
    }
    assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING", `seed ${seed}`)
    assert.deepStrictEqual(app.of("SessionCrashed"), [])
  })

/** mulberry32. */
const randomFrom = (seed: number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
