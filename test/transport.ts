/** The transport that tests on a real Kafka run on: kafkajs, or with `TRANSPORT=kafka` connections of our own. The processes that a test starts take the same one. */
import { Kafka } from "@eventbus/kafka"
import { KafkaJs } from "@eventbus/kafkajs"

const transports = { kafkajs: KafkaJs, kafka: Kafka } as const

const { TRANSPORT: given = "kafkajs" } = process.env

if (given !== "kafkajs" && given !== "kafka") throw new Error(`TRANSPORT is '${given}'; kafkajs or kafka is expected`)

/** As options and configurations call it. */
export const name = given

export const { layer, make } = transports[name]
