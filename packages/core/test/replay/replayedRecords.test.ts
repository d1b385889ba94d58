import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect, Result } from "effect"
import {
  type App,
  advance,
  bytes,
  headersOf,
  inTime,
  now,
  scenario,
  start,
  until
} from "../../../../test/scenarios/bus.ts"
import * as Binding from "../../src/Binding.ts"
import * as Replay from "../../src/internal/replay/replay.ts"
import * as RetryPolicy from "../../src/RetryPolicy.ts"
import * as Route from "../../src/Route.ts"
import * as Serde from "../../src/Serde.ts"
import { ordersReplay } from "./ordersReplay.ts"

class Down extends Data.TaggedError("Down") {}
class Declined extends Data.TaggedError("Declined") {}

interface Call {
  readonly atMillis: number
  readonly value: string | null
  readonly tier: number
  readonly attempt: number
}

const retry = RetryPolicy.tiered({
  blocking: { maxAttempts: 1 },
  tiers: [
    { delay: "10 seconds", maxAttempts: 2 },
    { delay: "1 minute", maxAttempts: 2 }
  ]
})

/** A binding whose handler does what `outcome` says of a value, and the calls of it. */
const consumer = (
  outcome: (value: string | null) => Effect.Effect<void, Down | Declined>,
  value: Serde.Serde<string | null> = Serde.nullable(Serde.string)
) => {
  const calls: Array<Call> = []
  const binding = Binding.make("orders", {
    ...{ topic: "orders", groupId: "billing", value, retry },
    onError: { Down: Route.retry, Declined: Route.deadLetter("declined") },
    handler: ({ value, tier, attempt }) =>
      Effect.flatMap(now, (atMillis) => {
        calls.push({ atMillis, value, tier, attempt })
        return outcome(value)
      })
  })
  return { binding, calls }
}

const replays = Effect.map(MemoryBroker.MemoryBroker, ({ broker }) =>
  Replay.make({
    ...{ broker, ...ordersReplay },
    tiers: consumer(() => Effect.void).binding.definition.tiers
  })
)

const deadLettered = (app: App) => app.of("Settled").filter(({ settlement }) => settlement === "DeadLettered").length

/** Text that a broken decoder refuses, as long as it is broken. */
const decoder = () => {
  const state = { broken: true }
  const serde: Serde.Serde<string | null> = {
    ...Serde.nullable(Serde.string),
    decode: (given) =>
      state.broken && given !== null && given[0] === 65
        ? Result.fail(new Serde.DecodeFailure({ serde: "test", path: "", detail: "A" }))
        : Serde.nullable(Serde.string).decode(given)
  }
  return { state, serde }
}

const letters = Effect.flatMap(MemoryBroker.MemoryBroker, (memory) => memory.log("orders.DLT", 0))

