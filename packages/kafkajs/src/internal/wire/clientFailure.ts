/**
 * Failures below the Broker port. Anything that kafkajs throws, and any error code of a broker, becomes a `ClientFailure` with one name for
 * what happened; code in this package decides on those names only. `connection/brokerErrors.ts` turns them into the port's errors.
 */
import * as Effect from "effect/Effect"
import { errorCodes } from "./kafkajsInternals.ts"

/** A failure below the port. `type` is Kafka's error name where a broker answered, else one of the `Local` names. */
export interface ClientFailure {
  readonly _tag: "ClientFailure"
  readonly type: string
  readonly detail: string
  /** How long the client waited for an answer, in milliseconds, where none came. */
  readonly waitedMillis?: number
}

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

const localNames = new Set<string>(Object.values(Local))

/** True when no broker answered: the outcome of the request is unknown. */
export const isLocal = (type: string): boolean => localNames.has(type)

const names = new Map(errorCodes.map(({ code, type }) => [code, type]))
// kafkajs 2.2.4 does not know these codes.
names.set(89, "THROTTLING_QUOTA_EXCEEDED").set(90, "PRODUCER_FENCED").set(100, "UNKNOWN_TOPIC_ID")

/** An error that carries a failure through kafkajs. `retriable: false` keeps kafkajs from repeating the call. */
export const thrownFailure = ({ type, detail }: ClientFailure): Error =>
  Object.assign(new Error(detail), { type, retriable: false })

/** The failure of a broker's error code; undefined for 0, which is success. */
export const failureOfCode = (code: number, detail?: string | null): ClientFailure | undefined =>
  code === 0
    ? undefined
    : failure(names.get(code) ?? `KAFKA_ERROR_${code}`, detail ?? `the broker answered error ${code}`)

/** Fails with the first of the codes that is an error. */
export const check = (...codes: ReadonlyArray<number | undefined>): Effect.Effect<void, ClientFailure> => {
  const first = codes.find((code) => code !== undefined && code !== 0)
  return first === undefined ? Effect.void : Effect.fail(failureOfCode(first)!)
}

const tlsCodes =
  /^(ERR_TLS|ERR_SSL|EPROTO|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|CERT_|CRL_|INVALID_CA|HOSTNAME_MISMATCH|PATH_LENGTH|INVALID_PURPOSE)/
const connectionNames = new Set([
  "KafkaJSConnectionError",
  "KafkaJSConnectionClosedError",
  "KafkaJSBrokerNotFound",
  "KafkaJSNoBrokerAvailableError",
  "KafkaJSLockTimeout"
])

const stringField = (error: object, name: "type" | "code"): string | undefined => {
  const value: unknown = Reflect.get(error, name)
  return typeof value === "string" ? value : undefined
}

const named = (error: Error): ClientFailure | undefined => {
  const type = stringField(error, "type")
  if (error.name === "KafkaJSSASLAuthenticationError" || type?.startsWith("SASL") || type?.endsWith("SASL_MECHANISM")) {
    return failure(Local.authentication, error.message)
  }
  if (type === "ILLEGAL_SASL_STATE") return failure(Local.authentication, "the listener wants no authentication")
  if (type !== undefined) return failure(type, error.message)
  const code = stringField(error, "code")
  if (code !== undefined && tlsCodes.test(code)) return failure(Local.tls, error.message)
  if (error.name === "KafkaJSRequestTimeoutError") {
    const sentAt: unknown = Reflect.get(error, "sentAt")
    return {
      ...failure(Local.timeout, error.message),
      ...(typeof sentAt === "number" && { waitedMillis: Date.now() - sentAt })
    }
  }
  if (connectionNames.has(error.name) || code !== undefined) return failure(Local.connection, error.message)
  return undefined
}

/** Names what was thrown. kafkajs wraps the reason in other errors, so the chain of causes is searched for the first one with a name. */
export const clientFailure = (thrown: unknown): ClientFailure => {
  const seen = new Set<unknown>()
  for (let error = thrown; error instanceof Error && !seen.has(error); error = error.cause) {
    seen.add(error)
    const found = named(error)
    if (found !== undefined) return found
  }
  return failure(Local.client, thrown instanceof Error ? thrown.message : String(thrown))
}

/** A defect as a failure, for fibers that live long: one that died of it in silence would leave its session, or its records, waiting for ever. */
export const defectAsFailure = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | ClientFailure, R> =>
  Effect.catchDefect(effect, (defect) => Effect.fail(clientFailure(defect)))

const coordinatorTypes = new Set<string>([
  Local.connection,
  "NOT_COORDINATOR_FOR_GROUP",
  "NOT_COORDINATOR",
  "GROUP_COORDINATOR_NOT_AVAILABLE",
  "COORDINATOR_NOT_AVAILABLE",
  "GROUP_LOAD_IN_PROGRESS",
  "COORDINATOR_LOAD_IN_PROGRESS",
  "CONCURRENT_TRANSACTIONS",
  "UNSTABLE_OFFSET_COMMIT"
])

/** True when the coordinator must be looked up again. */
export const isCoordinatorFailure = (type: string): boolean => coordinatorTypes.has(type)

/** True when a newer producer owns the transactional id. */
export const isFenced = (type: string): boolean => type === "PRODUCER_FENCED" || type === "INVALID_PRODUCER_EPOCH"
