/** How to reach a cluster: the options of the public module, and their defaults. */
import type { Duration, Effect, Redacted } from "effect"
import type { Secret, Text } from "../../Secret.ts"

/**
 * TLS: `true` trusts the authorities that Node.js knows, `false` is none. Read for each new connection, so what is given as a `Secret` may be rotated; a
 * connection that is open stays. The broker's certificate must name the host that is connected to.
 */
export type Ssl =
  | boolean
  | {
      /** PEM of the authorities to trust, instead of those that Node.js knows. `ssl.truststore`. */
      readonly ca?: Text | ReadonlyArray<Text>
      /** PEM of the client's certificate, with the authorities between it and a known one (mutual TLS). `ssl.keystore.certificate.chain`. */
      readonly cert?: Text
      /** PEM of the client's private key. `ssl.keystore.key`. */
      readonly key?: Secret
      /** Of an encrypted private key. `ssl.key.password`. */
      readonly passphrase?: Secret
      /** The host name that the certificate must name. Default: the broker's host. */
      readonly servername?: string
      /** `false` accepts every certificate: for experiments only. Default true. */
      readonly rejectUnauthorized?: boolean
    }

/** SASL with a user name and a password. Both are read for each authentication. */
export interface SaslPassword {
  readonly mechanism: "plain" | "scram-sha-256" | "scram-sha-512"
  readonly username: Text
  readonly password: Secret
}

/** A bearer token of OAUTHBEARER. */
export interface Token {
  readonly value: Redacted.Redacted<string>
  /** Epoch milliseconds. With it the token is kept, and asked for anew after four fifths of its life. Default: asked for at each authentication. */
  readonly expiresAt?: number
  /** SASL extensions (KIP-342), as some providers of Kafka want them. Default none. */
  readonly extensions?: Readonly<Record<string, string>>
}

/** SASL with a bearer token, which all connections share. */
export interface SaslToken {
  readonly mechanism: "oauthbearer"
  /**
   * Gives a token that is valid now. Runs once at a time, also when many connections wait for it; within 10 seconds. After a failure it rests for
   * 100 ms, doubling up to 10 seconds; meanwhile connecting fails with `CredentialsUnavailable`, unless the last token is still valid.
   */
  readonly token: Effect.Effect<Redacted.Redacted<string> | Token, unknown>
}

/** How to get tokens from an OAuth 2 server by the client credentials grant (RFC 6749, section 4.4). */
export interface ClientCredentials {
  /** `sasl.oauthbearer.token.endpoint.url`. */
  readonly tokenEndpoint: string
  readonly clientId: Text
  /** Read for each token. */
  readonly clientSecret: Secret
  /** Default: the server's own. */
  readonly scope?: string
  /** More fields of the form, such as `audience` or `resource`. Default none. */
  readonly parameters?: Readonly<Record<string, string>>
  /** Where the server wants id and secret: the `Authorization` header (each form-encoded, as the RFC says), or the form. Default `header`. */
  readonly credentialsIn?: "header" | "form"
  /** See `Token`. */
  readonly extensions?: Readonly<Record<string, string>>
}

/** SASL with tokens of an OAuth 2 server, see `clientCredentials`. */
export interface SaslClientCredentials extends ClientCredentials {
  readonly mechanism: "oauthbearer"
}

/** SASL, by mechanism. */
export type Sasl = SaslPassword | SaslToken | SaslClientCredentials

/** How to reach a cluster. */
export interface Options {
  /** `bootstrap.servers` as host:port, one or more. */
  readonly brokers: ReadonlyArray<string>
  /** `client.id`, shown in broker logs and quotas. Default `eventbus`. */
  readonly clientId?: string
  /** Default: no TLS. */
  readonly ssl?: Ssl
  /** Default: no authentication. */
  readonly sasl?: Sasl
  /** `socket.connection.setup.timeout.ms`: how long one connection attempt may take, and authentication on it. Default 3 seconds. */
  readonly connectionTimeout?: Duration.Input
  /** `request.timeout.ms`: how long an answer may take. Default 30 seconds. */
  readonly requestTimeout?: Duration.Input
  /** How often connecting is repeated (pauses of 100 ms to 1 s) before it fails. Wrong credentials are not repeated. Default 3. */
  readonly retries?: number
  /** `metadata.max.age.ms`: how often consumers and producers look for new partitions of their topics. A topic that is missing is looked for every second. Default 10 seconds. */
  readonly metadataMaxAge?: Duration.Input
}

export const defaults = {
  clientId: "eventbus",
  connectionTimeoutMillis: 3_000,
  requestTimeoutMillis: 30_000,
  retries: 3,
  metadataMaxAgeMillis: 10_000
} as const
