/**
 * The Kafka of the demo: the one in `KAFKA_BROKERS`, otherwise one inside this process. Its topics and groups are created for this run and deleted at
 * the end.
 */
import { Broker, type BrokerError, TopicName } from "@eventbus/core"
import { KafkaJs } from "@eventbus/kafkajs"
import { MemoryBroker } from "@eventbus/testkit"
import { Config, Context, Effect, Layer, Option } from "effect"

/** The topics, groups and records of this run. */
export interface Names {
  readonly orders: string
  readonly payments: string
  readonly deadLetters: string
  /** The topic of the first tier comes first. */
  readonly retries: ReadonlyArray<string>
  readonly group: string
  readonly subscriptions: SubscriptionNames
}

/** The names of the binding that keeps the order of each customer. Its topic has one partition. */
export interface SubscriptionNames {
  readonly topic: string
  readonly deadLetters: string
  readonly retry: string
  readonly group: string
}

export const partitions = 6

export class Cluster extends Context.Service<
  Cluster,
  {
    /** A note for the screen. */
    readonly title: string
    readonly names: Names
  }
>()("@eventbus/examples/demo/Cluster") {}

export const layer: Layer.Layer<Cluster | Broker.Broker, Config.ConfigError | BrokerError.BrokerError> = Layer.unwrap(
  Effect.map(Config.option(Config.String("KAFKA_BROKERS")), (brokers) =>
    Option.match(brokers, {
      onNone: () => cluster("a broker in this process", "").pipe(Layer.provideMerge(MemoryBroker.layer())),
      onSome: (list) =>
        cluster(`Kafka at ${list}`, `demo-${crypto.randomUUID().slice(0, 8)}.`).pipe(
          Layer.provideMerge(KafkaJs.layerConnected({ brokers: list.split(","), clientId: "eventbus-demo" }))
        )
    })
  )
)

const cluster = (title: string, prefix: string): Layer.Layer<Cluster, BrokerError.BrokerError, Broker.Broker> =>
  Layer.effect(
    Cluster,
    Effect.gen(function* () {
      const broker = yield* Broker.Broker
      const names = namesOf(prefix)
      const topics = [
        ...[names.orders, names.payments].map((topic) => ({ topic, partitions })),
        { topic: names.subscriptions.topic, partitions: 1 }
      ]
      yield* Effect.acquireRelease(
        withAdmin(broker, (admin) => admin.createTopics(topics)),
        () => Effect.ignore(withAdmin(broker, (admin) => remove(admin, names)))
      )
      return { title, names }
    })
  )

const namesOf = (prefix: string): Names => {
  const orders = `${prefix}orders`
  const group = `${prefix}billing`
  const source = { topic: orders, groupId: group }
  return {
    orders,
    payments: `${prefix}payments`,
    deadLetters: TopicName.standard.deadLetter(source),
    retries: [1, 2].map((tier) => TopicName.standard.retry(source, tier)),
    group,
    subscriptions: subscriptionNamesOf(prefix)
  }
}

const subscriptionNamesOf = (prefix: string): SubscriptionNames => {
  const source = { topic: `${prefix}subscriptions`, groupId: `${prefix}subscriptions` }
  return {
    topic: source.topic,
    deadLetters: TopicName.standard.deadLetter(source),
    retry: TopicName.standard.retry(source, 1),
    group: source.groupId
  }
}

export const withAdmin = <A>(
  broker: Broker.Broker["Service"],
  use: (admin: Broker.Admin) => Effect.Effect<A, BrokerError.BrokerError>
): Effect.Effect<A, BrokerError.BrokerError> => Effect.scoped(Effect.flatMap(broker.admin, use))

const remove = Effect.fnUntraced(function* (
  admin: Broker.Admin,
  { orders, payments, deadLetters, retries, group, subscriptions }: Names
) {
  const ofSubscriptions = [subscriptions.topic, subscriptions.deadLetters, subscriptions.retry]
  const made = new Set([orders, payments, deadLetters, ...retries, ...ofSubscriptions])
  yield* admin.deleteTopics((yield* admin.listTopics).filter((topic) => made.has(topic)))
  yield* admin.deleteGroups((yield* admin.listGroups).filter((id) => id === group || id === subscriptions.group))
})
