/** The failure of an event whose publish failed: it can never be sent, or it waits for its topic or for the cluster. */
import type { BrokerError } from "@eventbus/core"
import * as Data from "effect/Data"
import { DownstreamUnavailable, PoisonEvent } from "../../OutboxError.ts"

/** Errors of the record itself, which no retry can mend. */
const ofRecord: ReadonlySet<BrokerError.BrokerError["_tag"]> = new Set([
  "RecordTooLarge",
  "RecordRejected",
  "InvalidTopic"
])

/** Errors of the whole cluster that somebody has to mend outside of this process. Events wait for that as for an outage. */
const ofCluster: ReadonlySet<BrokerError.BrokerError["_tag"]> = new Set(["AuthenticationFailed", "TlsFailed"])

/** The topic is missing, and the cluster did not create it. Somebody has to change a setting or grant a right, or the next try succeeds. */
export class CreationRefused extends Data.TaggedError("CreationRefused")<{
  readonly topic: string
  readonly cause: BrokerError.BrokerError
}> {
  override get message(): string {
    return `Topic '${this.topic}' does not exist, and creating it failed: ${this.cause.message}`
  }
}

/** Whether the topic takes no records at all: it is missing, or this user may not write to it. Creating or granting it heals that. */
export const isOfTopic = (error: BrokerError.BrokerError | CreationRefused): boolean =>
  error._tag === "UnknownTopic" ||
  error._tag === "CreationRefused" ||
  (error._tag === "AuthorizationFailed" && error.resource === "topic")

/** Whether the topic refuses the record's time only. */
const isTimeRefused = (error: BrokerError.BrokerError): boolean =>
  error._tag === "RecordRejected" && error.field === "timestamp"

/** The failure of an event whose topic takes no records. The events of other topics go on (ruling 87). */
export const topicUnavailable = (topic: string, cause: unknown): DownstreamUnavailable =>
  new DownstreamUnavailable({ cause, destination: `topic '${topic}'`, holds: "event" })

/** Turns a failed publish into the failure of its event. */
export const failureOfPublish = (
  error: BrokerError.BrokerError | CreationRefused,
  topic: string
): BrokerError.BrokerError | DownstreamUnavailable | PoisonEvent => {
  if (error._tag === "CreationRefused") return topicUnavailable(topic, error)
  // No time that this node tries is accepted: somebody has to set a clock right, or the topic. The event can wait for that.
  if (isTimeRefused(error)) return topicUnavailable(topic, error)
  if (ofRecord.has(error._tag)) return new PoisonEvent({ reason: error.message, cause: error })
  if (isOfTopic(error)) return topicUnavailable(topic, error)
  const waits = error.retryable || error._tag === "AuthorizationFailed" || ofCluster.has(error._tag)
  return waits ? new DownstreamUnavailable({ cause: error }) : error
}
