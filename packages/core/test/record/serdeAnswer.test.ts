/** Ruling 86: a serde that answers something else than a Result is told so by its name, in the same words where records are decoded and where repaired letters are encoded. */
import { assert, describe, it } from "@effect/vitest"
import { DeadLetterRecord, type Serde } from "@eventbus/core"
import { Effect, Result } from "effect"
import * as Decoding from "../../src/internal/record/decoding.ts"
import * as Transforms from "../../src/internal/runs/transforms.ts"

const answers: ReadonlyArray<readonly [what: string, answer: () => unknown]> = [
  ["undefined", () => undefined],
  ["null", () => null],
  ["number", () => 1],
  ["a plain object", () => ({ _tag: "Success", success: new Uint8Array() })],
  ["a Promise", () => Promise.resolve(Result.succeed(1))],
  ["a Promise", () => Promise.reject(new Error("later"))]
]

const serdeOf = (answer: () => unknown) => ({ name: "broken", decode: answer, encode: answer }) as unknown as Serde.Any

const letter = DeadLetterRecord.read({
  ...{ topic: "orders.DLT", partition: 0, offset: 0n, timestamp: 0, key: null, value: null, headers: [] }
})

describe("the answer of a user's serde", () => {
  it("ruling 86: a value that decode answers and that is no Result makes the record undecodable", () => {
    for (const [kind, answer] of answers) {
      const read = Decoding.read(serdeOf(answer), new Uint8Array(), { headers: [] }, "value")
      const detail = Result.isResult(read) && Result.isFailure(read) ? read.failure.detail : "no failure"
      assert.strictEqual(detail, `TypeError decode returned ${kind}; a Result is expected`)
    }
  })

  it.effect("ruling 86: a value that encode answers and that is no Result leaves the letter where it is", () =>
    Effect.gen(function* () {
      for (const [kind, answer] of answers) {
        const serdes = { key: serdeOf(answer), value: serdeOf(answer) }
        const prepare = Transforms.prepare({ name: "cap", transform: () => Effect.succeed({ value: 1 }), serdes })
        assert.strictEqual(
          yield* prepare(letter),
          `Transform 'cap' made a value that cannot be encoded: failed: TypeError: encode returned ${kind}; a Result is expected`
        )
      }
    })
  )
})
