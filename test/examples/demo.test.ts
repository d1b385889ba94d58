import { assert, describe, it } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import { start } from "./program.ts"

const timeout = 150_000
const verdict = /✔ every record accounted for: (\d+) = (\d+) paid \+ (\d+) dead-lettered(?: \+ (\d+) waiting)?\n/

const accountOf = (output: string): { readonly produced: number; readonly waiting: number } => {
  const [, produced, paid, deadLettered, waiting = "0"] = verdict.exec(output) ?? assert.fail(output)
  assert.strictEqual(Number(produced), Number(paid) + Number(deadLettered) + Number(waiting))
  return { produced: Number(produced), waiting: Number(waiting) }
}

describe.concurrent("the demo", () => {
  it.live(
    "accounts for every record, and leaves none waiting",
    () =>
      Effect.gen(function* () {
        const demo = yield* start("demo.ts")
        assert.strictEqual(yield* demo.exit, 0)
        assert.deepStrictEqual(accountOf(demo.output()), { produced: 462, waiting: 0 })
      }),
    timeout
  )

  it.live(
    "LIF-15: stops gracefully with Ctrl-C in the middle of slow orders, and still gives the account",
    () =>
      Effect.gen(function* () {
        const demo = yield* start("demo.ts")
        yield* demo.writes("app-2 gets SIGTERM")
        yield* demo.signal("SIGINT")
        assert.strictEqual(yield* demo.exit, 130)
        assert.include(demo.output(), "interrupted: the instances finish what they have")
        assert.isBelow(accountOf(demo.output()).produced, 462)
      }),
    timeout
  )

  it.live(
    "says what is wrong when there is no broker",
    () =>
      Effect.gen(function* () {
        const demo = yield* start("demo.ts", { KAFKA_BROKERS: "127.0.0.1:1" })
        assert.strictEqual(yield* demo.exit, 1)
        assert.match(demo.output(), /^ {2}✘ No broker of \[127\.0\.0\.1:1\] can be reached.*\n$/)
      }),
    timeout
  )
})

KafkaSuite.shared("the demo on a real Kafka", (bootstrap) => {
  it.live(
    "accounts for every record",
    () =>
      Effect.gen(function* () {
        const demo = yield* start("demo.ts", { KAFKA_BROKERS: bootstrap.join(",") })
        assert.strictEqual(yield* demo.exit, 0, demo.output())
        assert.deepStrictEqual(accountOf(demo.output()), { produced: 462, waiting: 0 })
      }),
    timeout
  )
})
