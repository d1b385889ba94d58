/**
 * The Kafka clusters of a program, by alias (connector seed §9). A binding says `cluster: "dr"`, and everything of it happens there: consuming, retry and
 * dead letter topics, commits, transactions.
 *
 * A program with one cluster needs none of this: its `Broker` is the cluster `default`.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Broker } from "./Broker.ts"
import { UnexpectedBrokerError } from "./BrokerError.ts"
import { UnknownCluster } from "./EventBusError.ts"
import { defaultCluster } from "./internal/settings/bindingKey.ts"

/** The broker of each alias. Default: none, and the program's `Broker` is `default`. */
export const Clusters = Context.Reference<ReadonlyMap<string, Broker["Service"]>>("@eventbus/core/Clusters", {
  defaultValue: () => new Map()
})

/** The cluster of an alias. Where no clusters are given, the program's `Broker` is the one called `default`. */
export const get = (alias: string): Effect.Effect<Broker["Service"], UnknownCluster, Broker> =>
  Effect.gen(function* () {
    const clusters = yield* Clusters
    const broker = clusters.get(alias)
    if (broker !== undefined) return broker
    if (clusters.size === 0 && alias === defaultCluster) return yield* Broker
    const known = clusters.size === 0 ? [defaultCluster] : Array.from(clusters.keys())
    return yield* new UnknownCluster({ cluster: alias, known })
  })

/**
 * Each cluster by its alias, with client settings of its own. The one called `default` is the program's `Broker`, too. Layers that wait for a cluster
 * that is away (`KafkaJs.layer`) let the others run meanwhile; one that fails, such as `KafkaJs.layerConnected`, ends the program.
 *
 * ```ts
 * import { Clusters } from "@eventbus/core"
 * import { KafkaJs } from "@eventbus/kafkajs"
 *
 * export const clusters = Clusters.layer({
 *   default: KafkaJs.layer({ brokers: ["east:9092"] }),
 *   dr: KafkaJs.layer({ brokers: ["west:9092"] })
 * })
 * ```
 */
export const layer = <E, R>(clusters: {
  readonly default: Layer.Layer<Broker, E, R>
  readonly [alias: string]: Layer.Layer<Broker, E, R>
}): Layer.Layer<Broker, E, R> => layerMap(new Map(Object.entries(clusters)))

/** The same for aliases that come from a configuration, which need not call any of them `default`: then there is no cluster for bindings that name none. */
export const layerMap = <E, R>(clusters: ReadonlyMap<string, Layer.Layer<Broker, E, R>>): Layer.Layer<Broker, E, R> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const built = yield* Effect.forEach(clusters, ([alias, cluster]) =>
        Effect.map(Layer.build(cluster), (context) => [alias, context] as const)
      )
      const brokers = new Map(built.map(([alias, context]) => [alias, Context.get(context, Broker)]))
      // Other services of a layer, such as the name of this host, come from the default cluster's layer.
      const others = new Map(built).get(defaultCluster) ?? built[0]?.[1] ?? Context.empty()
      return Context.add(others, Clusters, brokers).pipe(
        Context.add(Broker, brokers.get(defaultCluster) ?? nowhere(Array.from(brokers.keys())))
      )
    })
  )

/** The `Broker` of a program whose clusters all have names of their own. */
const nowhere = (known: ReadonlyArray<string>): Broker["Service"] => {
  const { message } = new UnknownCluster({ cluster: defaultCluster, known })
  const refusal = Effect.fail(
    new UnexpectedBrokerError({ operation: "connect", code: "UnknownCluster", detail: message, retryable: false })
  )
  const refuse = () => refusal
  return { consumer: refuse, producer: refuse, transactionalProducer: refuse, reader: refuse, admin: refusal }
}
