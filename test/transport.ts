/** The transport that tests on a real Kafka run on: kafkajs, or with `TRANSPORT=kafka` connections of our own. The processes that a test starts take the same one. */
import { Kafka } from "@eventbus/kafka"
import { KafkaJs } from "@eventbus/kafkajs"

const transports = { kafkajs: KafkaJs, kafka: Kafka } as const

const { TRANSPORT: name = "kafkajs" } = process.env

if (name !== "kafkajs" && name !== "kafka") throw new Error(`TRANSPORT is '${name}'; kafkajs or kafka is expected`)

export const { layer, make } = transports[name]
