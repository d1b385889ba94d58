/** Turns failures below the port into `BrokerError`s that name this cluster. Secrets are redacted from their texts. */
import { BrokerError, Ranges } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { type ClientFailure, Local } from "../../ClientFailure.ts"
import { isCoordinatorFailure, isFenced } from "../wire/failures.ts"
import { defaults } from "./options.ts"
import type { SecuredOptions } from "./security.ts"

/** The subject of a failed operation, as far as its caller knows it. */
export interface Subject {
  readonly operation: string
  readonly topic?: string
  readonly partition?: number
  readonly bytes?: number
  readonly groupId?: string
  readonly groupInstanceId?: string | undefined
  readonly transactionalId?: string
}

/** Facts of the connection that errors name. */
interface Connection {
  readonly brokers: ReadonlyArray<string>
  readonly mechanism: string
  readonly requestTimeoutMillis: number
}

export interface BrokerErrors {
  readonly of: (failed: ClientFailure, subject: Subject) => BrokerError.BrokerError
  /** The effect with its failure as the port's error. */
  readonly map: <A, R>(
    effect: Effect.Effect<A, ClientFailure, R>,
    subject: Subject
  ) => Effect.Effect<A, BrokerError.BrokerError, R>
}

export const brokerErrors = (options: SecuredOptions): BrokerErrors => {
  const connection: Connection = {
    brokers: options.brokers,
    mechanism: options.sasl?.mechanism.toUpperCase() ?? "none",
    requestTimeoutMillis: Ranges.millisOf(options.requestTimeout ?? defaults.requestTimeoutMillis)
  }
  const { redact } = options.security
  const of: BrokerErrors["of"] = (failed, subject) =>
    brokerError({ ...failed, detail: redact(failed.detail) }, subject, connection)
  const map: BrokerErrors["map"] = (effect, subject) =>
    Effect.suspend(() => {
      const startedAt = performance.now()
      return Effect.mapError(effect, (failed) => {
        const waitedMillis = failed.waitedMillis ?? Math.round(performance.now() - startedAt)
        return of({ ...failed, waitedMillis }, subject)
      })
    })
  return { of, map }
}

/** The port's error of a failure. */
const brokerError = (failed: ClientFailure, subject: Subject, connection: Connection): BrokerError.BrokerError =>
  ofConnection(failed, subject, connection) ??
  ofAuthorization(failed.type, subject) ??
  ofRecord(failed.type, failed.detail, subject) ??
  ofIdentity(failed.type, subject) ??
  new BrokerError.UnexpectedBrokerError({
    operation: subject.operation,
    code: failed.type,
    detail: settingHints.get(failed.type) ?? failed.detail,
    retryable: retryableTypes.has(failed.type)
  })

const retryableTypes = new Set([
  "LEADER_NOT_AVAILABLE",
  "NOT_LEADER_OR_FOLLOWER",
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
  "UNKNOWN_TOPIC_ID",
  "TRANSACTION_ABORTABLE",
  // A rolling upgrade, or the way back from one, ends it.
  "UNSUPPORTED_VERSION"
])

/** The setting to change, where the broker answers with a code alone. */
const settingHints: ReadonlyMap<string, string> = new Map([
  [
    "INVALID_SESSION_TIMEOUT",
    "sessionTimeout is not within what the broker allows: group.min.session.timeout.ms to group.max.session.timeout.ms, by default 6 seconds to 30 minutes"
  ]
])

const ofConnection = (
  { type, detail, waitedMillis }: ClientFailure,
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
        millis: waitedMillis ?? connection.requestTimeoutMillis
      })
    default:
      return isCoordinatorFailure(type)
        ? new BrokerError.CoordinatorUnavailable({ detail: `${type}: ${detail}` })
        : undefined
  }
}

const ofAuthorization = (type: string, subject: Subject): BrokerError.BrokerError | undefined => {
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
    case "INVALID_TIMESTAMP":
      return new BrokerError.RecordRejected({ topic, detail: `${type}: ${detail}`, field: "timestamp" })
    case "INVALID_RECORD":
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
