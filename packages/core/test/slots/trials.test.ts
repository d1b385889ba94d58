/**
 * Which record a half-open breaker tries, where there are more candidates than trial calls (ruling 72). Each window the candidates come in the same order, that of their
 * partitions: only the rotation decides.
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import * as CircuitBreaker from "../../src/CircuitBreaker.ts"
import type { ConsumerRecord } from "../../src/ConsumerRecord.ts"
import { type TrialOptions, Trials } from "../../src/internal/slots/trials.ts"

const recordOf = (name: string, partition: number): ConsumerRecord => ({
  ...{ topic: "orders", partition, offset: 0n, timestamp: 0, timestampType: "CreateTime" as const },
  ...{ key: null, value: new TextEncoder().encode(name), headers: [] }
})

interface Setting extends Partial<Omit<TrialOptions, "onGathered" | "nowMillis">> {
  readonly permits: number
}

/** A breaker that one failure opens, and candidates that come, are tried, and stay where they are. */
const harness = Effect.fnUntraced(function* ({ permits, maxAttempts = 100, giveUpAfterMillis = Infinity }: Setting) {
  const breaker = yield* CircuitBreaker.make({
    ...{ minimumNumberOfCalls: 1, slidingWindowSize: 1, waitDurationInOpenState: "30 seconds" },
    permittedNumberOfCallsInHalfOpenState: permits
  })
  const clock = yield* Clock.Clock
  const nowMillis = () => clock.currentTimeMillisUnsafe()
  let gathered: () => void = () => {}
  const trials = new Trials(breaker, {
    ...{ maxAttempts, giveUpAfterMillis, nowMillis },
    onGathered: (each) => (gathered = each)
  })
  breaker.onChange((change) => trials.onChange(change))

  const records = new Map<string, ConsumerRecord>()
  const permitOf = new Map<string, CircuitBreaker.Permit>()
  const waiting = new Map<string, { readonly record: ConsumerRecord; readonly wake: () => void }>()
  /** Those that were tried in this window, in their order. */
  let tried: Array<string> = []

  const recordNamed = (name: string): ConsumerRecord => {
    const known = records.get(name) ?? recordOf(name, records.size)
    records.set(name, known)
    return known
  }
  /** The record asks for its trial, and waits where it gets none. */
  const come = (name: string): void => {
    const record = recordNamed(name)
    if (breaker.stateUnsafe() === "HALF_OPEN" && trials.mayTry(record)) {
      const permit = breaker.tryAcquireUnsafe(nowMillis())
      if (permit !== undefined) {
        tried.push(name)
        permitOf.set(name, permit)
        trials.begin(record)
        return
      }
    }
    const candidate = {
      record,
      wake: () => {
        trials.leave(candidate)
        waiting.delete(name)
        if (breaker.stateUnsafe() === "HALF_OPEN") come(name)
      }
    }
    waiting.set(name, candidate)
    trials.add(candidate)
  }
  /** The call of a record ends. True when a failed one stays where it is. */
  const end = (name: string, outcome: "success" | "failure" | "released"): boolean => {
    const permit = permitOf.get(name)!
    permitOf.delete(name)
    const record = recordNamed(name)
    const stays = outcome === "failure" && trials.staysInPlace(record)
    trials.end(record, permit, outcome)
    if (outcome === "released") breaker.releaseUnsafe(permit)
    else breaker.recordUnsafe(permit, outcome, 0, nowMillis())
    trials.next()
    return stays
  }

  return {
    ...{ trials, breaker, come, end },
    tried: () => tried,
    /** The time is over in which the candidates of this window come. */
    gather: () => gathered(),
    gathering: () => gathered,
    /** The breaker opens, waits, and is half-open. Nobody waits meanwhile: an open breaker pauses the partitions. */
    halfOpen: Effect.gen(function* () {
      for (const candidate of waiting.values()) trials.remove(candidate)
      waiting.clear()
      tried = []
      if (breaker.stateUnsafe() === "CLOSED") {
        breaker.recordUnsafe(breaker.tryAcquireUnsafe(nowMillis())!, "failure", 0, nowMillis())
      }
      assert.strictEqual(breaker.stateUnsafe(), "OPEN")
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(breaker.stateUnsafe(), "HALF_OPEN")
    })
  }
})

/** One window: all come, are tried as far as there are permits, and fail. Answers who was tried. */
const failingWindow = Effect.fnUntraced(function* (
  of: Effect.Success<ReturnType<typeof harness>>,
  names: ReadonlyArray<string>
) {
  yield* of.halfOpen
  for (const name of names) of.come(name)
  of.gather()
  const tried = [...of.tried()]
  for (const name of tried) assert.isTrue(of.end(name, "failure"), name)
  return tried
})

