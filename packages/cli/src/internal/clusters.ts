/**
 * The clusters of a configuration, each on the transport that it names.
 */
import { ClusterSettings, type Configuration } from "@eventbus/config"
import * as ClusterTransport from "@eventbus/config/ClusterTransport"
import { type Broker, Clusters } from "@eventbus/core"
import type { KafkaJs } from "@eventbus/kafkajs"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { type CommandFailed, refuse, refuseUsage } from "./failures.ts"
import * as Flags from "./flags.ts"

const defaultCluster = "default"

/** The clusters of the configuration. `brokers` replaces the addresses of the cluster `default` and keeps its other settings, `transport` the connections to all of them. */
export const layer = (
  configuration: Configuration.Configuration,
  { brokers, transport }: Flags.Cluster
): Effect.Effect<Layer.Layer<Broker.Broker, CommandFailed>, CommandFailed> =>
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
    const opened = Array.from(clusters, ([alias, options]) => {
      const cluster = ClusterTransport.layer({ ...options, ...Flags.given("transport", transport) })
      return [alias, orFailed(alias, cluster)] as const
    })
    return Clusters.layerMap(new Map(opened))
  })

const orFailed = (
  alias: string,
  cluster: ReturnType<typeof ClusterTransport.layer>
): Layer.Layer<Broker.Broker, CommandFailed> =>
  Layer.catch(cluster, ({ issues }) => {
    const mistakes = issues.map(({ path, found, allowed }) => `found ${path} ${found}, allowed is ${allowed}`)
    return Layer.effectContext(refuse(`cluster '${alias}': ${mistakes.join("; ")}`))
  })

const optionsOf = ({ alias: _, ...options }: ClusterSettings.ClusterSettings): KafkaJs.Options => options

const brokerList = (text: string): Effect.Effect<ReadonlyArray<string>, CommandFailed> => {
  const brokers = ClusterSettings.addresses(text)
  return brokers === undefined
    ? refuseUsage(`--brokers is "${text}"; allowed is host:port, several with commas`)
    : Effect.succeed(brokers)
}
