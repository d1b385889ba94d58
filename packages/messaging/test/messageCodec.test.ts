import { assert, describe, it } from "@effect/vitest"
import type { Serde } from "@eventbus/core"
import { Message, MessageCodec, Topic } from "@eventbus/messaging"
import { Effect, Result } from "effect"

/** A serde that breaks its contract. */
const broken = (encode: () => unknown, decode: () => unknown) =>
  Topic.make("odd", { name: "odd", encode, decode } as unknown as Serde.Serde<number>)

const thrower = () => {
  throw new RangeError("no")
}

const failureOf = <E>(result: Result.Result<unknown, E>): E =>
  Result.isFailure(result) ? result.failure : assert.fail("a failure is expected")

describe("MessageCodec", () => {
  it.effect("C05 a serde that throws, or answers what is no result or no bytes, is a failure that names it", () =>
    Effect.gen(function* () {
      const origin = { groupId: "g", attempt: 1, timestamp: 0, key: undefined, partition: undefined, offset: undefined }
      const answers = [thrower, () => undefined, () => 7, () => Promise.resolve(1)]
      for (const answer of answers) {
        const topic = broken(answer, answer)
        const encoded = MessageCodec.encode(yield* Message.of(1, topic))
        const decoded = MessageCodec.decode(topic, new Uint8Array(), { ...origin, headers: {}, fallbackId: "i" })
        for (const failure of [failureOf(encoded), failureOf(decoded)]) {
          assert.strictEqual(failure.serde, "odd")
          assert.match(failure.detail, answer === thrower ? /^RangeError no$/ : /a Result is expected$/)
        }
      }
      const noBytes = MessageCodec.encode(
        yield* Message.of(
          1,
          broken(() => Result.succeed("text"), thrower)
        )
      )
      assert.include(Result.isFailure(noBytes) ? noBytes.failure.detail : "", "a Uint8Array is expected")
    })
  )
})
