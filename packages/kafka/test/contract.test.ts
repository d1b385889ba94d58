/** The contract of the Broker port, on a real Kafka, in both protocols of groups. */

import { Broker } from "@eventbus/core"
import { Kafka } from "@eventbus/kafka"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import * as BrokerContract from "@eventbus/testkit/BrokerContract"
import { Effect, Layer } from "effect"

KafkaSuite.shared("a connection of its own", (brokers) => {
  BrokerContract.suite("EXT-03 CLN-15 the Broker port on connections of its own", {
    layer: Kafka.layer({ brokers }),
    clock: "live"
  })

  if (!KafkaSuite.hasConsumerProtocol) return
  const consumerProtocol = Layer.effect(
    Broker.Broker,
    Effect.map(Broker.Broker, (broker) => ({
      ...broker,
      consumer: (options: Broker.ConsumerOptions) => broker.consumer({ ...options, groupProtocol: "consumer" })
    }))
  )

  BrokerContract.suite("CLN-10 the Broker port on connections of its own, in the consumer protocol", {
    layer: consumerProtocol.pipe(Layer.provide(Kafka.layer({ brokers }))),
    clock: "live",
    capabilities: { assignment: "broker" }
  })
})
