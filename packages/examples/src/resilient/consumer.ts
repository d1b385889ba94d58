import { fileURLToPath } from "node:url"
import { Avro } from "@eventbus/avro"
import { ResilientConsumer } from "@eventbus/config"
import { KafkaJs } from "@eventbus/kafkajs"
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { OrderMessage } from "./orderMessage.ts"
import { orderMessageHandler } from "./orderMessageHandler.ts"

const file = fileURLToPath(new URL("appsettings.json", import.meta.url))

/** The consumer of `appsettings.json`; it still needs the gateway and a Kafka. */
export const Consumer = ResilientConsumer.layerFile(file, (schemaRegistryUrl) =>
  Effect.map(Avro.orJson(schemaRegistryUrl, OrderMessage), orderMessageHandler)
).pipe(Layer.provide(FetchHttpClient.layer))

/** The Kafka of its `BootstrapServers`. */
export const Kafka = Layer.unwrap(
  Effect.map(ResilientConsumer.load(file), ({ clusters }) => KafkaJs.layer({ brokers: clusters[0]?.brokers ?? [] }))
)