describe("the rotation of trials", () => {
  for (const permits of [1, 2, 3]) {
    it.effect(
      `ruling 72 of seven candidates ${permits} are tried in a window, and none is tried again before the others`,
      () =>
        Effect.gen(function* () {
          const of = yield* harness({ permits })
          const names = ["a", "b", "c", "d", "e", "f", "g"]
          const round = Math.ceil(names.length / permits)
          const windows: Array<ReadonlyArray<string>> = []
          while (windows.length < 4 * round) windows.push(yield* failingWindow(of, names))
          for (let from = 0; from + round <= windows.length; from++) {
            const tried = new Set(windows.slice(from, from + round).flat())
            assert.strictEqual(tried.size, names.length, `from window ${from}: ${windows.join(" | ")}`)
          }
        })
    )
  }

  it.effect("ruling 72 a record that fails for ever does not keep the others from their trial", () =>
    Effect.gen(function* () {
      const of = yield* harness({ permits: 1 })
      assert.deepStrictEqual(yield* failingWindow(of, ["poison", "a", "b"]), ["poison"])
      assert.deepStrictEqual(yield* failingWindow(of, ["poison", "a", "b"]), ["a"])
      assert.deepStrictEqual(yield* failingWindow(of, ["poison", "a", "b"]), ["b"])
      assert.deepStrictEqual(yield* failingWindow(of, ["poison", "a", "b"]), ["poison"])
      yield* of.halfOpen
      for (const name of ["poison", "a", "b"]) of.come(name)
      of.gather()
      assert.deepStrictEqual(of.tried(), ["a"])
      of.end("a", "success")
      assert.strictEqual(of.breaker.stateUnsafe(), "CLOSED")
    })
  )

  it.effect("ruling 72 until the candidates of all partitions can be there, permits are kept for new records", () =>
    Effect.gen(function* () {
      const of = yield* harness({ permits: 2 })
      assert.deepStrictEqual(yield* failingWindow(of, ["a", "b"]), ["a", "b"])
      yield* of.halfOpen
      for (const name of ["a", "b", "c"]) of.come(name)
      // The call of a new record says nothing, and its permit is free again: the records of the last window still wait.
      of.end("c", "released")
      assert.deepStrictEqual(of.tried(), ["c"])
      for (const name of ["d", "e"]) of.come(name)
      assert.deepStrictEqual(of.tried(), ["c", "d", "e"])
    })
  )

  it.effect("ruling 72 once they can be there, those that were tried longest ago take what is left", () =>
    Effect.gen(function* () {
      const of = yield* harness({ permits: 2 })
      assert.deepStrictEqual(yield* failingWindow(of, ["b", "c"]), ["b", "c"])
      assert.deepStrictEqual(yield* failingWindow(of, ["a", "d"]), ["a", "d"])
      yield* of.halfOpen
      for (const name of ["a", "b", "c", "d"]) of.come(name)
      assert.deepStrictEqual(of.tried(), [])
      of.gather()
      assert.deepStrictEqual(of.tried(), ["b", "c"])
    })
  )

  it.effect("ruling 72 a record is tried once in a window, and the breaker judges once each was", () =>
    Effect.gen(function* () {
      const of = yield* harness({ permits: 5 })
      yield* of.halfOpen
      of.come("a")
      of.come("b")
      of.end("a", "failure")
      of.come("a")
      of.gather()
      assert.strictEqual(of.breaker.stateUnsafe(), "HALF_OPEN", "a call still runs")
      of.end("b", "failure")
      assert.deepStrictEqual(of.tried(), ["a", "b"])
      assert.strictEqual(of.breaker.stateUnsafe(), "OPEN")
    })
  )

  it.effect("ruling 72 the breaker does not judge before the candidates of all partitions can be there", () =>
    Effect.gen(function* () {
      const of = yield* harness({ permits: 2 })
      yield* of.halfOpen
      of.come("a")
      of.end("a", "failure")
      assert.strictEqual(of.breaker.stateUnsafe(), "HALF_OPEN")
      of.come("b")
      of.end("b", "success")
      assert.deepStrictEqual(of.tried(), ["a", "b"])
    })
  )

  it.effect("ruling 72 a trial that came to no outcome is made again in the same window", () =>
    Effect.gen(function* () {
      const of = yield* harness({ permits: 1 })
      yield* of.halfOpen
      of.come("a")
      of.end("a", "released")
      of.come("a")
      assert.deepStrictEqual(of.tried(), ["a", "a"])
    })
  )

  it.effect("ruling 72 the time of an earlier window is not that of this one", () =>
    Effect.gen(function* () {
      const of = yield* harness({ permits: 1 })
      yield* failingWindow(of, ["a"])
      const earlier = of.gathering()
      yield* of.halfOpen
      of.come("a")
      earlier()
      assert.deepStrictEqual(of.tried(), [])
      of.gather()
      assert.deepStrictEqual(of.tried(), ["a"])
    })
  )

  it.effect("ruling 72 a permit that a chosen record cannot use goes to the next one", () =>
    Effect.gen(function* () {
      const of = yield* harness({ permits: 1 })
      assert.deepStrictEqual(yield* failingWindow(of, ["a"]), ["a"])
      assert.deepStrictEqual(yield* failingWindow(of, ["b"]), ["b"])
      yield* of.halfOpen
      const woken: Array<string> = []
      const candidates = ["a", "b"].map((name) => {
        const candidate = {
          record: recordOf(name, 0),
          wake: () => {
            woken.push(name)
            of.trials.leave(candidate)
          }
        }
        return candidate
      })
      of.come("c")
      for (const candidate of candidates) of.trials.add(candidate)
      of.end("c", "released")
      assert.deepStrictEqual(woken, ["a"])
      of.trials.next()
      assert.deepStrictEqual(woken, ["a"])
      // Chosen, and not tried yet: no other record may take the permit that is meant for it.
      assert.isFalse(of.trials.mayTry(recordOf("new", 3)))
      assert.isTrue(of.trials.mayTry(candidates[0]!.record))
      of.trials.pass(candidates[0]!.record)
      assert.deepStrictEqual(woken, ["a", "b"])
    })
  )
})

