/** How to reach a Kafka cluster, in plain values. */
import type * as ClusterTransport from "@eventbus/config/ClusterTransport"
import type { Broker } from "@eventbus/core"
import type { KafkaJs } from "@eventbus/kafkajs"
import type { Plain } from "./PlainValues.ts"

/** A text, or a function that reads it: it is called for every connection and every authentication, so that a secret can be rotated. */
export type SecretValue = string | (() => string | PromiseLike<string>)

/** TLS with certificates of your own. PEM. */
export interface SslOptions {
  /** Certificate authorities to trust. Default: those of Node.js. */
  readonly ca?: SecretValue | ReadonlyArray<string>
  /** The client's certificate chain, for mutual TLS. Default: none. */
  readonly cert?: SecretValue
  /** The client's private key. Default: none. */
  readonly key?: SecretValue
  /** Passphrase of an encrypted private key. Default: none. */
  readonly passphrase?: SecretValue
  /** Host that the broker's certificate must name. Default: the host in the broker's address. */
  readonly servername?: string
  /** `false` accepts every certificate: for experiments only. Default `true`. */
  readonly rejectUnauthorized?: boolean
}

/** SASL with a user name and a password. */
export interface SaslPasswordOptions {
  /** Kafka: `sasl.mechanism`. */
  readonly mechanism: "plain" | "scram-sha-256" | "scram-sha-512"
  /** The user. */
  readonly username: SecretValue
  /** The user's password. */
  readonly password: SecretValue
}

/** A bearer token, and when it expires. */
export interface TokenValue extends Omit<KafkaJs.Token, "value"> {
  /** The token itself, usually a JWT. */
  readonly value: string
}

/** SASL with bearer tokens. */
export interface SaslTokenOptions {
  /** Kafka: `sasl.mechanism`. */
  readonly mechanism: "oauthbearer"
  /** Answers with a token that is valid now, within 10 seconds. At most one call runs at a time. */
  readonly token: () => PromiseLike<string | TokenValue>
}

/** SASL with tokens of an OAuth 2 server, by the client credentials grant. */
export interface SaslClientCredentialsOptions extends Omit<KafkaJs.SaslClientCredentials, "clientId" | "clientSecret"> {
  /** The client's id. */
  readonly clientId: SecretValue
  /** The client's secret. */
  readonly clientSecret: SecretValue
}

/** How to reach a cluster. */
export interface KafkaOptions extends Plain<Omit<KafkaJs.Options, "transport" | "ssl" | "sasl">> {
  /** The connections: those of kafkajs, or those of the package `@eventbus/kafka`, which must be installed then. Default `kafkajs`. */
  readonly transport?: ClusterTransport.Transport
  /** TLS. `true` trusts the authorities of Node.js. Default: none. */
  readonly ssl?: boolean | SslOptions
  /** Authentication. Default: none. */
  readonly sasl?: SaslPasswordOptions | SaslTokenOptions | SaslClientCredentialsOptions
}

/** A cluster that something else reaches, such as the one in memory of `@eventbus/node/testing`. */
export interface KafkaConnection {
  /** The `Broker` port of the core. */
  readonly broker: Broker.Broker["Service"]
}

/** Options of the producers behind `publish`. */
export type ProducerOptions = Plain<Broker.ProducerOptions>
