/**
 * The clusters of a configuration, on kafkajs.
 */
import { ClusterSettings, type Configuration } from "@eventbus/config"
import { type Broker, Clusters } from "@eventbus/core"
import { KafkaJs } from "@eventbus/kafkajs"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { type CommandFailed, refuse, refuseUsage } from "./failures.ts"

const defaultCluster = "default"

/** The clusters of the configuration. `brokers` replaces the addresses of the cluster `default` and keeps its other settings. */
export const layer = (
  configuration: Configuration.Configuration,
  brokers: Option.Option<string>
): Effect.Effect<Layer.Layer<Broker.Broker>, CommandFailed> =>
  Effect.gen(function* () {
    const clusters = new Map<string, KafkaJs.Options>(
      configuration.clusters.map((each) => [each.alias, optionsOf(each)])
    )
    if (Option.isSome(brokers)) {
      const named = yield* brokerList(brokers.value)
      clusters.set(defaultCluster, { ...clusters.get(defaultCluster), brokers: named })
    }
    const unknown = configuration.bindings.filter(({ cluster }) => !clusters.has(cluster))
    if (unknown.length > 0) {
      const names = unknown.map(({ name, cluster }) => `binding '${name}' is on cluster '${cluster}'`).join(", ")
      const known = clusters.size === 0 ? "none" : Array.from(clusters.keys()).join(", ")
      return yield* refuse(
        `${names}; eventbus.clusters has ${known}. --brokers sets the brokers of cluster '${defaultCluster}'.`
      )
    }
    return Clusters.layerMap(new Map(Array.from(clusters, ([alias, options]) => [alias, KafkaJs.layer(options)])))
  })

const optionsOf = ({ alias: _, ...options }: ClusterSettings.ClusterSettings): KafkaJs.Options => options

const brokerList = (text: string): Effect.Effect<ReadonlyArray<string>, CommandFailed> => {
  const brokers = ClusterSettings.addresses(text)
  return brokers === undefined
    ? refuseUsage(`--brokers is "${text}"; allowed is host:port, several with commas`)
    : Effect.succeed(brokers)
}
