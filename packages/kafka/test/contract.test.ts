/** The contract of the Broker port, on a real Kafka. */

import { Kafka } from "@eventbus/kafka"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import * as BrokerContract from "@eventbus/testkit/BrokerContract"

KafkaSuite.shared("a connection of its own", (brokers) => {
  BrokerContract.suite("EXT-03 CLN-15 the Broker port on connections of its own", {
    layer: Kafka.layer({ brokers }),
    clock: "live"
  })
})
