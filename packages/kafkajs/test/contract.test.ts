/** The contract of the Broker port, on a real Kafka. */
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { KafkaJs } from "@eventbus/kafkajs"
import * as BrokerContract from "@eventbus/testkit/BrokerContract"

KafkaSuite.shared("kafkajs", (brokers) => {
  BrokerContract.suite("EXT-03 the Broker port on kafkajs", { layer: KafkaJs.layer({ brokers }), clock: "live" })
})
