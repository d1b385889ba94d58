/** The strategy on a real Kafka with every wait of its file, 135 seconds for money: `STRATEGY_WAITS=real`, since a run of all tests has no time for it. */
import { it } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { KafkaJs } from "@eventbus/kafkajs"
import { TestBus } from "@eventbus/testkit"
import { Effect, Layer } from "effect"
import * as Story from "./strategyStory.ts"

const prefix = `strategy-${crypto.randomUUID()}.`

KafkaSuite.shared("the error handling strategy on a real Kafka", (brokers) => {
  const World = Layer.unwrap(
    Effect.map(Story.bindings(prefix), (bindings) => TestBus.live(bindings, { settleWithin: "1 minute" }))
  ).pipe(Layer.provideMerge(Story.services), Layer.provide(KafkaJs.layer({ brokers })))
  it.live.skipIf(process.env["STRATEGY_WAITS"] !== "real")(
    "ERR-02 ERR-03 ERR-04 ERR-05 ERR-06 ERR-09 ERR-11 each consumer waits as long as its file says",
    () => Story.tell(prefix, 1_000).pipe(Effect.provide(World)),
    240_000
  )
})
