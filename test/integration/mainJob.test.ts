/** The main job on a real Kafka: consume, retry, dead-letter, commit; and a restart that repeats nothing. */
import { assert } from "@effect/vitest"
import { Binding, Broker, type ConsumerRecord, RetryPolicy, Route, Serde } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect, Schema } from "effect"
import * as Bus from "./bus.ts"

const Order = Schema.Struct({ id: Schema.String, mood: Schema.Literals(["fine", "twice", "never"]) })
const order = (id: string, mood: typeof Order.Type.mood) => Bus.bytes(JSON.stringify({ id, mood }))

class Refused extends Schema.TaggedError<Refused>()("Refused", { id: Schema.String }) {}

const notUtf8 = Uint8Array.from([0xff, 0x00, 0xfe, 0x80])
const partitions = 3

/** One record in seven is tried three times, one is never handled, one has an unreadable value, one an unreadable key, one is a tombstone. */
const records = (topic: string): ReadonlyArray<ConsumerRecord.ProducerRecord> =>
  Array.from({ length: 210 }, (_, index): ConsumerRecord.ProducerRecord => {
    const at = { topic, partition: index % partitions, key: Bus.bytes(`"k${index}"`) }
    const headers = [
      { key: "trace", value: Bus.bytes(`t${index}`) },
      { key: "trace", value: notUtf8 },
      { key: "empty", value: null }
    ]
    switch (index % 7) {
      case 1:
        return { ...at, headers, value: order(`o${index}`, "twice") }
      case 2:
        return { ...at, headers, value: order(`o${index}`, "never") }
      case 3:
        return { ...at, headers, value: notUtf8 }
      case 4:
        return { ...at, headers, key: notUtf8, value: order(`o${index}`, "fine") }
      case 5:
        return { ...at, headers, value: null }
      default:
        return { ...at, headers, value: order(`o${index}`, "fine") }
    }
  })

const reads = (index: number) => index % 7 === 0 || index % 7 === 1 || index % 7 === 6

KafkaSuite.shared("the main job", (bootstrap) => {
  for (const ackMode of ["MANUAL_IMMEDIATE", "MANUAL"] as const) {
    Bus.story(
      bootstrap,
      `OFF-02 OFF-06 OFF-07 BND-16 ${ackMode}: every record is handled or dead-lettered with its own bytes, lag reaches 0, and a restart repeats nothing`,
      () =>
        Effect.gen(function* () {
          const topic = Bus.fresh("main-job")
          const groupId = Bus.fresh("main-job")
          yield* Bus.createTopic(topic, partitions)
          yield* Bus.publish(records(topic))

          const attempts = new Map<string, number>()
          const handled: Array<string> = []
          const binding = Binding.make("orders", {
            topic,
            groupId,
            ackMode,
            key: Serde.json(Schema.String),
            value: Serde.json(Order),
            retry: RetryPolicy.blocking({ maxAttempts: 3, initialBackoff: "5 millis" }),
            handler: ({ value: { id, mood } }) => {
              const attempt = (attempts.get(id) ?? 0) + 1
              attempts.set(id, attempt)
              if (mood === "never" || (mood === "twice" && attempt < 3)) return Effect.fail(new Refused({ id }))
              return Effect.sync(() => handled.push(id))
            },
            onError: { Refused: Route.retry }
          })
          const first = yield* Bus.start(binding)
          yield* Bus.lagIsZero(groupId, topic)
          yield* first.close
          assert.deepStrictEqual(yield* Bus.committed(groupId, topic), yield* Bus.logEnds(topic))

          const expected = records(topic).flatMap((_, index) => (reads(index) ? [`o${index}`] : []))
          assert.deepStrictEqual([...handled].sort(), [...expected].sort())
          for (const [id, count] of attempts) {
            const mood = Number(id.slice(1)) % 7
            assert.strictEqual(count, mood === 1 || mood === 2 ? 3 : 1, id)
          }

          const letters = yield* Bus.readAll(`${topic}.DLT`)
          const lost = records(topic).filter((_, index) => !reads(index))
          const content = ({ key, value, headers }: ConsumerRecord.ProducerRecord | ConsumerRecord.ConsumerRecord) => ({
            key,
            value,
            headers: headers?.filter((header) => !header.key.startsWith("x-eventbus-"))
          })
          const byTrace = (record: { readonly headers?: ReadonlyArray<ConsumerRecord.Header> }) =>
            Bus.text(record.headers?.find(({ key }) => key === "trace")?.value) ?? ""
          const inOrder = <A extends ConsumerRecord.ProducerRecord | ConsumerRecord.ConsumerRecord>(
            all: ReadonlyArray<A>
          ) => [...all].sort((a, b) => byTrace(a).localeCompare(byTrace(b))).map(content)
          assert.deepStrictEqual(inOrder(letters), inOrder(lost))

          // After the restart only later records are handled.
          handled.length = 0
          const second = yield* Bus.start(binding)
          yield* Bus.publish(
            Array.from({ length: partitions }, (_, partition) => ({
              topic,
              partition,
              key: Bus.bytes('"after"'),
              value: order(`after-${partition}`, "fine")
            }))
          )
          yield* Bus.lagIsZero(groupId, topic)
          yield* second.close
          assert.deepStrictEqual([...handled].sort(), ["after-0", "after-1", "after-2"])
        })
    )
  }

  Bus.story(
    bootstrap,
    "OFF-03 MANUAL_IMMEDIATE: when a record starts, everything before it in its partition is committed",
    () =>
      Effect.gen(function* () {
        const topic = Bus.fresh("immediate")
        const groupId = Bus.fresh("immediate")
        yield* Bus.createTopic(topic, 2)
        yield* Bus.publish(Bus.numbered(topic, 2, 60))
        const admin = yield* (yield* Broker.Broker).admin
        const wrong: Array<unknown> = []
        yield* Bus.start(
          Binding.make("immediate", {
            topic,
            groupId,
            value: Serde.string,
            retry: RetryPolicy.blocking(),
            handler: Effect.fnUntraced(function* ({ record: { partition, offset } }) {
              const all = yield* Effect.orDie(admin.committedOffsets(groupId, [topic]))
              const found = all.find((entry) => entry.partition === partition)?.offset ?? 0n
              if (found !== offset) wrong.push({ partition, offset, found })
            })
          })
        )
        yield* Bus.lagIsZero(groupId, topic)
        assert.deepStrictEqual(wrong, [])
      })
  )
})
