/** The transports that every test of this folder runs on. */
import type { Transport } from "@eventbus/kafka-client"
import { KafkaJs } from "@eventbus/kafkajs"
import { openTransport as kafkajs } from "../../packages/kafkajs/src/internal/kafkajsTransport.ts"

export interface Tested {
  readonly name: string
  readonly open: Transport.Open
  readonly layer: typeof KafkaJs.layer
}

export const transports: ReadonlyArray<Tested> = [{ name: "KafkaJs", open: kafkajs, layer: KafkaJs.layer }]
