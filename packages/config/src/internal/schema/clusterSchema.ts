/**
 * How to reach a cluster: the keys below an alias of `eventbus.clusters`.
 */
import { Choices, Ranges } from "@eventbus/core"
import * as Schema from "effect/Schema"
import { addresses, duration, flag, httpUrl, oneOf, secret, section, text, whole, withDefault } from "./leaves.ts"

/** A key that may be absent, without a value then. */
const optional = Schema.optionalKey

/** The twin of a key, which takes the path of a file with its value, relative to the configuration. */
const fileWith = (key: string) => optional(text(`A file with the ${key}; a line break at its end is left out.`))

const pem = (description: string) => text(`${description} PEM.`)

/** TLS to the brokers. */
export const Ssl = section("TLS.", {
  ca: optional(pem("The authorities to trust, instead of those that Node.js knows.")),
  cert: optional(pem("The client's certificate (mutual TLS).")),
  key: optional(secret("The client's private key. PEM.")),
  caFile: fileWith("ca"),
  certFile: fileWith("cert"),
  keyFile: fileWith("key"),
  passphraseFile: fileWith("passphrase"),
  passphrase: optional(secret("Of the private key.")),
  servername: optional(text("The host name that the certificate must name. Default: the broker's host.")),
  rejectUnauthorized: flag("false accepts every certificate: for experiments only.").pipe(withDefault(true))
})

const password = ["username", "password"] as const
const clientCredentials = ["tokenEndpoint", "clientId", "clientSecret"] as const

/** Authentication. */
export const Sasl = section("How to authenticate.", {
  mechanism: oneOf("The mechanism.", Choices.saslMechanism),
  username: optional(text("The user. Of plain and scram, required.")),
  password: optional(secret("The user's password. Of plain and scram, required.")),
  tokenEndpoint: optional(
    httpUrl("Where tokens come from, by the client credentials grant. Of oauthbearer, required.")
  ),
  clientId: optional(text("The client's id. Of oauthbearer, required.")),
  clientSecret: optional(secret("The client's secret. Of oauthbearer, required.")),
  scope: optional(text("The scope of tokens. Of oauthbearer. Default: the server's own.")),
  credentialsIn: optional(
    oneOf("Where the server wants id and secret. Of oauthbearer. Default header.", ["header", "form"])
  ),
  passwordFile: fileWith("password"),
  clientSecretFile: fileWith("clientSecret")
}).check(
  Schema.makeFilter(({ mechanism, ...keys }) => {
    const isToken = mechanism === "oauthbearer"
    const others = isToken ? password : [...clientCredentials, "scope" as const, "credentialsIn" as const]
    return [
      ...(isToken ? clientCredentials : password)
        .filter((key) => keys[key] === undefined)
        .map((key) => ({ path: [key], issue: `a text, which mechanism ${mechanism} needs, or ${key}File` })),
      ...others
        .filter((key) => keys[key] !== undefined)
        .map((key) => ({ path: [key], issue: `no such key with mechanism ${mechanism}` }))
    ]
  })
)

/** How to reach a cluster. */
export const Cluster = section("One Kafka cluster.", {
  brokers: Schema.Union([
    addresses("`bootstrap.servers`: host:port, several with commas."),
    Schema.Array(addresses("host:port, several with commas.")).check(Schema.isMinLength(1))
  ]).annotate({ description: "`bootstrap.servers`: one or more host:port." }),
  transport: optional(
    oneOf(
      "The connections: kafkajs's, or those of the package @eventbus/kafka. A program may open its own layer instead, which refuses another name than its own. Default kafkajs.",
      Choices.transport
    )
  ),
  clientId: text("`client.id`.").pipe(withDefault("eventbus")),
  ssl: optional(
    Schema.Union([flag("true trusts the authorities that Node.js knows."), Ssl]).annotate({
      description: "TLS. Default: none."
    })
  ),
  sasl: optional(Sasl),
  connectionTimeoutMs: duration("How long one connection attempt may take.", Ranges.cluster.connectionTimeout).pipe(
    withDefault(3_000)
  ),
  requestTimeoutMs: duration("`request.timeout.ms`.", Ranges.cluster.requestTimeout).pipe(withDefault(30_000)),
  retries: whole("How often connecting is repeated before it fails.", Ranges.cluster.retries).pipe(withDefault(3)),
  metadataMaxAgeMs: duration("`metadata.max.age.ms`.", Ranges.cluster.metadataMaxAge).pipe(withDefault(10_000))
})
