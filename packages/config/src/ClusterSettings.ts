/**
 * A cluster as a configuration describes it: what the options of a client adapter, such as `KafkaJs.layer`, take.
 */
import * as Fs from "node:fs/promises"
import { Effect, Redacted, Schema } from "effect"
import * as Addresses from "./internal/schema/addresses.ts"
import type * as Settings from "./Settings.ts"

/** The file of a secret, which could be read when the configuration was loaded, cannot be read any more. */
export class SecretFileUnreadable extends Schema.TaggedError<SecretFileUnreadable>()("SecretFileUnreadable", {
  path: Schema.String,
  code: Schema.String
}) {
  override get message(): string {
    return `The file '${this.path}' cannot be read (${this.code}).`
  }
}

/** A secret of the configuration; one that is in a file is read again whenever it is needed, so that it may be rotated. */
export type Secret = Redacted.Redacted<string> | Effect.Effect<Redacted.Redacted<string>, SecretFileUnreadable>

/** Certificates are PEM. */
export interface SslSettings {
  readonly ca?: string | Secret
  readonly cert?: string | Secret
  readonly key?: Secret
  readonly passphrase?: Secret
  readonly servername?: string
  readonly rejectUnauthorized: boolean
}

export interface PasswordSettings {
  readonly mechanism: "plain" | "scram-sha-256" | "scram-sha-512"
  readonly username: string
  readonly password: Secret
}

/** Tokens by the client credentials grant of OAuth 2. */
export interface ClientCredentialsSettings {
  readonly mechanism: "oauthbearer"
  readonly tokenEndpoint: string
  readonly clientId: string
  readonly clientSecret: Secret
  readonly scope?: string
  readonly credentialsIn?: "header" | "form"
}

/** One cluster, complete and frozen. Times in milliseconds. */
export interface ClusterSettings {
  readonly alias: string
  /** host:port, one or more. */
  readonly brokers: ReadonlyArray<string>
  readonly clientId: string
  readonly ssl?: true | SslSettings
  readonly sasl?: PasswordSettings | ClientCredentialsSettings
  readonly connectionTimeout: number
  readonly requestTimeout: number
  readonly retries: number
  readonly metadataMaxAge: number
}

/** host:port, several with commas; undefined where one of them is none. */
export const addresses: (text: string) => ReadonlyArray<string> | undefined = Addresses.parse

/** By alias, from what the schema decoded. */
export const complete = (alias: string, decoded: typeof Settings.Cluster.Type): ClusterSettings => {
  const { brokers, ssl, sasl, connectionTimeoutMs, requestTimeoutMs, metadataMaxAgeMs, clientId, retries } = decoded
  return {
    alias,
    brokers: (typeof brokers === "string" ? [brokers] : brokers).flatMap((each) => addresses(each) ?? []),
    clientId,
    ...(ssl === undefined || ssl === false ? {} : { ssl: ssl === true ? ssl : sslOf(ssl) }),
    ...(sasl === undefined ? {} : { sasl: saslOf(sasl) }),
    connectionTimeout: connectionTimeoutMs,
    requestTimeout: requestTimeoutMs,
    retries,
    metadataMaxAge: metadataMaxAgeMs
  }
}

const sslOf = (ssl: typeof Settings.Ssl.Type): SslSettings => {
  const { ca, caFile, cert, certFile, key, keyFile, passphrase, passphraseFile, ...plain } = ssl
  return {
    ...plain,
    ...withSecret("ca", ca, caFile),
    ...withSecret("cert", cert, certFile),
    ...withSecret("key", key, keyFile),
    ...withSecret("passphrase", passphrase, passphraseFile)
  }
}

/** The schema has seen to it that a mechanism has what it needs. */
const saslOf = (sasl: typeof Settings.Sasl.Type): PasswordSettings | ClientCredentialsSettings => {
  const { mechanism, username, password, passwordFile, clientSecret, clientSecretFile, ...token } = sasl
  const { tokenEndpoint, clientId, scope, credentialsIn } = token
  return mechanism === "oauthbearer"
    ? {
        mechanism,
        tokenEndpoint: tokenEndpoint!,
        clientId: clientId!,
        clientSecret: secretOf(clientSecret!, clientSecretFile),
        ...(scope === undefined ? {} : { scope }),
        ...(credentialsIn === undefined ? {} : { credentialsIn })
      }
    : { mechanism, username: username!, password: secretOf(password!, passwordFile) }
}

const withSecret = <K extends string, A extends string | Redacted.Redacted<string>>(
  name: K,
  value: A | undefined,
  file: string | undefined
): { readonly [P in K]?: A | Secret } =>
  value === undefined ? {} : ({ [name]: secretOf(value, file) } as { readonly [P in K]: A | Secret })

const secretOf = <A>(
  value: A,
  file: string | undefined
): A | Effect.Effect<Redacted.Redacted<string>, SecretFileUnreadable> => (file === undefined ? value : fromFile(file))

const fromFile = (path: string): Effect.Effect<Redacted.Redacted<string>, SecretFileUnreadable> =>
  Effect.tryPromise({
    try: () => Fs.readFile(path, "utf8"),
    catch: (thrown) => new SecretFileUnreadable({ path, code: (thrown as NodeJS.ErrnoException).code ?? "an error" })
  }).pipe(Effect.map((text) => Redacted.make(text.replace(/\r?\n$/, ""))))
