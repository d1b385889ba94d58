/** The log lines of a consumer on RabbitMQ: those that operators know from Kafka. */
import { assert, it } from "@effect/vitest"
import { Message, Topic } from "@eventbus/messaging"
import { Effect, Logger, References, Schema } from "effect"
import { onRabbitMq, testBroker } from "./rabbit.ts"
import { Boom, orders, probing, sendOrder, until } from "./rig.ts"

/** Lines with their level and annotations; stack traces are left out. */
const capture = () => {
  const lines: Array<string> = []
  const annotations: Array<unknown> = []
  const logger = Logger.make<unknown, void>(({ logLevel, message, fiber }) => {
    const [text] = Array.isArray(message) ? message : [message]
    lines.push(`${logLevel} ${text}`)
    annotations.push(fiber.getRef(References.CurrentLogAnnotations))
  })
  return { lines, annotations, layer: Logger.layer([logger]) }
}

onRabbitMq("the log of a consumer", () => {
  it.live("start, retry, dead letter and stop have a line each, in the words of a binding on Kafka", () =>
    Effect.gen(function* () {
      const { lines, annotations, layer } = capture()
      const { broker, queue } = yield* testBroker()
      yield* Effect.gen(function* () {
        const probe = yield* probing(broker, {
          retry: { maxAttempts: 2, initialInterval: 50 },
          handle: () => Effect.fail(new Boom({ message: "boom" }))
        })
        yield* sendOrder(broker, 1)
        yield* until("the message is dead-lettered", () => probe.letters.length === 1)
        yield* until("the line is written", () => lines.length >= 3)
      }).pipe(Effect.scoped, Effect.provide(layer))
      const [started, routed, deadLettered, stopping, ...others] = lines
      assert.deepStrictEqual(others, [])
      assert.strictEqual(
        started,
        "Info Consumer 'g' is RUNNING. It reads 'orders', retries after 50ms and sends dead letters to 'orders-dlq'"
      )
      const retry = `${queue("orders", "g")}:retry:50`
      const date = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`
      assert.match(
        `${routed}`,
        new RegExp(
          `^Warn Record routed to ${retry} after attempt 1 of 2, next attempt at ${date}, message [0-9a-f-]{36} of 'orders': Boom: boom$`
        )
      )
      assert.match(
        `${deadLettered}`,
        /^Warn Record dead-lettered to orders-dlq after attempt 2 of 2 \(RETRIES_EXHAUSTED\), message [0-9a-f-]{36} of 'orders': Boom: boom$/
      )
      assert.strictEqual(
        stopping,
        "Info Consumer 'g' is DESTROYED, was RUNNING; no more records begin, and those in work end first"
      )
      assert.deepInclude(annotations[1], { bindingName: "g", consumerGroup: "g", topic: "orders" })
    }).pipe(Effect.scoped)
  )

  it.live(
    "a payload that cannot be read is dead-lettered without an attempt; of 60 at once some have a line, and the others are counted",
    () =>
      Effect.gen(function* () {
        const { lines, layer } = capture()
        const { broker } = yield* testBroker()
        yield* Effect.gen(function* () {
          const probe = yield* probing(broker)
          const foreign = Topic.json(orders.name, Schema.Struct({ id: Schema.String }))
          for (let n = 0; n < 60; n++) {
            yield* broker.send(yield* Message.of({ id: "x" }, foreign))
          }
          yield* until("all are dead-lettered", () => probe.letters.length === 60)
        }).pipe(Effect.scoped, Effect.provide(layer))
        const letters = lines.filter((line) => line.includes("dead-lettered to orders-dlq without an attempt"))
        const more = lines.flatMap((line) => /Warn (\d+) more records were/.exec(line)?.[1] ?? [])
        assert.isBelow(letters.length, 60)
        assert.strictEqual(letters.length + more.reduce((total, count) => total + Number(count), 0), 60)
      }).pipe(Effect.scoped)
  )
})
