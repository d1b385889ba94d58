/** The transports that every test of this folder runs on. */
import { Kafka } from "@eventbus/kafka"
import type { Transport } from "@eventbus/kafka-client"
import { KafkaJs } from "@eventbus/kafkajs"
import { openTransport as own } from "../../packages/kafka/src/internal/transport.ts"
import { openTransport as kafkajs } from "../../packages/kafkajs/src/internal/kafkajsTransport.ts"

export interface Tested {
  readonly name: string
  readonly open: Transport.Open
  readonly layer: typeof KafkaJs.layer
}

export const transports: ReadonlyArray<Tested> = [
  { name: "KafkaJs", open: kafkajs, layer: KafkaJs.layer },
  { name: "Kafka", open: own, layer: Kafka.layer }
]
