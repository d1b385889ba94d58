import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetter } from "@eventbus/core"
import { Effect } from "effect"
import { advance, inTime, scenario } from "../../../../test/scenarios/bus.ts"
import { commands, letter, orders, type Sketch, store } from "./ordersLetters.ts"

const hour = 3_600_000

const down: Sketch = {
  exceptionClass: "GatewayDown",
  message: "503 from 10.0.0.7 for order 4711",
  stack: "GatewayDown: 503 from 10.0.0.7 for order 4711\n    at charge (/app/src/payments/charge.ts:10:3)"
}

const groupsOf = (options?: Parameters<Effect.Success<typeof commands>["groups"]>[0]) =>
  Effect.flatMap(commands, (letters) => inTime(letters.groups(options)))

describe("groups of dead letters", () => {
  scenario(
    "OPS-03 dead letters of one reason form a group, whichever release wrote them, with figures and samples",
    () =>
      Effect.gen(function* () {
        yield* store(
          [
            { ...down, millis: 10 },
            { ...down, millis: 30, replays: 1 },
            { exceptionClass: "Invalid", message: "no", fingerprint: "v1-invalid", millis: 20 }
          ],
          [
            {
              ...down,
              millis: 40,
              message: "503 from 10.0.0.8 for order 1",
              stack: down.stack!.replace(":10:3", ":99:1")
            },
            { ...down, millis: 5, replays: 3 }
          ]
        )
        const { groups, other, foreign, unreadable } = yield* groupsOf()
        assert.deepStrictEqual([groups.length, other, foreign, unreadable], [2, 0, 0, 0])
        const [first, second] = groups
        assert.deepStrictEqual(
          { ...first, fingerprint: "", trend: [] },
          {
            fingerprint: "",
            exceptionClass: "GatewayDown",
            frame: "charge payments/charge.ts",
            message: "# from #.#.#.# for order #",
            originFrom: "eventbus",
            originalTopic: "orders",
            count: 4,
            states: { waiting: 3, exhausted: 1, failed: 0, "dealt-with": 0 },
            discarded: 0,
            cameBack: 2,
            firstMillis: 5,
            lastMillis: 40,
            trend: [],
            samples: [
              { partition: 1, offset: 0n },
              { partition: 0, offset: 1n },
              { partition: 0, offset: 0n },
              { partition: 1, offset: 1n }
            ]
          }
        )
        assert.match(first!.fingerprint, /^v1-/)
        assert.strictEqual(second!.fingerprint, "v1-invalid")
        assert.strictEqual(second!.count, 1)
      })
  )

  scenario(
    "OPS-03 a group counts what was replayed and what was given up, and the largest open group comes first",
    () =>
      Effect.gen(function* () {
        const memory = yield* store([
          { fingerprint: "v1-a", millis: 1 },
          { fingerprint: "v1-a", millis: 2 },
          { fingerprint: "v1-a", millis: 3 },
          { fingerprint: "v1-b", millis: 4 },
          { fingerprint: "v1-b", millis: 5 }
        ])
        const letters = yield* commands
        yield* inTime(letters.replayRecords([{ partition: 0, offset: 0n }]))
        yield* inTime(letters.discard([{ partition: 0, offset: 2n }], "nobody misses it"))
        yield* memory.append("orders.DLT", 0, [letter({ fingerprint: "v1-c", owner: "shipping" })])
        const { groups, foreign } = yield* groupsOf()
        assert.strictEqual(foreign, 1)
        assert.deepStrictEqual(
          groups.map(({ fingerprint, count, states, discarded }) => [
            fingerprint,
            count,
            states["dealt-with"],
            discarded
          ]),
          [
            ["v1-b", 2, 0, 0],
            ["v1-a", 1, 2, 1]
          ]
        )
        const ofState = yield* groupsOf({ states: ["waiting"] })
        assert.deepStrictEqual(
          ofState.groups.map(({ fingerprint, count, states }) => [fingerprint, count, states["dealt-with"]]),
          [
            ["v1-b", 2, 0],
            ["v1-a", 1, 0]
          ]
        )
        const selected = yield* groupsOf({ selection: { fromMillis: 4 } })
        assert.deepStrictEqual(
          selected.groups.map(({ fingerprint, count }) => [fingerprint, count]),
          [["v1-b", 2]]
        )
      })
  )

  scenario("OPS-03 a trend has the last 24 hours, and times outside of them count but in the total", () =>
    Effect.gen(function* () {
      yield* advance(30 * hour)
      const times = [0, 5 * hour, 6 * hour + 1, 29 * hour, 30 * hour - 1, 30 * hour, 31 * hour]
      yield* store(times.map((millis) => ({ fingerprint: "v1-a", millis })))
      const letters = yield* commands
      const { groups, readMillis } = yield* letters.groups()
      assert.strictEqual(readMillis, 30 * hour)
      const trend = groups[0]!.trend
      assert.strictEqual(groups[0]!.count, 7)
      assert.strictEqual(trend.length, 24)
      assert.deepStrictEqual([trend[0], trend[22], trend[23]], [1, 1, 3])
      assert.strictEqual(
        trend.reduce((sum, each) => sum + each, 0),
        5
      )
    })
  )

  scenario("OPS-03 a user's own function groups dead letters that have no fingerprint yet", () =>
    Effect.gen(function* () {
      yield* store([{ message: "visa 1" }, { message: "visa 2" }, { message: "giro 1" }])
      const deadLetter = DeadLetter.withSettings(DeadLetter.storeOnly, {
        fingerprint: ({ message }) => message.split(" ")[0]
      })
      const letters = yield* Binding.deadLetters(
        Binding.make("orders", { ...orders, deadLetter, handler: () => Effect.void })
      )
      const { groups } = yield* inTime(letters.groups())
      assert.deepStrictEqual(
        groups.map(({ fingerprint, count }) => [fingerprint, count]),
        [
          ["own-visa", 2],
          ["own-giro", 1]
        ]
      )
    })
  )

  scenario("OPS-03 there are at most 1000 groups, and the dead letters of all further ones are counted together", () =>
    Effect.gen(function* () {
      yield* store(Array.from({ length: 1_100 }, (_, index) => ({ fingerprint: `v1-${index}` })))
      const { groups, other } = yield* groupsOf()
      assert.deepStrictEqual([groups.length, other], [1_000, 100])
    })
  )

  scenario("OPS-03 a missing topic has no groups, and an empty selection is refused", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* groupsOf()).groups, [])
      const refused = yield* Effect.flip(groupsOf({ selection: {} }))
      assert.strictEqual(refused._tag, "InvalidArgument")
      const states = yield* Effect.flip(groupsOf({ states: [] }))
      assert.strictEqual(
        states.message,
        "groups: states is [], expected one or more of waiting, exhausted, failed, dealt-with. Nothing was done."
      )
    })
  )
})