describe("replayed records", () => {
  scenario(
    "C06 DLT-27 undecodable, exhausted and refused records are handled once each, whatever their old headers say",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const trace = [{ key: "traceparent", value: bytes("00-t") }]
        yield* memory.append(
          "orders",
          0,
          ["A", "B", "C"].map((value) => ({ key: bytes(value), value: bytes(value), timestamp: 42, headers: trace }))
        )
        const { state, serde } = decoder()
        let mended = false
        const { binding, calls } = consumer(
          (value) => (mended ? Effect.void : Effect.fail(value === "B" ? new Down() : new Declined())),
          serde
        )
        const app = yield* start(binding)
        yield* until(() => deadLettered(app) === 3, "10 seconds")
        mended = true
        state.broken = false
        const before = calls.length
        assert.strictEqual((yield* inTime((yield* replays).replay(3), "1 second")).replayed, 3)
        yield* until(() => calls.length === before + 3, "1 second")
        yield* advance("1 hour")
        const after = calls.slice(before)
        assert.deepStrictEqual(
          after.map(({ value, tier, attempt }) => [value, tier, attempt]).sort(),
          ["A", "B", "C"].map((value) => [value, 0, 1])
        )
        for (const copy of (yield* memory.log("orders", 0)).slice(3)) {
          assert.strictEqual(headersOf(copy).get("traceparent"), "00-t")
        }
        assert.lengthOf(yield* letters, 3)
      })
  )

  scenario(
    "C06 C26 DLT-27 a record that fails again has all attempts and delays again, and keeps its first failure, origin and time",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* advance("30 days")
        yield* memory.append("orders", 0, [{ key: bytes("k"), value: bytes("B"), timestamp: 42 }])
        const { binding, calls } = consumer(() => Effect.fail(new Down()))
        const app = yield* start(binding)
        const engine = yield* replays
        const shapes: Array<ReadonlyArray<ReadonlyArray<number>>> = []
        for (const round of [1, 2, 3, 4]) {
          const first = round === 1 ? 0 : calls.length
          if (round > 1) assert.strictEqual((yield* inTime(engine.replay(9), "1 second")).replayed, 1)
          yield* until(() => deadLettered(app) === round, "10 seconds")
          const start = calls[first]!.atMillis
          shapes.push(calls.slice(first).map(({ tier, attempt, atMillis }) => [tier, attempt, atMillis - start]))
        }
        const once = [
          [0, 1, 0],
          [1, 1, 10_000],
          [1, 2, 20_000],
          [2, 1, 80_000],
          [2, 2, 140_000]
        ]
        assert.deepStrictEqual(shapes, [once, once, once, once])
        // It was replayed three times: it stays.
        assert.deepStrictEqual(yield* inTime(engine.replay(9), "1 second"), {
          replayed: 0,
          passedOver: 1,
          refused: 0,
          foreign: new Map(),
          unreadable: 0
        })
        const [original, ...again] = yield* letters
        assert.deepStrictEqual(
          again.map((letter) => headersOf(letter).get("x-eventbus-replay-count")),
          ["1", "2", "3"]
        )
        for (const letter of again) {
          const headers = headersOf(letter)
          for (const name of ["topic", "partition", "offset", "timestamp"].map(
            (part) => `x-eventbus-original-${part}`
          )) {
            assert.strictEqual(headers.get(name), headersOf(original).get(name), name)
          }
          const firstFailure = "x-eventbus-first-failure-timestamp"
          assert.strictEqual(headers.get(firstFailure), headersOf(original).get(firstFailure))
          assert.strictEqual(headers.get("x-eventbus-total-attempts"), "5")
          assert.strictEqual(headers.get("x-eventbus-original-timestamp"), "42")
          assert.isAbove(letter.timestamp, 2_592_000_000)
        }
      })
  )

  scenario(
    "C06 DLT-25 a record that is replayed to a tier waits the tier's delay from now on, and has all its deliveries there",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.append("orders", 0, [{ key: bytes("k"), value: bytes("B") }])
        const { binding, calls } = consumer(() => Effect.fail(new Down()))
        const app = yield* start(binding)
        yield* until(() => deadLettered(app) === 1, "10 seconds")
        yield* advance("1 day")
        const first = calls.length
        assert.strictEqual((yield* inTime((yield* replays).replayToTier(2, 1), "1 second")).replayed, 1)
        yield* until(() => deadLettered(app) === 2, "10 seconds")
        const again = calls.slice(first)
        assert.deepStrictEqual(
          again.map(({ tier, attempt }) => [tier, attempt]),
          [
            [2, 1],
            [2, 2]
          ]
        )
        assert.isAtLeast(again[1]!.atMillis - again[0]!.atMillis, 60_000)
        const letter = headersOf((yield* letters)[1])
        assert.deepStrictEqual(
          ["replay-count", "total-attempts", "original-offset"].map((name) => letter.get(`x-eventbus-${name}`)),
          ["1", "2", "0"]
        )
      })
  )

  scenario(
    "C08 C13 DLT-03 null and empty keys, values and headers pass tier, dead letter topic and replay unchanged",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const headers = [
          { key: "a", value: null },
          { key: "traceparent", value: null },
          { key: "", value: bytes("empty-name") },
          { key: "b", value: new Uint8Array() },
          { key: "constructor", value: bytes("c") }
        ]
        const halves = [
          { key: bytes("k1"), value: null },
          { key: bytes("k1"), value: new Uint8Array() },
          { key: null, value: null }
        ]
        const forged = { key: "x-eventbus-original-topic", value: null }
        yield* memory.append(
          "orders",
          0,
          halves.map((half) => ({ ...half, headers: [...headers, forged] }))
        )
        const { binding } = consumer(() => Effect.fail(new Down()))
        const app = yield* start(binding)
        yield* until(() => deadLettered(app) === 3, "10 seconds")
        yield* inTime((yield* replays).replay(3), "1 second")
        const copies = (yield* memory.log("orders", 0)).slice(3)
        const order = ({ key, value }: { readonly key: Uint8Array | null; readonly value: Uint8Array | null }) =>
          `${key?.length}/${value?.length}`
        assert.deepStrictEqual(copies.map(({ key, value }) => order({ key, value })).sort(), halves.map(order).sort())
        for (const copy of copies) {
          assert.deepStrictEqual(copy.headers.slice(0, headers.length), headers)
          assert.strictEqual(headersOf(copy).get("x-eventbus-original-topic"), "orders")
        }
      })
  )
})
