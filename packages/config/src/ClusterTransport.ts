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
import { type Broker, Choices, EventBusError, Kinds } from "@eventbus/core"
import type { KafkaJs } from "@eventbus/kafkajs"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** The name of a transport. */
export type Transport = (typeof Choices.transport)[number]

type MakeLayer = (options: KafkaJs.Options) => Layer.Layer<Broker.Broker>

/** Bundlers take an import within a `try` for one that may be missing. */
const load: { readonly [T in Transport]: () => Promise<MakeLayer | EventBusError.ConfigurationValidation> } = {
  kafkajs: async () => {
    try {
      return (await import("@eventbus/kafkajs/KafkaJs")).layer
    } catch (thrown) {
      return orThrow("kafkajs", thrown)
    }
  },
  kafka: async () => {
    try {
      return (await import("@eventbus/kafka/Kafka")).layer
    } catch (thrown) {
      return orThrow("kafka", thrown)
    }
  }
}

/** The refusal of a transport whose package is not installed. Another failure is thrown on. */
const orThrow = (transport: Transport, thrown: unknown): EventBusError.ConfigurationValidation => {
  const { code, message } = thrown as NodeJS.ErrnoException
  const isMissing = code === "ERR_MODULE_NOT_FOUND" && message.includes(`@eventbus/${transport}`)
  if (!isMissing) throw thrown
  return notInstalled(transport)
}

const notInstalled = (transport: Transport) =>
  refusal({
    path: "transport",
    found: `${JSON.stringify(transport)}, whose package is not installed`,
    allowed: `the transport of an installed package; npm install @eventbus/${transport} adds this one`
  })

const refusal = (...issues: ReadonlyArray<EventBusError.ConfigurationIssue>) =>
  new EventBusError.ConfigurationValidation({ issues })

const loaded = (transport: Transport): Effect.Effect<MakeLayer, EventBusError.ConfigurationValidation> => {
  const issues = Kinds.oneOf(Choices.transport)("transport", transport)
  if (issues.length > 0) return Effect.fail(refusal(...issues))
  return Effect.flatMap(Effect.promise(load[transport]), (made) =>
    made instanceof EventBusError.ConfigurationValidation ? Effect.fail(made) : Effect.succeed(made)
  )
}

/**
 * Provides the `Broker` of a cluster by its `transport`, `kafkajs` by default. It connects when it is used, as the layers of both do. Fails with `ConfigurationValidation` for another
 * transport, and for one whose package is not installed; dies with it for other options of another kind.
 */
export const layer = (options: KafkaJs.Options): Layer.Layer<Broker.Broker, EventBusError.ConfigurationValidation> =>
  Layer.unwrap(Effect.map(loaded(options.transport ?? "kafkajs"), (make) => make(options)))
