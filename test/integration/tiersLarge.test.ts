/** Records as large as their topic takes them, on their way through tiers to the dead letter topic. */
import { assert } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Data, Effect } from "effect"
import { incompressible } from "../scenarios/bus.ts"
import * as Bus from "./bus.ts"

class Down extends Data.TaggedError("Down")<{ readonly message: string }> {}

/** Kafka's default. */
const maxMessageBytes = 1_048_588
/** The bytes of a batch of one record without key and headers, beside so large a value. */
const overheadBytes = 61 + 11

const value = (size: number, fill: number) => new Uint8Array(size).fill(fill)

/** A binding with two tiers whose handler fails always, except for values that begin with 1, which pass in tier 1. */
const failing = (name: string, message = "no ".repeat(1_000)) => {
  const passed: Array<number> = []
  const made = Binding.make(name, {
    topic: name,
    groupId: name,
    value: Serde.bytes,
    retry: RetryPolicy.tiered({
      blocking: { maxAttempts: 1 },
      tiers: [200, 400].map((delay) => ({ delay, maxAttempts: 1, concurrency: 16 }))
    }),
    handler: ({ value, tier }) =>
      value?.[0] === 1 && tier === 1
        ? Effect.sync(() => passed.push(value.length))
        : Effect.fail(new Down({ message })),
    onError: { Down: Route.retry }
  })
  return { made, passed }
}

KafkaSuite.shared("large records", (bootstrap) => {
  Bus.story(
    bootstrap,
    "DLT-10 ruling 22 values as large as the topic takes them pass the tiers and reach the dead letter topic whole, with all headers",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("large")
        yield* Bus.createTopic(name, 2)
        const { made, passed } = failing(name)
        const app = yield* Bus.start(made)
        const largest = maxMessageBytes - overheadBytes
        const sizes = [largest, largest - 1, largest - 500, largest - 5_000, 900_000, 524_288, 10]
        const records = sizes.flatMap((size, index) =>
          [1, 2].map((fill) => ({ topic: name, partition: index % 2, key: null, value: value(size, fill) }))
        )
        const oneMore = { topic: name, key: null, value: value(largest + 1, 2) }
        assert.strictEqual((yield* Effect.flip(Bus.publish([oneMore])))._tag, "RecordTooLarge")
        yield* Bus.publish(records)
        for (const topic of [name, `${name}.retry-1`, `${name}.retry-2`]) yield* Bus.lagIsZero(name, topic)
        assert.sameMembers(passed, sizes)
        const letters = yield* Bus.readAll(`${name}.DLT`)
        assert.sameMembers(
          letters.map((letter) => letter.value?.length),
          sizes
        )
        for (const letter of letters) {
          assert.isTrue(letter.value?.every((byte) => byte === 2))
          const keys = letter.headers.map(({ key }) => key)
          assert.includeMembers(keys, ["x-eventbus-last-exception-message", "x-eventbus-last-exception-stacktrace"])
        }
        assert.deepStrictEqual(app.of("PublishFailed"), [])
      })
  )

  Bus.story(
    bootstrap,
    "DLT-10 ruling 22 topics that take no more than the source: what is told of the failure goes first, the value stays whole",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("narrow")
        const letters = `${name}.DLT`
        for (const topic of [name, `${name}.retry-1`, `${name}.retry-2`, letters]) yield* Bus.createTopic(topic)
        const { made } = failing(name, Buffer.from(incompressible(1_000)).toString("base64"))
        const app = yield* Bus.start(made)
        // Room for where it comes from, not for the exception.
        const sizes = [maxMessageBytes - 1_500, 1_000]
        // A value that can be compressed would go with gzip, and keep all headers.
        const values = sizes.map((size) => incompressible(size))
        yield* Bus.publish(values.map((value) => ({ topic: name, key: null, value })))
        for (const topic of [name, `${name}.retry-1`, `${name}.retry-2`]) yield* Bus.lagIsZero(name, topic)
        const inTopic = yield* Bus.readAll(letters)
        assert.sameMembers(
          inTopic.map((letter) => letter.value?.length),
          sizes
        )
        for (const letter of inTopic) {
          const keys = letter.headers.map(({ key }) => key)
          assert.includeMembers(keys, [
            "x-eventbus-original-offset",
            "x-eventbus-dlt-reason",
            "x-eventbus-total-attempts"
          ])
          assert.strictEqual(keys.includes("x-eventbus-last-exception-message"), letter.value?.length === 1_000)
        }
        assert.strictEqual(app.log.filter(({ message }) => message.includes("while the record waits")).length, 1)
      })
  )
})
