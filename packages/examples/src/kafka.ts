/**
 * The Kafka of the examples: the one in `KAFKA_BROKERS` (`host:port,host:port`), by the transport in `KAFKA_TRANSPORT`; otherwise one inside this process.
 */
import * as ClusterTransport from "@eventbus/config/ClusterTransport"
import { type Broker, type BrokerError, Choices, type EventBusError } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Config, Effect, Layer, Option } from "effect"

/** A record of the Kafka inside this process: its key, and its value, which is written as JSON unless it is text. */
export type Sample = readonly [key: string, value: unknown]

/**
 * Writes `samples` into the topic of the Kafka inside this process; another Kafka is not changed. A program with several clusters names the variable
 * of each.
 */
export const layer = (topic: string, samples: ReadonlyArray<Sample>, variable?: string) =>
  topics({ [topic]: samples }, variable)

/** The same for several topics. */
export const topics = (
  samples: Readonly<Record<string, ReadonlyArray<Sample>>>,
  variable = "KAFKA_BROKERS"
): Layer.Layer<Broker.Broker, Config.ConfigError | BrokerError.BrokerError | EventBusError.ConfigurationValidation> =>
  Layer.unwrap(
    Effect.map(Config.option(Config.String(variable)), (brokers) =>
      Option.match(brokers, {
        onSome: (list) => at(list.split(",")),
        onNone: () =>
          Layer.effectDiscard(
            Effect.forEach(Object.entries(samples), ([topic, records]) => write(topic, records), { discard: true })
          ).pipe(Layer.provideMerge(MemoryBroker.layer()))
      })
    )
  )

const at = (brokers: ReadonlyArray<string>) =>
  Layer.unwrap(
    Effect.map(Config.withDefault(Config.Literals(Choices.transport, "KAFKA_TRANSPORT"), "kafkajs"), (transport) =>
      ClusterTransport.layer({ brokers, transport })
    )
  )

const write = Effect.fnUntraced(function* (topic: string, samples: ReadonlyArray<Sample>) {
  const kafka = yield* MemoryBroker.MemoryBroker
  yield* kafka.createTopic(topic)
  yield* kafka.append(
    topic,
    0,
    samples.map(([key, value]) => ({
      key: encoder.encode(key),
      value: encoder.encode(typeof value === "string" ? value : JSON.stringify(value))
    }))
  )
})

const encoder = new TextEncoder()
