/** How to reach a cluster: the options of the public modules, and their defaults. */
import type * as Choices from "@eventbus/core/Choices"
import type { Time } from "@eventbus/core/Time"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { Secret, Text } from "../../Secret.ts"

/**
 * TLS. `true` trusts the certificate authorities of Node.js; `false` means no TLS. Values are read for each new connection, so a value that is a `Secret`
 * can be rotated; open connections stay open. The broker's certificate must name its host.
 */
export type Ssl =
  | boolean
  | {
      /** PEM of the certificate authorities to trust. Default: those of Node.js. Kafka: `ssl.truststore.certificates`. */
      readonly ca?: Text | ReadonlyArray<Text>
      /** PEM of the client's certificate chain, for mutual TLS. Default none. Kafka: `ssl.keystore.certificate.chain`. */
      readonly cert?: Text
      /** PEM of the client's private key. Default none. Kafka: `ssl.keystore.key`. */
      readonly key?: Secret
      /** Passphrase of an encrypted private key. Default none. Kafka: `ssl.key.password`. */
      readonly passphrase?: Secret
      /** Host that the broker's certificate must name. Default: the host in the broker's address. */
      readonly servername?: string
      /** `false` accepts every certificate: for experiments only. Default `true`. */
      readonly rejectUnauthorized?: boolean
    }

/** SASL with a user name and a password. */
export interface SaslPassword {
  /** Kafka: `sasl.mechanism`. PLAIN sends the password as it is, so use it with TLS only. */
  readonly mechanism: "plain" | "scram-sha-256" | "scram-sha-512"
  /** Read for each authentication. */
  readonly username: Text
  /** Read for each authentication. */
  readonly password: Secret
}

/** A bearer token of OAUTHBEARER. */
export interface Token {
  /** The token itself, usually a JWT. */
  readonly value: Redacted.Redacted<string>
  /**
   * Expiry in epoch milliseconds. The token is then reused, and replaced after 80 % of its life. Default: unknown, so a token is requested for each
   * authentication.
   */
  readonly expiresAt?: number
  /** SASL extensions (KIP-342), which some Kafka providers require. Default none. */
  readonly extensions?: Readonly<Record<string, string>>
}

/** SASL with a bearer token (KIP-255), which all connections share. */
export interface SaslToken {
  /** Kafka: `sasl.mechanism`. */
  readonly mechanism: "oauthbearer"
  /**
   * Returns a token that is valid now, within 10 seconds. At most one call runs at a time, however many connections wait. After a failure the next call
   * waits 100 ms, doubling up to 10 seconds; meanwhile connecting fails with `CredentialsUnavailable`, unless the last token is still valid.
   */
  readonly token: Effect.Effect<Redacted.Redacted<string> | Token, unknown>
}

/** The client credentials grant of an OAuth 2 server (RFC 6749, section 4.4). */
export interface ClientCredentials {
  /** URL of the token endpoint. Kafka: `sasl.oauthbearer.token.endpoint.url`. */
  readonly tokenEndpoint: string
  /** Read for each token request. */
  readonly clientId: Text
  /** Read for each token request. */
  readonly clientSecret: Secret
  /** The scope to request. Default: the server's default. */
  readonly scope?: string
  /** More fields of the form, such as `audience` or `resource`. Default none. */
  readonly parameters?: Readonly<Record<string, string>>
  /** Where to send id and secret: in the `Authorization` header, each form-encoded as the RFC says, or in the form. Default `header`. */
  readonly credentialsIn?: "header" | "form"
  /** SASL extensions of every token; see `Token`. Default none. */
  readonly extensions?: Readonly<Record<string, string>>
}

/** SASL with tokens of an OAuth 2 server; see `clientCredentials`. */
export interface SaslClientCredentials extends ClientCredentials {
  /** Kafka: `sasl.mechanism`. */
  readonly mechanism: "oauthbearer"
}

/** Authentication by SASL, by mechanism. A secret as plain text is refused, and so is a mechanism without its fields. */
export type Sasl = SaslPassword | SaslToken | SaslClientCredentials

/** How to reach a cluster. */
export interface Options {
  /**
   * The transport that a configuration names. A layer has one, and refuses the name of another: `KafkaJs.layer` is `kafkajs`, `Kafka.layer` is `kafka`. Default: that
   * of the layer.
   */
  readonly transport?: (typeof Choices.transport)[number]
  /**
   * Addresses as `host:port`, one or more; each address that a name stands for is tried. When one has not answered within a second, the next one is tried
   * as well, and the first answer counts. Kafka: `bootstrap.servers`.
   */
  readonly brokers: ReadonlyArray<string>
  /** Shown in broker logs and quotas. Default `eventbus`. Kafka: `client.id`. */
  readonly clientId?: string
  /** TLS. Default: none. */
  readonly ssl?: Ssl
  /** Authentication. Default: none. */
  readonly sasl?: Sasl
  /**
   * Longest time for one connection attempt, and for each answer until the connection is ready: that with the API versions, and those of the
   * authentication. Reading credentials may take up to 10 seconds more. Default 3 seconds. Kafka: `socket.connection.setup.timeout.ms`.
   */
  readonly connectionTimeout?: Time
  /** Longest time for one answer. Default 30 seconds. Kafka: `request.timeout.ms`. */
  readonly requestTimeout?: Time
  /**
   * How often connecting is repeated when no address can be reached, with pauses of 100 ms to 1 s. Wrong credentials are not repeated. A consumer, which
   * is started again anyway, does not repeat an attempt that took `connectionTimeout`. Default 3; 0 or more.
   */
  readonly retries?: number
  /**
   * How often consumers and producers look for new partitions of their topics. Consumers look for a missing topic every second. Default 10 seconds. Kafka:
   * `metadata.max.age.ms`.
   */
  readonly metadataMaxAge?: Time
}

/** Defaults of `Options`. */
export const defaults = {
  clientId: "eventbus",
  connectionTimeoutMillis: 3_000,
  requestTimeoutMillis: 30_000,
  retries: 3,
  metadataMaxAgeMillis: 10_000
} as const
