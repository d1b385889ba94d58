/** RCH-11: a deploy from one topic to two in the same group, on a real Kafka, with retries and dead letters on the way. */
import { assert } from "@effect/vitest"
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Data, Effect } from "effect"
import * as Bus from "./bus.ts"

class Down extends Data.TaggedError("Down") {}

/** Every tenth record fails until it is dead-lettered. */
const isPoison = (value: string) => value.endsWith("7")

const version = (groupId: string, topic: string | ReadonlyArray<string>, handled: Array<string>) =>
  Binding.make(groupId, {
    ...{ topic, groupId, value: Serde.string },
    ...{ sessionTimeout: "6 seconds", heartbeatInterval: "500 millis" },
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "300 millis", maxAttempts: 1 }] }),
    onError: { Down: Route.retry },
    handler: ({ record, value, idempotencyKey }) =>
      Effect.suspend(() => {
        if (isPoison(value)) return Effect.fail(new Down())
        handled.push(`${/^[^:]*:(.*)-\d+-\d+@/.exec(idempotencyKey)?.[1] ?? record.topic} ${value}`)
        return Effect.void
      })
  })

KafkaSuite.shared("a binding of several topics", (bootstrap) => {
  Bus.story(
    bootstrap,
    "RCH-11 a deploy from one topic to two: old and new process share the group, and no record is lost or left in a retry topic",
    () =>
      Effect.gen(function* () {
        const group = Bus.fresh("several")
        const [orders, payments] = [`${group}.orders`, `${group}.payments`]
        const partitions = 4
        for (const topic of [orders, payments]) yield* Bus.createTopic(topic, partitions)
        const handled: Array<string> = []
        const old = yield* Bus.start(version(group, orders, handled))
        yield* Bus.publish(Bus.numbered(orders, partitions, 100))
        yield* Bus.publish(Bus.numbered(payments, partitions, 100))
        yield* Bus.until("the old process has read its topic", () => handled.length >= 90)
        const next = yield* Bus.start(version(group, [orders, payments], handled))
        yield* Bus.until(
          "the new process has the new topic",
          () => next.of("PartitionAssigned").filter(({ topic }) => topic === payments).length >= partitions
        )
        yield* Bus.publish(Bus.numbered(orders, partitions, 100, 100))
        yield* Bus.publish(Bus.numbered(payments, partitions, 100, 100))
        assert.deepStrictEqual(
          old.of("PartitionAssigned").filter(({ topic }) => topic.startsWith(payments)),
          []
        )
        yield* old.close
        yield* Bus.publish(Bus.numbered(orders, partitions, 100, 200))
        yield* Bus.publish(Bus.numbered(payments, partitions, 100, 200))
        for (const topic of [orders, payments]) {
          yield* Bus.lagIsZero(group, topic)
          yield* Bus.lagIsZero(group, `${topic}.retry-1`)
          const letters = yield* Bus.readAll(`${topic}.DLT`)
          assert.deepStrictEqual(
            letters.map(({ value }) => Number(Bus.text(value))).sort((a, b) => a - b),
            Array.from({ length: 30 }, (_, n) => 10 * n + 7)
          )
        }
        const wanted = [orders, payments].flatMap((topic) =>
          Array.from({ length: 300 }, (_, n) => `${topic} ${n}`).filter((each) => !isPoison(each))
        )
        assert.deepStrictEqual(Array.from(new Set(handled)).sort(), wanted.sort())
        const letters = yield* (yield* next.connector.deadLetters(group)).stats
        assert.strictEqual(letters.count, 60)
      })
  )
})
