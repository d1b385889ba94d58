/** Headers of other clients: counts that are forged, and values that amqplib cannot write as it has read them. */
import { assert, it } from "@effect/vitest"
import { DeadLetterHeaders } from "@eventbus/messaging"
import { Effect } from "effect"
import { asOperator, letters, onRabbitMq, type TestBroker, testBroker, untilConsumed } from "./rabbit.ts"
import { Boom, type Probe, probing, until } from "./rig.ts"

type Way = "exchange" | "queue"

/** Sends an order as another client does, to the topic's exchange or to the queue by its name, and waits until it is dead-lettered. */
const deadLettered = (
  { prefix, queue }: TestBroker,
  probe: Probe,
  given: { readonly headers: object; readonly way: Way }
) =>
  Effect.gen(function* () {
    const [calls, before] = [probe.calls.length, probe.letters.length]
    yield* untilConsumed(queue("orders", "g"))
    yield* asOperator(async (channel) => {
      const [body, options] = [Buffer.from('{"id":1}'), { headers: given.headers }]
      if (given.way === "exchange") channel.publish(`${prefix}.orders`, "k", body, options)
      else channel.sendToQueue(queue("orders", "g"), body, options)
    })
    yield* until(`the message is dead-lettered: ${JSON.stringify(given)}`, () => probe.letters.length > before)
    const [letter = assert.fail()] = (yield* letters(`${prefix}.orders-dlq`)).slice(-1)
    return { calls: probe.calls.slice(calls), headers: letter.properties.headers ?? {} }
  })

const failing = (broker: TestBroker["broker"]) =>
  probing(broker, {
    retry: { maxAttempts: 2, initialInterval: 50 },
    handle: () => Effect.fail(new Boom({ message: "boom" }))
  })

const ways: ReadonlyArray<Way> = ["exchange", "queue"]

onRabbitMq("headers of another client", () => {
  it.live(
    "C02 forged counts, keys and ids change nothing: a message has its two tries, and its dead letter the account",
    () =>
      Effect.gen(function* () {
        const rabbit = yield* testBroker()
        const probe = yield* failing(rabbit.broker)
        const forged = [
          ...[1_000, -5, "7"].map((count) => ({ "x-delivery-count": count })),
          ...[1_000_000_000, -3, "2"].map((attempt) => ({ "x-eventbus-attempt": attempt })),
          ...[{ "x-eventbus-key": "k".repeat(300) }, { "message-id": "i".repeat(300) }, { "message-id": 7 }],
          { "x-eventbus-tombstone": true, timestamp_in_ms: "soon", "retry-count": -1, "original-topic": "payments" }
        ]
        for (const headers of forged) {
          for (const way of ways) {
            const { calls, headers: account } = yield* deadLettered(rabbit, probe, { headers, way })
            const about = `${JSON.stringify(headers)} to the ${way}`
            assert.deepStrictEqual(
              calls.map(({ attempt }) => attempt),
              [1, 2],
              about
            )
            const keys = new Set(calls.map(({ key }) => key))
            assert.deepStrictEqual(keys, new Set([way === "exchange" ? "k" : undefined]), about)
            assert.strictEqual(account[DeadLetterHeaders.names.exceptionClass], "Boom", about)
            assert.strictEqual(account[DeadLetterHeaders.names.originalTopic], "orders", about)
            assert.strictEqual(account[DeadLetterHeaders.names.retryCount], "1", about)
          }
        }
      }).pipe(Effect.scoped)
  )

  it.live("C08 numbers of every kind go through a retry and into the dead letter, deep in a table too", () =>
    Effect.gen(function* () {
      const rabbit = yield* testBroker()
      const probe = yield* failing(rabbit.broker)
      // RabbitMQ itself takes no NaN and no infinity.
      const doubles = [2 ** 50 + 0.5, -1e300, 2 ** 63, 0.1, -0.5]
      const numbers = doubles.map((value) => ({ "!": "double", value }))
      const longs = [2 ** 53 - 1, -(2 ** 62), 255, -1]
      const { calls, headers } = yield* deadLettered(rabbit, probe, {
        headers: { numbers, longs, deep: { list: [{ numbers }] }, single: numbers[0] },
        way: "exchange"
      })
      assert.strictEqual(calls.length, 2)
      assert.deepStrictEqual(headers["numbers"], doubles)
      assert.deepStrictEqual(headers["longs"], longs)
      assert.deepStrictEqual(headers["deep"], { list: [{ numbers: doubles }] })
      assert.deepStrictEqual(headers["single"], doubles[0])
      assert.strictEqual(headers[DeadLetterHeaders.names.exceptionClass], "Boom")
    }).pipe(Effect.scoped)
  )
})
