/** Three processes replay at random times, and some of them are killed, suspended or interrupted at random points. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Random } from "effect"
import { advance, inTime, runScenario, Turns } from "../../../../test/scenarios/bus.ts"
import { type Around, all, copies, fork, letters, older, processOf, setUp, values } from "./replayProcesses.ts"

type Fate = "killed" | "suspended" | "interrupted" | "left alone"
const fates: ReadonlyArray<Fate> = ["killed", "suspended", "interrupted", "left alone"]

const between = Random.nextIntBetween

/** A process replays all, and meets its fate in its transaction number `at`. */
const replaying = Effect.fnUntraced(function* (name: string) {
  const at = yield* between(0, 5)
  const fate = fates[yield* between(0, 3)]!
  const freezes = yield* between(0, 1)
  const around: Around = ({ phase, done, kill, freeze }) =>
    Effect.gen(function* () {
      if (phase === "sent") yield* Effect.sleep("2 seconds")
      if (done !== at) return
      if (fate === "killed" && phase === "sent") return yield* Effect.andThen(kill, Effect.never)
      // With an open transaction, or before it begins.
      if (fate === "suspended" && (phase === "sent") === (freezes === 0)) yield* freeze(23)
    })
  yield* Effect.sleep((yield* between(0, 20)) * 1_000)
  const replay = (yield* processOf(name, around)).replay(all)
  const limit = fate === "interrupted" ? "9 seconds" : "1 hour"
  const ended = yield* Effect.result(Effect.timeoutOption(replay, limit))
  return { fate, ended }
})

const chaos = (seed: number) =>
  Effect.gen(function* () {
    yield* setUp(seed % 2 === 0 ? older : undefined)
    const fibers = yield* Effect.forEach(["host-a", "host-b", "host-c"], (name) => fork(replaying(name)))
    for (let second = 0; second < 150; second++) yield* advance("1 second")
    const before = yield* copies
    assert.strictEqual(new Set(before).size, before.length, `seed ${seed}: a letter was copied twice`)
    const last = yield* inTime((yield* processOf("host-z")).replay(all), "1 second")
    assert.strictEqual(last.replayed, letters - before.length, `seed ${seed}: the count is not that of the log`)
    assert.deepStrictEqual(yield* copies, values, `seed ${seed}`)
    for (const fiber of fibers) {
      const exit = fiber.pollUnsafe()
      if (exit === undefined) continue
      const { fate, ended } = yield* exit
      if (ended._tag === "Success" || fate === "killed") continue
      const allowed = fate === "suspended" ? ["ReplayRunning", "ReplayTakenOver", "RequestTimedOut"] : ["ReplayRunning"]
      assert.include(allowed, ended.failure._tag, `seed ${seed}: ${fate}`)
    }
  })

describe("replays of several processes at random", () => {
  it("OPS-10 each letter is copied once, and a replay that nobody hurt gets its count or learns that another one works", async () => {
    for (let seed = 0; seed < 30; seed++)
      await runScenario(chaos(seed).pipe(Random.withSeed(seed), Effect.provideService(Turns, 40)))
  }, 120_000)
})
