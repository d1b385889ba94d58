/** Checks the options of a cluster before anything uses them. No problem shows a secret: what stands in `ssl` and `sasl` is named by its kind alone. */
import { Choices, type EventBusError, Kinds, Ranges } from "@eventbus/core"
import * as Effect from "effect/Effect"

type Issues = ReadonlyArray<EventBusError.ConfigurationIssue>

const ssl = Kinds.section(
  {
    ca: (path, found) =>
      Array.isArray(found) ? Kinds.listOf(Kinds.textOrSecret)(path, found) : Kinds.textOrSecret(path, found),
    ...{ cert: Kinds.textOrSecret, key: Kinds.secret, passphrase: Kinds.secret },
    servername: Kinds.string,
    rejectUnauthorized: Kinds.flag
  },
  {},
  "true, false, or an object of settings"
)

const text = Kinds.hidden("a text", (value) => typeof value === "string")
const texts = Kinds.recordOf(text, "an object of texts")

const byPassword = Kinds.struct({}, { username: Kinds.textOrSecret, password: Kinds.secret })

const byToken = Kinds.struct(
  {},
  {
    token: Kinds.hidden(
      "an Effect of a Redacted or of a Token, or else tokenEndpoint, clientId and clientSecret",
      Effect.isEffect
    )
  }
)

const byClientCredentials = Kinds.struct(
  {
    scope: text,
    parameters: texts,
    credentialsIn: Kinds.oneOf(["header", "form"]),
    extensions: texts
  },
  { tokenEndpoint: Kinds.httpUrl, clientId: Kinds.textOrSecret, clientSecret: Kinds.secret }
)

/** Each mechanism has fields of its own. A token comes either from `token` or from `tokenEndpoint`. */
const sasl: Kinds.Kind = (path, found) => {
  const general = Kinds.section({}, { mechanism: Kinds.oneOf(Choices.saslMechanism) })(path, found)
  if (general.length > 0) return general
  const given = found as Readonly<Record<string, unknown>>
  if (given["mechanism"] !== "oauthbearer") return byPassword(path, found)
  if (given["tokenEndpoint"] === undefined) return byToken(path, found)
  return given["token"] === undefined ? byClientCredentials(path, found) : twoSources(path)
}

const twoSources = (path: string): Issues => [
  { path: `${path}.token`, found: "a token beside tokenEndpoint", allowed: "one of the two" }
]

const options = {
  ...Ranges.cluster,
  clientId: Kinds.string,
  ssl: (path: string, found: unknown) => (typeof found === "boolean" ? [] : ssl(path, found)),
  sasl
}

const brokers: Kinds.Kind = (path, found) =>
  Array.isArray(found) && found.length > 0
    ? Kinds.listOf(Kinds.address)(path, found)
    : Kinds.hidden("a list of one or more addresses, host:port", () => false)(path, found)

/** Throws `ConfigurationValidation` with everything that is wrong. `name`: the options, in messages. `transport`: the one that may be named. */
export const check = (name: string, transport: string, given: unknown): void =>
  Kinds.refuse(Kinds.section({ ...options, transport: Kinds.oneOf([transport]) }, { brokers })(name, given))
