/** The consequence of a failed batch, by the name of its failure. */
import { Local } from "../../ClientFailure.ts"

/**
 * - `again`: the batch was not written; send it again, perhaps to another node.
 * - `unknown`: the batch may have been written; send it again unchanged.
 * - `split`: the broker refuses one of its records.
 * - `renew`: the broker does not know the producer any more; send the batch under a new producer id.
 * - `fail`: sending it again does not help.
 */
type Outcome = "again" | "unknown" | "split" | "renew" | "fail"

const outcomes = new Map<string, Outcome>([
  ["NOT_LEADER_OR_FOLLOWER", "again"],
  ["LEADER_NOT_AVAILABLE", "again"],
  ["UNKNOWN_TOPIC_OR_PARTITION", "again"],
  ["UNKNOWN_TOPIC_ID", "again"],
  ["FENCED_LEADER_EPOCH", "again"],
  ["UNKNOWN_LEADER_EPOCH", "again"],
  ["REPLICA_NOT_AVAILABLE", "again"],
  ["NOT_ENOUGH_REPLICAS", "again"],
  ["KAFKA_STORAGE_ERROR", "again"],
  ["CONCURRENT_TRANSACTIONS", "again"],
  ["COORDINATOR_LOAD_IN_PROGRESS", "again"],
  ["COORDINATOR_NOT_AVAILABLE", "again"],
  ["NOT_COORDINATOR", "again"],
  ["THROTTLING_QUOTA_EXCEEDED", "again"],
  ["REQUEST_TIMED_OUT", "unknown"],
  ["NOT_ENOUGH_REPLICAS_AFTER_APPEND", "unknown"],
  ["NETWORK_EXCEPTION", "unknown"],
  [Local.connection, "unknown"],
  [Local.timeout, "unknown"],
  ["MESSAGE_TOO_LARGE", "split"],
  ["RECORD_LIST_TOO_LARGE", "split"],
  ["INVALID_RECORD", "split"],
  ["INVALID_TIMESTAMP", "split"],
  ["CORRUPT_MESSAGE", "split"],
  ["OUT_OF_ORDER_SEQUENCE_NUMBER", "renew"],
  ["UNKNOWN_PRODUCER_ID", "renew"],
  ["INVALID_PRODUCER_ID_MAPPING", "renew"],
  ["INVALID_PRODUCER_EPOCH", "renew"],
  ["PRODUCER_FENCED", "renew"]
])

/** Only an idempotent producer that is not transactional may take a new id; a batch of one record cannot be split. */
export const outcomeOf = (type: string, records: number, kind: "plain" | "idempotent" | "transactional"): Outcome => {
  const outcome = outcomes.get(type) ?? "fail"
  if (outcome === "renew" && kind !== "idempotent") return "fail"
  if (outcome === "split" && records === 1) return "fail"
  return outcome
}
