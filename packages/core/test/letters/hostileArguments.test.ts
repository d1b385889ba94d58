/** ruling 38: a program in JavaScript gives commands on dead letters what their types do not allow. */
import { assert, describe } from "@effect/vitest"
import { DeadLetterList, type Replay } from "@eventbus/core"
import { Effect, Exit } from "effect"
import { inTime, scenario } from "../../../../test/scenarios/bus.ts"
import { commands, store } from "./ordersLetters.ts"

type Call = (letters: Replay.DeadLetters) => Effect.Effect<unknown, { readonly _tag: string; readonly message: string }>

const fail = () => {
  throw new Error("trap")
}
const throwing = (name: string): never => Object.defineProperty({}, name, { get: fail, enumerable: true }) as never
const hostile = new Proxy({}, { get: fail, has: fail, ownKeys: fail, getPrototypeOf: fail }) as never
const hostileList = new Proxy([{}], { get: fail }) as never
const revoked = (): never => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy as never
}

const all = { all: true } as const
const states = "waiting, exhausted, failed, dealt-with"
const symbol = "Symbol(a property that throws)"

/** Calls, and what the error says. */
const refusals: ReadonlyArray<readonly [message: string, call: Call]> = [
  ["list: page is null, expected an object", ({ list }) => list(null as never)],
  ["list: page is an object, expected an object", ({ list }) => list(revoked())],
  ["list: from is 1, expected an offset as a bigint", ({ list }) => list({ partition: 0, count: 1, from: 1 as never })],
  ["list: from is 1, expected", ({ list }) => list({ partition: 0, count: 1, from: "1" as never })],
  [`list: partition is ${symbol}, expected a whole number`, ({ list }) => list(throwing("partition"))],
  ["list: partition is 0, expected a whole number", ({ list }) => list({ partition: "0" as never, count: 1 })],
  ["list: count is {}, expected a whole number", ({ list }) => list({ partition: 0, count: Object.create(null) })],
  ["groups: options is null, expected an object", ({ groups }) => groups(null as never)],
  [`groups: states is ${symbol}, expected one or more of ${states}`, ({ groups }) => groups(hostile)],
  ["groups: states is an object, expected one or more", ({ groups }) => groups({ states: hostileList })],
  ["groups: states is waiting, expected one or more", ({ groups }) => groups({ states: "waiting" as never })],
  [`groups: selection.keys is ${symbol}, expected a list`, ({ groups }) => groups({ selection: throwing("keys") })],
  ["letters: query is 1, expected an object", ({ letters }) => letters(1 as never)],
  [`letters: limit is ${symbol}, expected`, ({ letters }) => letters(throwing("limit"))],
  ["letters: states is an object, expected one or more", ({ letters }) => letters({ states: revoked() })],
  ["letters: fingerprint is {}, expected", ({ letters }) => letters({ fingerprint: Object.create(null) })],
  [
    "letters: searchesPayload is yes, expected true or false",
    ({ letters }) => letters({ searchesPayload: "yes" as never })
  ],
  ["letter: position is null, expected a partition and an offset", ({ letter }) => letter(null as never)],
  [`letter: position.partition is ${symbol}, expected`, ({ letter }) => letter(hostile)],
  ["letter: position.offset is 1, expected a bigint", ({ letter }) => letter({ partition: 0, offset: 1 as never })],
  ["rehearse: selection is null, expected", ({ rehearse }) => rehearse(null as never)],
  ["rehearse: selection.fingerprints is", ({ rehearse }) => rehearse(hostile)],
  ["rehearse: options is null, expected an object", ({ rehearse }) => rehearse(all, null as never)],
  [`rehearse: listed is ${symbol}, expected`, ({ rehearse }) => rehearse(all, throwing("listed"))],
  [`rehearse: transform is ${symbol}, expected`, ({ rehearse }) => rehearse(all, throwing("transform"))],
  ["rehearse: limit is [1], expected a whole number", ({ rehearse }) => rehearse(all, { limit: [1] as never })],
  ["replay: options is null, expected an object", ({ replay }) => replay(1, null as never)],
  [`replay: ignoreMaxReplays is ${symbol}`, ({ replay }) => replay(1, throwing("ignoreMaxReplays"))],
  [
    "replay: ignoreMaxReplays is true, expected true or false",
    ({ replay }) => replay(1, { ignoreMaxReplays: "true" as never })
  ],
  ["replay: count is Symbol(1), expected", ({ replay }) => replay(Symbol("1") as never)],
  ["replayWindow: options is null, expected", ({ replayWindow }) => replayWindow(0, 1, null as never)],
  ["replayToTier: tier is 1, expected the number of a retry tier", ({ replayToTier }) => replayToTier("1" as never, 1)],
  ["replayRecords: records is undefined, expected a list", ({ replayRecords }) => replayRecords(undefined as never)],
  ["replayRecords: records is an object, expected a list", ({ replayRecords }) => replayRecords(hostileList)],
  [
    "replayRecords: records[0].offset is 1, expected a bigint",
    ({ replayRecords }) => replayRecords([{ partition: 0, offset: 1 as never }])
  ],
  ["discard: records[0] is null, expected a partition", ({ discard }) => discard([null as never], "old")],
  ["purge: options is null, expected an object", ({ purge }) => purge(1e15, null as never)],
  [
    "purge: deleteUnreadable is no, expected true or false",
    ({ purge }) => purge(1e15, { deleteUnreadable: "no" as never })
  ]
]

describe("what commands on dead letters are given", () => {
  scenario("DLT-23 ruling 38 hostile options and wrong types fail with argument, value and what is allowed", () =>
    Effect.gen(function* () {
      yield* store([{}, {}])
      const letters = yield* commands
      for (const [message, call] of refusals) {
        const exit = yield* Effect.exit(inTime(Effect.flip(Effect.suspend(() => call(letters)))))
        assert(Exit.isSuccess(exit), `${message}, but it is no error: ${JSON.stringify(exit)}`)
        assert.deepStrictEqual(exit.value._tag, "InvalidArgument", message)
        assert.include(exit.value.message, message)
      }
      assert.strictEqual((yield* inTime(letters.stats)).stored, 2)
    })
  )

  scenario("DLT-23 what is legal is read once, from getters and from a Proxy, too", () =>
    Effect.gen(function* () {
      yield* store([{}, {}, {}])
      const { list, letters } = yield* commands
      const seen: Array<string> = []
      const page = new Proxy(
        { partition: 0, from: 1n, count: 5 },
        {
          get: (target, name) => {
            seen.push(String(name))
            return Reflect.get(target, name)
          }
        }
      )
      assert.lengthOf(yield* inTime(list(page)), 2)
      assert.sameMembers(seen, ["partition", "from", "count"])
      const query: DeadLetterList.Query = { states: DeadLetterList.states, searchesPayload: true, limit: 2 }
      assert.lengthOf((yield* inTime(letters(query))).letters, 2)
    })
  )
})
