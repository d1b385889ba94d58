/**
 * Failures below the Broker port. Anything that a transport throws, and any error code of a broker, becomes a `ClientFailure` with one name for what
 * happened; the client decides on those names only, and turns them into the port's errors.
 */

/** A failure below the port. */
export interface ClientFailure {
  readonly _tag: "ClientFailure"
  /** Kafka's name of the error where a broker answered, else one of the `Local` names. */
  readonly type: string
  /** The reason, for people. */
  readonly detail: string
  /** How long the client waited for an answer, in milliseconds, where none came. */
  readonly waitedMillis?: number
}

/** Makes a failure. */
export const failure = (type: string, detail: string): ClientFailure => ({ _tag: "ClientFailure", type, detail })

/** Names of failures in which no broker answered. */
export const Local = {
  connection: "CONNECTION",
  timeout: "REQUEST_TIMEOUT",
  tls: "TLS",
  authentication: "AUTHENTICATION",
  /** A secret or a token is not available. */
  credentials: "CREDENTIALS",
  client: "CLIENT"
} as const

/** The detail of a `connection` failure where a node did not accept the connection in time. */
export const notAccepted = "Connection timeout"

const localNames = new Set<string>(Object.values(Local))

/** True when no broker answered: the outcome of the request is unknown. */
export const isLocal = (type: string): boolean => localNames.has(type)

const isClientFailure = (thrown: unknown): thrown is ClientFailure =>
  typeof thrown === "object" && thrown !== null && Reflect.get(thrown, "_tag") === "ClientFailure"

const tlsCodes =
  /^(ERR_TLS|ERR_SSL|EPROTO|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|CERT_|CRL_|INVALID_CA|HOSTNAME_MISMATCH|PATH_LENGTH|INVALID_PURPOSE)/

/** Where every address of a name refuses, Node throws their errors together, without a text of its own. */
const textOf = (error: Error): string => {
  const errors: unknown = Reflect.get(error, "errors")
  if (error.message !== "" || !Array.isArray(errors)) return error.message
  return errors.map((each: unknown) => (each instanceof Error ? each.message : String(each))).join("; ")
}

/** The failure that an error of Node's sockets means; undefined for an error without a code. */
export const ofSocketError = (error: Error): ClientFailure | undefined => {
  const code: unknown = Reflect.get(error, "code")
  if (typeof code !== "string") return undefined
  return failure(tlsCodes.test(code) ? Local.tls : Local.connection, textOf(error))
}

/**
 * Names what was thrown. An error may wrap its reason in other errors, so the chain of causes is searched for the first one with a name.
 * `named`: how a library's own errors are named.
 */
export const fromThrown = (
  thrown: unknown,
  named: (error: Error) => ClientFailure | undefined = ofSocketError
): ClientFailure => {
  if (isClientFailure(thrown)) return thrown
  const seen = new Set<unknown>()
  for (let error = thrown; error instanceof Error && !seen.has(error); error = error.cause) {
    seen.add(error)
    const found = named(error)
    if (found !== undefined) return found
  }
  return failure(Local.client, thrown instanceof Error ? thrown.message : String(thrown))
}
