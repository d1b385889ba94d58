/** How to reach a cluster: the options of the public module, and their defaults. */
import type { Duration, Effect, Redacted } from "effect"

/** TLS: `true` trusts the authorities that Node.js knows. */
export type Ssl =
  | true
  | {
      /** PEM of the authorities to trust, instead of those that Node.js knows. `ssl.truststore`. */
      readonly ca?: string | ReadonlyArray<string>
      /** PEM of the client's certificate (mutual TLS). `ssl.keystore`. */
      readonly cert?: string
      /** PEM of the client's private key. */
      readonly key?: Redacted.Redacted<string>
      /** The host name that the certificate must name. Default: the broker's host. */
      readonly servername?: string
      /** `false` accepts every certificate: for experiments only. Default true. */
      readonly rejectUnauthorized?: boolean
    }

/** SASL, by mechanism. */
export type Sasl =
  | {
      readonly mechanism: "plain" | "scram-sha-256" | "scram-sha-512"
      readonly username: string
      readonly password: Redacted.Redacted<string>
    }
  | {
      readonly mechanism: "oauthbearer"
      /** Run for each authentication, also when the broker asks for it again (KIP-368): give a token that is valid at that moment. */
      readonly token: Effect.Effect<Redacted.Redacted<string>, unknown>
    }

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
