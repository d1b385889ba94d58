/**
 * A cluster as a configuration describes it: what the options of a client adapter, such as `KafkaJs.layer`, take.
 */
import type { Redacted } from "effect"
import type * as Settings from "./Settings.ts"

/** Certificates are PEM. */
export interface SslSettings {
  readonly ca?: string
  readonly cert?: string
  readonly key?: Redacted.Redacted<string>
  readonly passphrase?: Redacted.Redacted<string>
  readonly servername?: string
  readonly rejectUnauthorized: boolean
}

export interface SaslSettings {
  readonly mechanism: "plain" | "scram-sha-256" | "scram-sha-512"
  readonly username: string
  readonly password: Redacted.Redacted<string>
}

/** One cluster, complete and frozen. Times in milliseconds. */
export interface ClusterSettings {
  readonly alias: string
  /** host:port, one or more. */
  readonly brokers: ReadonlyArray<string>
  readonly clientId: string
  readonly ssl?: true | SslSettings
  readonly sasl?: SaslSettings
  readonly connectionTimeout: number
  readonly requestTimeout: number
  readonly retries: number
  readonly metadataMaxAge: number
}

/** By alias, from what the schema decoded. */
export const complete = (alias: string, decoded: typeof Settings.Cluster.Type): ClusterSettings => {
  const { brokers, ssl, sasl, connectionTimeoutMs, requestTimeoutMs, metadataMaxAgeMs, clientId, retries } = decoded
  return {
    alias,
    brokers: (typeof brokers === "string" ? [brokers] : brokers)
      .flatMap((each) => each.split(","))
      .map((each) => each.trim())
      .filter((each) => each !== ""),
    clientId,
    ...(ssl === undefined || ssl === false ? {} : { ssl }),
    ...(sasl === undefined ? {} : { sasl }),
    connectionTimeout: connectionTimeoutMs,
    requestTimeout: requestTimeoutMs,
    retries,
    metadataMaxAge: metadataMaxAgeMs
  }
}
