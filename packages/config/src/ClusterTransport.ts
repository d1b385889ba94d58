/**
 * The layer of the transport that a cluster's settings name: `KafkaJs.layer`, or `Kafka.layer` of `@eventbus/kafka`.
 *
 * ```ts
 * import { Configuration } from "@eventbus/config"
 * import * as ClusterTransport from "@eventbus/config/ClusterTransport"
 * import { Effect, Layer } from "effect"
 *
 * export const BrokerLive = Layer.unwrap(
 *   Effect.map(Configuration.load("app.yaml"), ({ clusters }) => ClusterTransport.layer(clusters[0]!))
 * )
 * ```
 *
 * It loads the transport when the layer is built, and never the other one. The package of the transport must be installed. This module stands outside of the package's index, so that
 * bundles of programs that import a layer have no second transport in them.
 */
import { type Broker, type Choices, EventBusError } from "@eventbus/core"
import type { KafkaJs } from "@eventbus/kafkajs"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** The name of a transport. */
export type Transport = (typeof Choices.transport)[number]

/** The transport of a cluster that names none. */
export const defaultTransport: Transport = "kafkajs"

type MakeLayer = (options: KafkaJs.Options) => Layer.Layer<Broker.Broker>

/** Bundlers take an import within a `try` for one that may be missing. */
const loadKafkaJs = async (): Promise<MakeLayer> => {
  try {
    return (await import("@eventbus/kafkajs/KafkaJs")).layer
  } catch (thrown) {
    throw reasonOf("kafkajs", thrown)
  }
}

const loadKafka = async (): Promise<MakeLayer> => {
  try {
    return (await import("@eventbus/kafka/Kafka")).layer
  } catch (thrown) {
    throw reasonOf("kafka", thrown)
  }
}

const reasonOf = (transport: Transport, thrown: unknown): unknown => {
  const { code, message } = thrown as NodeJS.ErrnoException
  const isMissing = code === "ERR_MODULE_NOT_FOUND" && message.includes(`@eventbus/${transport}`)
  return isMissing ? notInstalled(transport) : thrown
}

const notInstalled = (transport: Transport) =>
  new EventBusError.ConfigurationValidation({
    issues: [
      {
        path: "transport",
        found: `${JSON.stringify(transport)}, whose package is not installed`,
        allowed: `the transport of an installed package; npm install @eventbus/${transport} adds this one`
      }
    ]
  })

const load = (transport: Transport): Effect.Effect<MakeLayer, EventBusError.ConfigurationValidation> =>
  Effect.tryPromise({ try: transport === "kafka" ? loadKafka : loadKafkaJs, catch: (thrown) => thrown }).pipe(
    Effect.catch((reason) =>
      reason instanceof EventBusError.ConfigurationValidation ? Effect.fail(reason) : Effect.die(reason)
    )
  )

/**
 * Provides the `Broker` of a cluster by its `transport`: `kafkajs` by default. It connects when it is used, as the layers of both do. Fails with `ConfigurationValidation` when the package
 * of the transport is not installed; dies with it for options of another kind.
 */
export const layer = (options: KafkaJs.Options): Layer.Layer<Broker.Broker, EventBusError.ConfigurationValidation> =>
  Layer.unwrap(Effect.map(load(options.transport ?? defaultTransport), (make) => make(options)))
