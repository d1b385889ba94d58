/**
 * The Broker port on kafkajs 2.2.4, for Apache Kafka 2.4 and later, 4.x included.
 *
 * kafkajs provides connections with TLS, SASL and re-authentication. `@eventbus/kafka-client` provides everything above them: the encoding of requests, group
 * membership, fetching, producing and transactions.
 */
import type { Broker, BrokerError } from "@eventbus/core"
import * as KafkaClient from "@eventbus/kafka-client/KafkaClient"
import type * as Layer from "effect/Layer"
import { openTransport } from "./internal/kafkajsTransport.ts"

export type {
  ClientCredentials,
  Options,
  Sasl,
  SaslClientCredentials,
  SaslPassword,
  SaslToken,
  Ssl,
  Token
} from "@eventbus/kafka-client/KafkaClient"
export { clientCredentials, TokenUnavailable } from "@eventbus/kafka-client/KafkaClient"

const transported: KafkaClient.Transported = { name: "KafkaJs", transport: "kafkajs", open: openTransport }

/** The `Broker` of a cluster. It connects when it is used. Each consumer, producer, reader and admin has connections of its own, closed with its scope. Throws `ConfigurationValidation` for options of another kind, and for a number out of its range (`Ranges.cluster`). */
export const make = (options: KafkaClient.Options): Broker.Broker["Service"] => KafkaClient.make(transported, options)

/** Provides the `Broker`, and this host's name. It connects when it is used: bindings wait for an unreachable cluster, and the program goes on. */
export const layer = (options: KafkaClient.Options): Layer.Layer<Broker.Broker> =>
  KafkaClient.layer(transported, options)

/** Like `layer`, but connects once when the layer is built, and fails when no broker can be reached and authenticated to. */
export const layerConnected = (options: KafkaClient.Options): Layer.Layer<Broker.Broker, BrokerError.BrokerError> =>
  KafkaClient.layerConnected(transported, options)
