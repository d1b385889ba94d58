/** One retry topic of a real Kafka whose records wait by the number of their delivery, while its owner changes. */
import { assert } from "@effect/vitest"
import { Binding, type ConsumerRecord, RetryPolicy, Route, Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Data, Effect } from "effect"
import * as Bus from "./bus.ts"

class Down extends Data.TaggedError("Down") {}

const partitions = 2
const waitsMillis = [500, 1_000, 2_000, 4_000]

/** A record passes in the delivery that its value begins with, counted in the retry topic. */
const passesAt = (value: string): number => Number(value[0])

interface Call {
  readonly value: string
  readonly attempt: number
  readonly lateMillis: number
}

const publishedMillis = ({ headers }: ConsumerRecord.ConsumerRecord): number =>
  Number(Bus.text(headers.findLast(({ key }) => key === "x-eventbus-retry-timestamp")?.value))

const growing = (name: string, calls: Array<Call>) =>
  Binding.make(name, {
    ...{ topic: name, groupId: name, value: Serde.string, ackMode: "MANUAL" },
    retry: RetryPolicy.tiered({
      blocking: { maxAttempts: 1 },
      tiers: [{ delay: 500, multiplier: 2, maxDelay: 4_000, maxAttempts: 4, concurrency: 16 }]
    }),
    onError: { Down: Route.retry },
    handler: ({ record, value, tier, attempt }) => {
      if (tier === 0) return Effect.fail(new Down())
      const lateMillis = Date.now() - publishedMillis(record) - waitsMillis[attempt - 1]!
      calls.push({ value, attempt, lateMillis })
      return attempt < passesAt(value) ? Effect.fail(new Down()) : Effect.void
    }
  })

KafkaSuite.shared("a retry topic with a wait for each delivery", (bootstrap) => {
  Bus.story(
    bootstrap,
    "MSG-15 MSG-20 RTY-09 LIF-12 each record has each of its waits once, not early, also over a stop in the middle",
    () =>
      Effect.gen(function* () {
        const name = Bus.fresh("waits")
        yield* Bus.createTopic(name, partitions)
        const calls: Array<Call> = []
        const first = yield* Bus.start(growing(name, calls))
        // The last two have the longest waits in front of many shorter ones.
        const values = Array.from({ length: 400 }, (_, index) => `${[4, 1, 2, 3, 1][index % 5]}-${index}`)
        yield* Bus.publish(values.map((value) => ({ topic: name, key: Bus.bytes(value), value: Bus.bytes(value) })))
        const passed = () => calls.filter(({ value, attempt }) => attempt === passesAt(value)).length
        yield* Bus.until("those that pass first are handled", () => passed() >= 160)
        yield* first.close
        const handledBefore = new Set(calls.map(({ value, attempt }) => `${value} ${attempt}`))
        const begun = calls.length
        yield* Bus.start(growing(name, calls))
        yield* Bus.until("all are handled", () => passed() >= values.length)
        yield* Bus.lagIsZero(name, `${name}.retry-1`)

        const repeated = calls.slice(begun).filter(({ value, attempt }) => handledBefore.has(`${value} ${attempt}`))
        assert.deepStrictEqual(repeated, [])
        const byValue = Map.groupBy(calls, ({ value }) => value)
        for (const value of values) {
          const attempts = byValue.get(value)?.map(({ attempt }) => attempt)
          assert.deepStrictEqual(attempts, [1, 2, 3, 4].slice(0, passesAt(value)), value)
        }
        const late = calls.slice(0, begun).map(({ lateMillis }) => lateMillis)
        late.sort((a, b) => a - b)
        for (const { value, lateMillis } of calls) assert.isAtLeast(lateMillis, 0, `${value} is early`)
        assert.isBelow(late[Math.floor(late.length / 2)]!, 500, `lateness in ms: ${late}`)
      })
  )
})
