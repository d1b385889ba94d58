import { createHash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Fiber, Result } from "effect"
import { advance, append, headersOf, inTime, scenario, text } from "../../../../test/scenarios/bus.ts"
import * as Binding from "../../src/Binding.ts"
import type { DeadLetterRecord } from "../../src/DeadLetterRecord.ts"
import { type LetterTransform, Skip } from "../../src/LetterTransform.ts"
import * as Serde from "../../src/Serde.ts"
import { ofRun, withOrders } from "./ordersBinding.ts"
import { atOnce, runsOf } from "./runProcesses.ts"

const sha256 = (value: string) => createHash("sha256").update(value).digest("hex")

const withLetters = Effect.fnUntraced(function* (
  transform: LetterTransform<unknown, unknown>,
  values: ReadonlyArray<string> = [..."abc"],
  serde: Serde.Any = Serde.string
) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: 2 })
  yield* memory.createTopic("orders.DLT")
  yield* append("orders.DLT", 0, values)
  const runs = yield* runsOf("host-a", {
    transforms: new Map([["repair", transform]]),
    serdes: { key: Serde.string, value: serde }
  })
  const plan = yield* inTime(runs.plan({ ...atOnce, transform: "repair" }))
  const receipt = yield* inTime(runs.apply(plan.id), "1 second")
  const logs = yield* Effect.forEach([0, 1], (partition) => memory.log("orders", partition))
  return { memory, runs, plan, receipt, copies: logs.flat() }
})

const valueOf = ({ value }: DeadLetterRecord) => text(value) ?? ""

