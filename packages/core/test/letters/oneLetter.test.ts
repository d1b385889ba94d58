import { assert, describe } from "@effect/vitest"
import { Binding, Serde } from "@eventbus/core"
import { Effect, Result, Schema } from "effect"
import { inTime, scenario, text } from "../../../../test/scenarios/bus.ts"
import { commands, orders, store } from "./ordersLetters.ts"

const json = { ...orders, value: Serde.json(Schema.Struct({ id: Schema.String })) }
const ofJson = Binding.deadLetters(Binding.make("orders", { ...json, handler: () => Effect.void }))

describe("one dead letter in full", () => {
  scenario("OPS-03 it has its state, its bytes, and key and value as today's serdes read them", () =>
    Effect.gen(function* () {
      yield* store([{ value: '{"id":"o-1"}' }, { value: '{"id":7}' }, { value: null, replays: 3 }])
      const letters = yield* ofJson
      const good = yield* inTime(letters.letter({ partition: 0, offset: 0n }))
      assert.deepStrictEqual(Result.getOrThrow(good!.value!), { id: "o-1" })
      assert.strictEqual(text(Result.getOrThrow(good!.key!) as Uint8Array), "k")
      assert.strictEqual(good!.state, "waiting")
      assert.strictEqual(text(good!.letter.value), '{"id":"o-1"}')
      const bad = yield* inTime(letters.letter({ partition: 0, offset: 1n }))
      assert(Result.isFailure(bad!.value!))
      assert.strictEqual(bad!.value.failure.path, '["id"]')
      const tombstone = yield* inTime(letters.letter({ partition: 0, offset: 2n }))
      assert(Result.isFailure(tombstone!.value!))
      assert.strictEqual(tombstone!.state, "exhausted")
    })
  )

  scenario("OPS-03 there is none where the topic has no record, and a position that cannot be is refused", () =>
    Effect.gen(function* () {
      const memory = yield* store([{}])
      yield* memory.appendControl("orders.DLT", 0, 1)
      const letters = yield* commands
      for (const position of [
        { partition: 0, offset: 1n },
        { partition: 0, offset: 99n },
        { partition: 7, offset: 0n }
      ]) {
        assert.isUndefined(yield* inTime(letters.letter(position)))
      }
      const refused = yield* Effect.flip(letters.letter({ partition: 0, offset: -1n }))
      assert.include(refused.message, "letter: position.offset is -1, expected a bigint of 0 or more")
    })
  )

  scenario("OPS-03 a serde that waits for its schema is waited for, ten seconds at most", () =>
    Effect.gen(function* () {
      yield* store([{ value: "paid" }])
      let fetched = false
      const patient: Serde.Serde<string> = {
        ...Serde.string,
        decode: (value, source) =>
          fetched
            ? Serde.string.decode(value, source)
            : Result.fail(new Serde.DecodeFailure({ serde: "schema", path: "", detail: "no schema" })),
        prepare: () => (fetched ? undefined : Effect.never)
      }
      const letters = yield* Binding.deadLetters(
        Binding.make("orders", { ...orders, value: patient, handler: () => Effect.void })
      )
      const missing = yield* inTime(letters.letter({ partition: 0, offset: 0n }), "1 second")
      assert(Result.isFailure(missing!.value!))
      fetched = true
      const found = yield* inTime(letters.letter({ partition: 0, offset: 0n }))
      assert.strictEqual(Result.getOrThrow(found!.value!), "paid")
    })
  )
})
