import { assert, describe } from "@effect/vitest"
import { Binding, LetterTransform, Serde } from "@eventbus/core"
import { Effect, Result, Schema } from "effect"
import { headersOf, inTime, scenario, text } from "../../../../test/scenarios/bus.ts"
import { orders, store } from "./ordersLetters.ts"

const Order = Schema.Struct({ id: Schema.String, currency: Schema.String })

const valueOf = (bytes: Uint8Array | null) => text(bytes) ?? ""

const binding = Binding.make("orders", {
  ...{ ...orders, key: Serde.string, value: Serde.json(Order), handler: () => Effect.void },
  transforms: {
    "add-currency": ({ value }) =>
      valueOf(value) === "lost"
        ? Effect.fail(new LetterTransform.Skip({ reason: "nobody knows it" }))
        : Effect.succeed({ value: { ...JSON.parse(valueOf(value)), currency: "EUR" }, key: "k-2" }),
    hang: () => Effect.never
  }
})

const at = (offset: bigint) => ({ partition: 0, offset })

describe("dead letters before and after a transform", () => {
  scenario("OPS-06 each has the bytes and the decoded halves of letter and copy; nothing is published", () =>
    Effect.gen(function* () {
      const memory = yield* store([{ value: '{"id":"o-1"}' }, { value: "lost" }, { value: '{"id":7}' }])
      const letters = yield* Binding.deadLetters(binding)
      assert.deepStrictEqual(letters.transforms, ["add-currency", "hang"])
      const [first, second, third, ...others] = yield* inTime(
        letters.transformed([at(0n), at(1n), at(2n), at(3n), { partition: 7, offset: 0n }], "add-currency")
      )
      assert.lengthOf(others, 0)
      assert(first?._tag === "Copied")
      assert.strictEqual(valueOf(first.before.letter.value), '{"id":"o-1"}')
      assert(Result.isFailure(first.before.value!))
      assert.strictEqual(valueOf(first.after.letter.value), '{"id":"o-1","currency":"EUR"}')
      assert.deepStrictEqual(Result.getOrThrow(first.after.value), { id: "o-1", currency: "EUR" })
      assert.deepStrictEqual([Result.getOrThrow(first.before.key!), Result.getOrThrow(first.after.key)], ["k", "k-2"])
      assert.strictEqual(headersOf(first.after.letter).get("x-eventbus-transformed-by"), "add-currency")
      assert.isUndefined(headersOf(first.before.letter).get("x-eventbus-transformed-by"))
      assert.deepInclude(second, { _tag: "Stays", reason: "Transform 'add-currency' skips it: nobody knows it" })
      assert(third?._tag === "Stays")
      assert.match(third.reason, /made a value that cannot be encoded/)
      assert.lengthOf(yield* memory.log("orders", 0), 0)
      assert.lengthOf(yield* memory.log("orders.DLT", 0), 3)
    })
  )

  scenario("OPS-06 a function that does not end stays within its 30 seconds, five letters at a time", () =>
    Effect.gen(function* () {
      yield* store(Array.from({ length: 5 }, () => ({ value: "{}" })))
      const letters = yield* Binding.deadLetters(binding)
      const found = yield* inTime(letters.transformed([0n, 1n, 2n, 3n, 4n].map(at), "hang"), "3 seconds")
      assert.lengthOf(found, 5)
      for (const each of found) assert.match(each._tag === "Stays" ? each.reason : "", /did not end within 30000 ms/)
    })
  )

  scenario("OPS-06 a transform that the binding lacks, too many positions and wrong ones are refused in words", () =>
    Effect.gen(function* () {
      yield* store([{}])
      const { transformed } = yield* Binding.deadLetters(binding)
      const refused = (...args: Parameters<typeof transformed>) =>
        Effect.map(inTime(Effect.flip(transformed(...args))), ({ message }) => message)
      assert.include(yield* refused([at(0n)], "mend"), "transform is mend, expected add-currency, hang")
      assert.include(yield* refused([at(-1n)], "hang"), "positions[0].offset is -1")
      assert.include(
        yield* refused(
          Array.from({ length: 21 }, () => at(0n)),
          "hang"
        ),
        "positions.length is 21"
      )
      assert.include(yield* refused(null as never, "hang"), "positions is null, expected a list of positions")
    })
  )
})