describe("transforms of dead letters", () => {
  scenario(
    "OPS-06 a run publishes the repaired value through the serde; the letter stays, and both hashes are kept",
    () =>
      Effect.gen(function* () {
        const { memory, plan, receipt, copies } = yield* withLetters((letter) =>
          Effect.succeed({ value: `${valueOf(letter)}!` })
        )
        assert.deepInclude(receipt, { state: "done", transform: "repair", dealtWith: 3, refused: 0 })
        assert.deepStrictEqual(copies.map(({ value }) => text(value)).sort(), ["a!", "b!", "c!"])
        for (const copy of copies) assert.strictEqual(headersOf(copy).get("x-eventbus-transformed-by"), "repair")
        const letters = (yield* memory.log("orders.DLT", 0)).map(({ value }) => text(value))
        assert.deepStrictEqual(letters, ["a", "b", "c"])
        const entries = (yield* memory.log("orders.DLT.replays", 0)).filter(({ key }) =>
          text(key)?.startsWith(`batch/${plan.id}/`)
        )
        const noted = entries.flatMap(({ value }) => JSON.parse(text(value) ?? "").copies)
        assert.deepStrictEqual(
          noted.map(({ letter, was, is }) => [letter, was, is]),
          ["a", "b", "c"].map((value, index) => [`0@${index}`, sha256(value), sha256(`${value}!`)])
        )
      })
  )

  scenario("OPS-06 a repaired record is handled, and one that fails again keeps the name of the transform", () =>
    Effect.gen(function* () {
      const { failing, calls, runs, letters } = yield* withOrders(["1", "2"], {
        transforms: { double: (letter) => Effect.succeed({ value: String(Number(valueOf(letter)) * 2) }) }
      })
      failing.set("4", () => true)
      calls.length = 0
      const plan = yield* inTime(runs.plan({ ...atOnce, transform: "double" }))
      yield* inTime(runs.apply(plan.id))
      for (let step = 0; step < 12; step++) yield* advance("10 seconds")
      assert.deepStrictEqual([...new Set(calls)].sort(), ["2", "4"])
      assert.deepStrictEqual(yield* ofRun("orders.DLT", plan.id), ["4"])
      const listed = yield* Effect.forEach([0, 1], (partition) => inTime(letters.list({ partition, count: 10 })))
      const back = listed.flat().find(({ letter }) => letter.runId === plan.id)
      assert.strictEqual(headersOf(back?.letter).get("x-eventbus-transformed-by"), "double")
      assert.deepInclude(yield* inTime(runs.receipt(plan.id)), { passed: 1, cameBack: 1, closed: true })
    })
  )

  scenario("OPS-06 another key sends the copy to the partition of that key", () =>
    Effect.gen(function* () {
      const { copies } = yield* withLetters((letter) => Effect.succeed({ value: valueOf(letter), key: "one" }))
      assert.deepStrictEqual(
        copies.map(({ key }) => text(key)),
        ["one", "one", "one"]
      )
      assert.strictEqual(new Set(copies.map(({ partition }) => partition)).size, 1)
    })
  )

  const misbehaving: ReadonlyArray<
    readonly [what: string, transform: LetterTransform<unknown, unknown>, reason: RegExp]
  > = [
    ["skips", () => Effect.fail(new Skip({ reason: "not mine" })), /^Transform 'repair' skips it: not mine$/],
    [
      "throws",
      () => {
        throw new TypeError("no")
      },
      /failed: TypeError: no/
    ],
    ["dies", () => Effect.die(new Error("no")), /failed: Error: no/],
    ["fails with another error", () => Effect.fail("no") as never, /failed: .*no/],
    ["returns no Effect", () => 7 as never, /an Effect is expected/],
    ["returns a Promise", () => Promise.reject(new Error("later")) as never, /an Effect is expected/],
    ["answers no object", () => Effect.succeed("text" as never), /answered string; an object with a value is expected/],
    ["answers no value", () => Effect.succeed({} as never), /an object with a value is expected/],
    [
      "answers a value that the serde refuses",
      () => Effect.succeed({ value: "\ud800" }),
      /cannot be encoded: .*surrogate/
    ],
    [
      "answers a key that the serde refuses",
      () => Effect.succeed({ value: "x", key: "\ud800" }),
      /key that cannot be encoded/
    ],
    ["never ends", () => Effect.never, /did not end within 30000 ms/],
    ["cannot be interrupted", () => Effect.uninterruptible(Effect.never), /did not end within 30000 ms/]
  ]
  for (const [what, transform, reason] of misbehaving) {
    scenario(
      `OPS-06 a transform that ${what} for one letter leaves it, counted with the reason; the others go on`,
      () =>
        Effect.gen(function* () {
          const { runs, receipt, copies } = yield* withLetters((letter) =>
            valueOf(letter) === "b" ? transform(letter) : Effect.succeed({ value: valueOf(letter) })
          )
          assert.deepInclude(receipt, { state: "done", dealtWith: 2, refused: 1 })
          assert.match([...receipt.refusals.keys()][0] ?? "", reason)
          assert.deepStrictEqual(copies.map(({ value }) => text(value)).sort(), ["a", "c"])
          assert.deepStrictEqual((yield* inTime(runs.plan(atOnce))).sample, [{ partition: 0, offset: 1n }])
        })
    )
  }

  scenario("OPS-06 a serde that throws, or that answers no Result, leaves the letters", () =>
    Effect.gen(function* () {
      const throwing = {
        ...Serde.string,
        encode: () => {
          throw new RangeError("broken")
        }
      }
      const first = yield* withLetters(() => Effect.succeed({ value: "x" }), ["a"], throwing)
      assert.match([...first.receipt.refusals.keys()][0] ?? "", /RangeError: broken/)
      assert.strictEqual(first.receipt.dealtWith, 0)
    })
  )

  scenario(
    "OPS-06 OPS-08 a process that lacks the transform of a run does not resume it: no letter goes out unrepaired",
    () =>
      Effect.gen(function* () {
        const { failing, runs } = yield* withOrders(["1", "2"], {
          transforms: { double: (letter) => Effect.succeed({ value: String(Number(valueOf(letter)) * 2) }) }
        })
        // The canary waits in the tier.
        for (const value of ["2", "4"]) failing.set(value, (tier) => tier === 0)
        const plan = yield* inTime(runs.plan({ ...atOnce, canary: 1, transform: "double" }))
        const fiber = yield* Effect.forkChild(runs.apply(plan.id))
        yield* advance("1 second")
        yield* inTime(runs.pause(plan.id, "lunch"), "250 millis")
        assert.deepInclude(yield* inTime(Fiber.join(fiber), "1 second"), { state: "paused", dealtWith: 1 })
        const refused = yield* inTime(Effect.flip((yield* runsOf("host-b")).resume(plan.id)))
        assert.strictEqual(refused._tag, "PlanStale")
        assert.match(refused.message, /transform 'double', a function in the code of the binding, is missing/)
        assert.lengthOf(yield* ofRun("orders", plan.id), 1)
        assert.deepInclude(yield* inTime(runs.resume(plan.id)), { state: "done", dealtWith: 2 })
        assert.deepStrictEqual(yield* ofRun("orders", plan.id), ["2", "4"])
      })
  )

  scenario("OPS-06 headers that the serde needs go with the copy, and replace those of the letter", () =>
    Effect.gen(function* () {
      const typed: Serde.Any = {
        ...Serde.string,
        encode: (value) => (typeof value === "string" ? Serde.string.encode(value) : Result.succeed(null)),
        headers: () => [{ key: "type", value: new TextEncoder().encode("v2") }]
      }
      const { copies } = yield* withLetters(() => Effect.succeed({ value: "x" }), ["a"], typed)
      assert.strictEqual(headersOf(copies[0]).get("type"), "v2")
    })
  )

  it("OPS-06 transforms that are no functions, or whose names fit into no header, are refused by path", () => {
    const issues = (transforms: unknown) => {
      const options = {
        topic: "orders",
        groupId: "billing",
        handler: () => Effect.void,
        transforms: transforms as never
      }
      return (Binding.problems([Binding.make("orders", options)]).get(0) ?? []).map(({ path }) => path)
    }
    assert.deepStrictEqual(issues({ repair: () => Effect.never }), [])
    assert.deepStrictEqual(issues([]), ["transforms"])
    assert.deepStrictEqual(issues("repair"), ["transforms"])
    assert.deepStrictEqual(issues({ repair: 7, other: null }), ["transforms.repair", "transforms.other"])
    assert.deepStrictEqual(issues({ " ": () => Effect.never }), ["transforms"])
    assert.deepStrictEqual(issues({ ["x".repeat(129)]: () => Effect.never }), ["transforms"])
  })
})
