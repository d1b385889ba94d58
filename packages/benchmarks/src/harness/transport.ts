/** The transport of the connector's participants: kafkajs, or with `TRANSPORT=kafka` connections of its own. */
import { Kafka } from "@eventbus/kafka"
import { KafkaJs } from "@eventbus/kafkajs"

const { TRANSPORT: name = "kafkajs" } = process.env

if (name !== "kafkajs" && name !== "kafka") throw new Error(`TRANSPORT is '${name}'; kafkajs or kafka is expected`)

export const { layer, make } = { kafkajs: KafkaJs, kafka: Kafka }[name]
