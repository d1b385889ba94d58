/** Checks the options of a cluster before anything uses them. No problem shows a secret: what stands in `ssl` and `sasl` is named by its kind alone. */
import { Choices, Kinds, Ranges } from "@eventbus/core"

/** A text, a secret, or an effect that gives one. Messages do not show it. */
const secret: Kinds.Kind = (path, found) => {
  const isSecret = typeof found === "string" || Kinds.object(path, found).length === 0
  return isSecret
    ? []
    : [{ path, found: `a value of type ${typeof found}`, allowed: "a text, a Redacted, or an Effect" }]
}

/** An object; what stands in it is not shown. */
const section: typeof Kinds.struct = (optional, required, allowed) => (path, found) =>
  Kinds.object(path, found).length === 0
    ? Kinds.struct(optional, required)(path, found)
    : [{ path, found: `a value of type ${typeof found}`, allowed: allowed ?? "an object of settings" }]

const ssl = section(
  {
    ca: (path, found) => (Array.isArray(found) ? Kinds.listOf(secret)(path, found) : secret(path, found)),
    ...{ cert: secret, key: secret, passphrase: secret },
    servername: Kinds.string,
    rejectUnauthorized: Kinds.flag
  },
  {},
  "true, false, or an object of settings"
)

const options = {
  ...Ranges.cluster,
  clientId: Kinds.string,
  ssl: (path: string, found: unknown) => (typeof found === "boolean" ? [] : ssl(path, found)),
  sasl: section({}, { mechanism: Kinds.oneOf(Choices.saslMechanism) })
}

const brokers: Kinds.Kind = (path, found) =>
  Array.isArray(found) && found.length > 0
    ? Kinds.listOf(Kinds.name)(path, found)
    : Kinds.make("a list of one or more addresses, host:port", () => false)(path, found)

/** Throws `ConfigurationValidation` with everything that is wrong. */
export const check = (given: unknown): void => Kinds.refuse(Kinds.struct(options, { brokers })("KafkaJs", given))
