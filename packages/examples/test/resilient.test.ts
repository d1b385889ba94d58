import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { ResilientConsumer } from "@eventbus/config"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Layer, Schema } from "effect"
import { Yaml } from "effect/encoding"
import { TestClock } from "effect/testing"
import { Consumer } from "../src/resilient/consumer.ts"
import { PaymentGateway } from "../src/resilient/paymentGateway.ts"

const path = (name: string) => fileURLToPath(new URL(`../src/resilient/${name}`, import.meta.url))

const order = (orderId: string, bank: string, amount: unknown) => ({ orderId, bank, amount })
const bytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))

const idsIn = Effect.fnUntraced(function* (topic: string) {
  const memory = yield* MemoryBroker.MemoryBroker
  return (yield* memory.log(topic, 0)).map(({ value }) => JSON.parse(new TextDecoder().decode(value!)).orderId)
})

describe("the example of a result-based consumer", () => {
  it.effect(
    "RES-16 RES-03 RES-04 each result routes its order by the settings of the file; all offsets are committed",
    () => {
      const charged: Array<string> = []
      const times: Array<number> = []
      const gateway = Layer.effect(
        PaymentGateway,
        Effect.map(PaymentGateway, ({ charge }) => ({
          charge: (bank: string, amount: number) =>
            Effect.clockWith((clock) => Effect.sync(() => times.push(clock.currentTimeMillisUnsafe()))).pipe(
              Effect.andThen(charge(bank, amount)),
              Effect.tap(() => Effect.sync(() => charged.push(`${amount} of ${bank}`)))
            )
        }))
      ).pipe(Layer.provide(PaymentGateway.layer))
      return Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* memory.append(
          "orders",
          0,
          [
            order("o-2", "south", 500),
            order("o-1", "north", 2000),
            order("o-3", "north", 0),
            order("o-4", "north", "much")
          ].map((value) => ({ value: bytes(value) }))
        )
        yield* Layer.build(Consumer.pipe(Layer.provide(gateway)))
        for (let second = 0; second < 30; second++) {
          yield* TestClock.adjust("1 second")
          yield* Effect.repeat(Effect.yieldNow, { times: 300 })
        }
        assert.deepStrictEqual(charged, ["2000 of north"])
        assert.deepStrictEqual(yield* idsIn("orders.error"), ["o-3", "o-4", "o-2"])
        const retries = [1, 2, 3, 4, 5].map((n) => `orders.retry.${n}`)
        for (const topic of retries) assert.deepStrictEqual(yield* idsIn(topic), ["o-2"], topic)
        assert.strictEqual(times.length, 1 + 1 + retries.length)
        assert.isAtLeast(times.at(-1)! - times[0]!, 5 * 5000)
        assert.strictEqual(yield* memory.committed("order-processor", "orders", 0), 4n)
        for (const topic of retries) assert.strictEqual(yield* memory.committed("order-processor", topic, 0), 1n, topic)
      }).pipe(Effect.provide(MemoryBroker.layer()))
    }
  )

  it.effect("RES-16 the compose file has a Kafka at the address of the settings, with their topic", () =>
    Effect.gen(function* () {
      const { services } = Schema.decodeUnknownSync(Compose)(
        Yaml.parse(readFileSync(path("docker-compose.yml"), "utf8"))
      )
      const { bindings, clusters } = yield* ResilientConsumer.load(path("appsettings.json"))
      const [address = ""] = clusters[0]?.brokers ?? []
      const [, port] = address.split(":")
      const listeners = services.kafka.environment["KAFKA_ADVERTISED_LISTENERS"]
      assert.deepStrictEqual(services.kafka.ports, [`${port}:${port}`])
      assert.include(String(listeners).split(","), `OUTSIDE://${address}`)
      assert.include(services.topics.command, `--topic ${bindings[0]?.topic} `)
    })
  )
})

const Compose = Schema.Struct({
  services: Schema.Struct({
    kafka: Schema.Struct({
      image: Schema.String,
      ports: Schema.Array(Schema.String),
      environment: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Finite]))
    }),
    topics: Schema.Struct({ image: Schema.String, command: Schema.String })
  })
})
