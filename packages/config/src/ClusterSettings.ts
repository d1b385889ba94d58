/**
 * The settings of a cluster as a configuration gives them. A client adapter, such as `KafkaJs.layer`, takes them as its options.
 */
import * as Fs from "node:fs/promises"
import type { Choices } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Addresses from "./internal/schema/addresses.ts"
import type * as ClusterSchema from "./internal/schema/clusterSchema.ts"

/** The file of a secret was readable when the configuration was loaded and cannot be read any more. */
export class SecretFileUnreadable extends Schema.TaggedError<SecretFileUnreadable>()("SecretFileUnreadable", {
  /** Absolute path of the file. */
  path: Schema.String,
  /** Error code of the operating system, such as `ENOENT`. */
  code: Schema.String
}) {
  override get message(): string {
    return `The file '${this.path}' cannot be read (${this.code}).`
  }
}

/** A secret of the configuration. A secret in a file is read again at each use, so that it can be rotated. */
export type Secret = Redacted.Redacted<string> | Effect.Effect<Redacted.Redacted<string>, SecretFileUnreadable>

/** Options of TLS. Certificates and keys are PEM. */
export interface SslSettings {
  /** Authorities to trust. Default: those of Node.js. */
  readonly ca?: string | Secret
  /** Certificate of the client, for mutual TLS. Default none. */
  readonly cert?: string | Secret
  /** Private key of the client. Default none. */
  readonly key?: Secret
  /** Passphrase of the private key. Default none. */
  readonly passphrase?: Secret
  /** Host name that the broker's certificate must have. Default: the broker's host. */
  readonly servername?: string
  /** Whether an untrusted certificate is refused. Default true. */
  readonly rejectUnauthorized: boolean
}

/** Authentication by user name and password (SASL PLAIN or SCRAM). */
export interface PasswordSettings {
  /** `sasl.mechanism` in lower case. */
  readonly mechanism: "plain" | "scram-sha-256" | "scram-sha-512"
  /** The user. */
  readonly username: string
  /** The user's password. */
  readonly password: Secret
}

/** Authentication by tokens (SASL OAUTHBEARER), which the client credentials grant of OAuth 2 issues. */
export interface ClientCredentialsSettings {
  /** `sasl.mechanism` in lower case. */
  readonly mechanism: "oauthbearer"
  /** URL of the token endpoint. */
  readonly tokenEndpoint: string
  /** The client's id at the authorization server. */
  readonly clientId: string
  /** The client's secret at the authorization server. */
  readonly clientSecret: Secret
  /** Scope of the tokens. Default: the server's own. */
  readonly scope?: string
  /** Part of the token request that carries id and secret. Default `header`. */
  readonly credentialsIn?: "header" | "form"
}

/** One cluster, complete and frozen. Times are in milliseconds. */
export interface ClusterSettings {
  /** Name of the cluster in the configuration; bindings refer to it. */
  readonly alias: string
  /** `bootstrap.servers`: one or more host:port. */
  readonly brokers: ReadonlyArray<string>
  /** The connections, where the configuration names them. `ClusterTransport.layer` opens those, or kafkajs's. A layer of an adapter refuses the name of another one. */
  readonly transport?: (typeof Choices.transport)[number]
  /** `client.id`. Default `eventbus`. */
  readonly clientId: string
  /** TLS; true trusts the authorities of Node.js. Default: no TLS. */
  readonly ssl?: true | SslSettings
  /** Authentication. Default none. */
  readonly sasl?: PasswordSettings | ClientCredentialsSettings
  /** Longest time for one connection attempt, in ms. Default 3000. */
  readonly connectionTimeout: number
  /** `request.timeout.ms`, in ms. Default 30000. */
  readonly requestTimeout: number
  /** Number of connection retries before connecting fails. Default 3. */
  readonly retries: number
  /** `metadata.max.age.ms`, in ms. Default 10000. */
  readonly metadataMaxAge: number
}

/** Parses host:port, several separated by commas. Undefined when one of them is not host:port. */
export const addresses: (text: string) => ReadonlyArray<string> | undefined = Addresses.parse

/** Settings of one cluster from the decoded configuration. */
export const complete = (alias: string, decoded: typeof ClusterSchema.Cluster.Type): ClusterSettings => {
  const { brokers, transport, ssl, sasl, connectionTimeoutMs, requestTimeoutMs, metadataMaxAgeMs, clientId, retries } =
    decoded
  return {
    alias,
    brokers: (typeof brokers === "string" ? [brokers] : brokers).flatMap((each) => addresses(each) ?? []),
    ...(transport === undefined ? {} : { transport }),
    clientId,
    ...(ssl === undefined || ssl === false ? {} : { ssl: ssl === true ? ssl : sslOf(ssl) }),
    ...(sasl === undefined ? {} : { sasl: saslOf(sasl) }),
    connectionTimeout: connectionTimeoutMs,
    requestTimeout: requestTimeoutMs,
    retries,
    metadataMaxAge: metadataMaxAgeMs
  }
}

const sslOf = (ssl: typeof ClusterSchema.Ssl.Type): SslSettings => {
  const { ca, caFile, cert, certFile, key, keyFile, passphrase, passphraseFile, ...plain } = ssl
  return {
    ...plain,
    ...withSecret("ca", ca, caFile),
    ...withSecret("cert", cert, certFile),
    ...withSecret("key", key, keyFile),
    ...withSecret("passphrase", passphrase, passphraseFile)
  }
}

/** The schema has checked that each mechanism has its keys. */
const saslOf = (sasl: typeof ClusterSchema.Sasl.Type): PasswordSettings | ClientCredentialsSettings => {
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
