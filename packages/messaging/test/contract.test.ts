/** The contract of messaging, in memory and on a real Kafka. */
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { KafkaJs } from "@eventbus/kafkajs"
import { MessageBroker } from "@eventbus/messaging"
import * as MessagingContract from "@eventbus/messaging/MessagingContract"
import { VirtualClock } from "@eventbus/testkit"
import { Layer } from "effect"
import * as Memory from "./memory.ts"

const { capabilities } = MessageBroker

MessagingContract.suite("EXT-04 MSG-03 MSG-05 MSG-10 MSG-21 messaging in memory", {
  ...{ layer: Memory.layer(), clock: VirtualClock.layer, capabilities }
})

KafkaSuite.shared("kafka", (brokers) => {
  const layer = Memory.onBroker().pipe(Layer.provide(KafkaJs.layer({ brokers })))
  MessagingContract.suite("EXT-04 MSG-03 MSG-05 MSG-10 MSG-21 messaging on Kafka", { layer, capabilities })
})
