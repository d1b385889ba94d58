/** Makes the brokers of the core from plain options. */

import { hostname } from "node:os"
import * as ClusterTransport from "@eventbus/config/ClusterTransport"
import { Broker, Clusters, type EventBusError, Hostname } from "@eventbus/core"
import type { KafkaJs } from "@eventbus/kafkajs"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { KafkaConnection, KafkaOptions, SecretValue, SslOptions, TokenValue } from "../KafkaOptions.ts"
import { millisOf } from "./millisOf.ts"
import * as PromiseCall from "./promiseCall.ts"

/**
 * The clusters by alias. One that is called `default` is that of consumers that name none. Building it loads the transport of each, fails when its package is not installed, and throws
 * `ConfigurationValidation` for options of another kind.
 */
export const layer = (
  clusters: ReadonlyArray<readonly [alias: string, KafkaOptions | KafkaConnection]>
): Layer.Layer<Broker.Broker, EventBusError.ConfigurationValidation> =>
  Layer.unwrap(Effect.sync(() => Clusters.layerMap(new Map(clusters.map(([alias, options]) => [alias, one(options)])))))

const one = (
  options: KafkaOptions | KafkaConnection
): Layer.Layer<Broker.Broker, EventBusError.ConfigurationValidation> =>
  "broker" in options
    ? Layer.merge(Layer.succeed(Broker.Broker, options.broker), Layer.sync(Hostname.Hostname, hostname))
    : ClusterTransport.layer(plain(options))

const plain = ({
  ssl,
  sasl,
  connectionTimeout,
  requestTimeout,
  metadataMaxAge,
  ...rest
}: KafkaOptions): KafkaJs.Options => ({
  ...rest,
  ...(connectionTimeout === undefined ? {} : { connectionTimeout: millisOf(connectionTimeout) }),
  ...(requestTimeout === undefined ? {} : { requestTimeout: millisOf(requestTimeout) }),
  ...(metadataMaxAge === undefined ? {} : { metadataMaxAge: millisOf(metadataMaxAge) }),
  ...(ssl === undefined ? {} : { ssl: typeof ssl === "object" ? sslOf(ssl) : ssl }),
  ...(sasl === undefined ? {} : { sasl: saslOf(sasl) })
})

const sslOf = ({ ca, cert, key, passphrase, ...rest }: SslOptions): KafkaJs.Ssl => ({
  ...rest,
  ...(ca === undefined ? {} : { ca: typeof ca === "object" ? ca : secret(ca) }),
  ...(cert === undefined ? {} : { cert: secret(cert) }),
  ...(key === undefined ? {} : { key: secret(key) }),
  ...(passphrase === undefined ? {} : { passphrase: secret(passphrase) })
})

const saslOf = (sasl: NonNullable<KafkaOptions["sasl"]>): KafkaJs.Sasl => {
  if ("token" in sasl) {
    const token = Effect.map(PromiseCall.fromPromise(sasl.token), (value) => tokenOf(value as string | TokenValue))
    return { mechanism: sasl.mechanism, token }
  }
  return "password" in sasl
    ? { mechanism: sasl.mechanism, username: secret(sasl.username), password: secret(sasl.password) }
    : { ...sasl, clientId: secret(sasl.clientId), clientSecret: secret(sasl.clientSecret) }
}

const tokenOf = (token: string | TokenValue): Redacted.Redacted<string> | KafkaJs.Token =>
  typeof token === "string" ? Redacted.make(token) : { ...token, value: Redacted.make(token.value) }

/** A value that is no text stays as it is, so that the adapter refuses it by the name of its option. */
const secret = (value: SecretValue): Redacted.Redacted<string> | Effect.Effect<Redacted.Redacted<string>, unknown> => {
  if (typeof value === "string") return Redacted.make(value)
  if (typeof value !== "function") return value
  return Effect.map(PromiseCall.fromPromise(value), (text) => Redacted.make(text as string))
}
