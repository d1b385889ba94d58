/**
 * From what kafkajs throws, or a broker answers, to a `BrokerError`.
 *
 * Two steps: anything thrown becomes a `ClientFailure` with one name for what happened (`clientFailure`, `failureOfCode`), and at
 * the port that name becomes the error that a caller sees (`brokerError`). In between code decides on names only.
 */
import { BrokerError } from "@eventbus/core"
import { Effect } from "effect"
import { errorCodes } from "./kafkajsInternals.ts"

/** A failure below the port. `type` is Kafka's error name where a broker answered, else one of the `Local` names. */
export interface ClientFailure {
  readonly _tag: "ClientFailure"
  readonly type: string
  readonly detail: string
}

export const failure = (type: string, detail: string): ClientFailure => ({ _tag: "ClientFailure", type, detail })

/** Names of failures in which no broker answered. */
export const Local = {
  connection: "CONNECTION",
  timeout: "REQUEST_TIMEOUT",
  tls: "TLS",
  authentication: "AUTHENTICATION",
  /** A secret or token could not be had. */
  credentials: "CREDENTIALS",
  client: "CLIENT"
} as const

const localNames = new Set<string>(Object.values(Local))

/** True when no broker answered, so nothing is known of what was asked. */
export const isLocal = (type: string): boolean => localNames.has(type)

const names = new Map(errorCodes.map(({ code, type }) => [code, type]))
// newer than kafkajs 2.2.4
names.set(89, "THROTTLING_QUOTA_EXCEEDED").set(90, "PRODUCER_FENCED").set(100, "UNKNOWN_TOPIC_ID")

/** A failure of ours on its way through kafkajs, which repeats nothing that is not `retriable`. */
export const thrownFailure = ({ type, detail }: ClientFailure): Error =>
  Object.assign(new Error(detail), { type, retriable: false })

/** Kafka's name of an error code; undefined for 0, which is success. */
export const failureOfCode = (code: number, detail?: string | null): ClientFailure | undefined =>
  code === 0
    ? undefined
    : failure(names.get(code) ?? `KAFKA_ERROR_${code}`, detail ?? `the broker answered error ${code}`)

/** Fails when one of the codes is an error: with the first. */
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
  if (error.name === "KafkaJSRequestTimeoutError") return failure(Local.timeout, error.message)
  if (connectionNames.has(error.name) || code !== undefined) return failure(Local.connection, error.message)
  return undefined
}

/** Names what was thrown: kafkajs wraps the reason in others, so the chain of causes is searched for the first that says something. */
export const clientFailure = (thrown: unknown): ClientFailure => {
  const seen = new Set<unknown>()
  for (let error = thrown; error instanceof Error && !seen.has(error); error = error.cause) {
    seen.add(error)
    const found = named(error)
    if (found !== undefined) return found
  }
  return failure(Local.client, thrown instanceof Error ? thrown.message : String(thrown))
}

/** What a failure was about, as far as the caller knows it. */
export interface Subject {
  readonly operation: string
  readonly topic?: string
  readonly partition?: number
  readonly bytes?: number
  readonly groupId?: string
  readonly groupInstanceId?: string | undefined
  readonly transactionalId?: string
  /** How long the operation waited, for `RequestTimedOut`. */
  readonly millis?: number
}

/** Facts of the connection that error messages name. */
export interface Connection {
  readonly brokers: ReadonlyArray<string>
  readonly mechanism: string
  readonly requestTimeoutMillis: number
}

const coordinatorTypes = new Set([
  "NOT_COORDINATOR_FOR_GROUP",
  "NOT_COORDINATOR",
  "GROUP_COORDINATOR_NOT_AVAILABLE",
  "COORDINATOR_NOT_AVAILABLE",
  "GROUP_LOAD_IN_PROGRESS",
  "COORDINATOR_LOAD_IN_PROGRESS",
  "CONCURRENT_TRANSACTIONS",
  "UNSTABLE_OFFSET_COMMIT"
])
const retryableTypes = new Set([
  "LEADER_NOT_AVAILABLE",
  "NOT_LEADER_FOR_PARTITION",
  "REPLICA_NOT_AVAILABLE",
  "BROKER_NOT_AVAILABLE",
  "NETWORK_EXCEPTION",
  "NOT_ENOUGH_REPLICAS",
  "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
  "NOT_CONTROLLER",
  "KAFKA_STORAGE_ERROR",
  "FENCED_LEADER_EPOCH",
  "UNKNOWN_LEADER_EPOCH",
  "OFFSET_NOT_AVAILABLE",
  "THROTTLING_QUOTA_EXCEEDED",
  "UNKNOWN_TOPIC_ID"
])