describe("what a failed trial costs", () => {
  it.effect("ruling 72 a window in which another trial succeeds counts, one in which none does counts not", () =>
    Effect.gen(function* () {
      const of = yield* harness({ permits: 2, maxAttempts: 3 })
      for (let window = 0; window < 5; window++) yield* failingWindow(of, ["poison", "a"])
      const mixedWindow = Effect.gen(function* () {
        yield* of.halfOpen
        of.come("poison")
        of.come(`good-${of.breaker.freePermitsUnsafe()}`)
        of.gather()
        for (const name of [...of.tried()].reverse()) if (name !== "poison") of.end(name, "success")
        return of.end("poison", "failure")
      })
      assert.isTrue(yield* mixedWindow)
      yield* failingWindow(of, ["poison", "a"])
      assert.isTrue(yield* mixedWindow)
      assert.isFalse(yield* mixedWindow)
    })
  )

  it.effect("ruling 72 the order of failure and success in a window makes no difference", () =>
    Effect.gen(function* () {
      const of = yield* harness({ permits: 2, maxAttempts: 2 })
      yield* of.halfOpen
      of.come("poison")
      of.come("good")
      assert.isTrue(of.end("poison", "failure"))
      of.end("good", "success")
      yield* of.halfOpen
      of.come("good")
      of.come("poison")
      of.gather()
      of.end("good", "success")
      assert.isFalse(of.end("poison", "failure"))
    })
  )

  it.effect("ruling 72 only a record that is alone is named, and giveUpAfter counts from then", () =>
    Effect.gen(function* () {
      // A window begins every 30 seconds.
      const of = yield* harness({ permits: 1, giveUpAfterMillis: 60_000 })
      yield* failingWindow(of, ["a", "b"])
      assert.isUndefined(of.trials.look().only)
      yield* failingWindow(of, ["a", "b"])
      yield* failingWindow(of, ["a"])
      assert.deepInclude(of.trials.look().only!, { topic: "orders", partition: 0, offset: 0n, sinceMillis: 90_000 })
      yield* failingWindow(of, ["a"])
      assert.strictEqual(of.trials.look().only?.sinceMillis, 90_000)
      // Another record comes: it is no longer alone, and the time counts anew.
      yield* failingWindow(of, ["b", "a"])
      yield* failingWindow(of, ["a", "b"])
      assert.isUndefined(of.trials.look().only)
      yield* failingWindow(of, ["a"])
      assert.strictEqual(of.trials.look().only?.sinceMillis, 210_000)
      yield* failingWindow(of, ["a"])
      yield* of.halfOpen
      of.come("a")
      of.gather()
      assert.isFalse(of.end("a", "failure"))
    })
  )
})
