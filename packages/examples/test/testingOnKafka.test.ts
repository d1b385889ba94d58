import { assert, it } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { KafkaJs } from "@eventbus/kafkajs"
import { TestBus } from "@eventbus/testkit"
import { Effect, Layer } from "effect"
import { charging, FakeGateway, outage } from "../src/testing.ts"

/** A minute that is over sooner. */
const minuteMillis = 500

/** The cluster may be an old one: nothing of an earlier run is read. */
const orders = `orders-${crypto.randomUUID()}`

KafkaSuite.shared("testing on a real Kafka", (brokers) => {
  const World = TestBus.live([charging(orders, minuteMillis)], { partitions: 6 }).pipe(
    Layer.provideMerge(FakeGateway.layer),
    Layer.provide(KafkaJs.layer({ brokers }))
  )
  it.live(
    "TST-08 the outage of ten minutes, unchanged",
    () =>
      Effect.map(outage(orders, minuteMillis), (charged) => assert.deepStrictEqual(charged, ["o-1"])).pipe(
        Effect.provide(World)
      ),
    120_000
  )
})