/** True when the coordinator has to be looked up again. */
export const isCoordinatorFailure = (type: string): boolean => coordinatorTypes.has(type) || type === Local.connection

/** True when a newer producer has the transactional id. */
export const isFenced = (type: string): boolean => type === "PRODUCER_FENCED" || type === "INVALID_PRODUCER_EPOCH"

const authorization = (type: string, subject: Subject): BrokerError.BrokerError | undefined => {
  const denied = (resource: BrokerError.AuthorizationFailed["resource"], name: string | undefined) =>
    new BrokerError.AuthorizationFailed({ resource, name: name ?? "", operation: subject.operation })
  switch (type) {
    case "TOPIC_AUTHORIZATION_FAILED":
      return denied("topic", subject.topic)
    case "GROUP_AUTHORIZATION_FAILED":
      return denied("group", subject.groupId)
    case "CLUSTER_AUTHORIZATION_FAILED":
      return denied("cluster", "kafka-cluster")
    case "TRANSACTIONAL_ID_AUTHORIZATION_FAILED":
      return denied("transactionalId", subject.transactionalId)
    default:
      return undefined
  }
}

const ofRecord = (type: string, detail: string, subject: Subject): BrokerError.BrokerError | undefined => {
  const topic = subject.topic ?? ""
  switch (type) {
    case "UNKNOWN_TOPIC_OR_PARTITION":
      return new BrokerError.UnknownTopic({
        topic,
        ...(subject.partition !== undefined && { partition: subject.partition })
      })
    case "INVALID_TOPIC_EXCEPTION":
      return new BrokerError.InvalidTopic({ topic, detail })
    case "TOPIC_ALREADY_EXISTS":
      return new BrokerError.TopicExists({ topic })
    case "MESSAGE_TOO_LARGE":
    case "RECORD_LIST_TOO_LARGE":
      return new BrokerError.RecordTooLarge({ topic, bytes: subject.bytes ?? 0 })
    case "INVALID_RECORD":
    case "INVALID_TIMESTAMP":
    case "CORRUPT_MESSAGE":
      return new BrokerError.RecordRejected({ topic, detail: `${type}: ${detail}` })
    default:
      return undefined
  }
}

const ofIdentity = (type: string, subject: Subject): BrokerError.BrokerError | undefined => {
  switch (type) {
    case "REBALANCE_IN_PROGRESS":
      return new BrokerError.RebalanceInProgress({ groupId: subject.groupId ?? "" })
    case "FENCED_INSTANCE_ID":
      return new BrokerError.InstanceFenced({
        groupId: subject.groupId ?? "",
        groupInstanceId: subject.groupInstanceId ?? ""
      })
    default:
      return subject.transactionalId !== undefined && isFenced(type)
        ? new BrokerError.ProducerFenced({ transactionalId: subject.transactionalId })
        : undefined
  }
}

const ofConnection = (
  { type, detail }: ClientFailure,
  subject: Subject,
  connection: Connection
): BrokerError.BrokerError | undefined => {
  const { brokers, mechanism } = connection
  switch (type) {
    case Local.connection:
      return new BrokerError.BrokerUnavailable({ brokers, detail })
    case Local.tls:
      return new BrokerError.TlsFailed({ brokers, detail })
    case Local.authentication:
      return new BrokerError.AuthenticationFailed({ mechanism, detail })
    case Local.credentials:
      return new BrokerError.CredentialsUnavailable({ detail })
    case Local.timeout:
    case "REQUEST_TIMED_OUT":
      return new BrokerError.RequestTimedOut({
        operation: subject.operation,
        millis: subject.millis ?? connection.requestTimeoutMillis
      })
    default:
      return coordinatorTypes.has(type)
        ? new BrokerError.CoordinatorUnavailable({ detail: `${type}: ${detail}` })
        : undefined
  }
}

/** What a setting has to do with it, where the broker's answer is a code alone. */
const meanings: ReadonlyMap<string, string> = new Map([
  [
    "INVALID_SESSION_TIMEOUT",
    "sessionTimeout is not within what the broker allows: group.min.session.timeout.ms to group.max.session.timeout.ms, by default 6 seconds to 30 minutes"
  ]
])

/** The error at the port. */
export const brokerError = (failed: ClientFailure, subject: Subject, connection: Connection): BrokerError.BrokerError =>
  ofConnection(failed, subject, connection) ??
  authorization(failed.type, subject) ??
  ofRecord(failed.type, failed.detail, subject) ??
  ofIdentity(failed.type, subject) ??
  new BrokerError.UnexpectedBrokerError({
    operation: subject.operation,
    code: failed.type,
    detail: meanings.get(failed.type) ?? failed.detail,
    retryable: retryableTypes.has(failed.type)
  })
