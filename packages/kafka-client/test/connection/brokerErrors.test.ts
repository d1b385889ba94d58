import { assert, describe, it } from "@effect/vitest"
import { type ClientFailure, failure, fromThrown } from "../../src/ClientFailure.ts"
import { brokerErrors } from "../../src/internal/connection/brokerErrors.ts"
import { securedOptions } from "../../src/internal/connection/security.ts"
import { failureOfCode } from "../../src/internal/wire/failures.ts"
import { noTransport } from "../noTransport.ts"

const errors = brokerErrors(securedOptions({ brokers: ["a:1"] }, noTransport))
const subject = {
  operation: "do",
  topic: "t",
  partition: 2,
  bytes: 7,
  groupId: "g",
  groupInstanceId: "i",
  transactionalId: "x"
}
const tagOf = (failed: ClientFailure) => errors.of(failed, subject)._tag

describe("broker errors", () => {
  it.each([
    ["REBALANCE_IN_PROGRESS", "RebalanceInProgress", true],
    ["FENCED_INSTANCE_ID", "InstanceFenced", false],
    ["PRODUCER_FENCED", "ProducerFenced", false],
    ["INVALID_PRODUCER_EPOCH", "ProducerFenced", false],
    ["UNKNOWN_TOPIC_OR_PARTITION", "UnknownTopic", true],
    ["INVALID_TOPIC_EXCEPTION", "InvalidTopic", false],
    ["TOPIC_ALREADY_EXISTS", "TopicExists", false],
    ["MESSAGE_TOO_LARGE", "RecordTooLarge", false],
    ["INVALID_RECORD", "RecordRejected", false],
    ["TOPIC_AUTHORIZATION_FAILED", "AuthorizationFailed", false],
    ["GROUP_AUTHORIZATION_FAILED", "AuthorizationFailed", false],
    ["NOT_COORDINATOR", "CoordinatorUnavailable", true],
    ["COORDINATOR_LOAD_IN_PROGRESS", "CoordinatorUnavailable", true],
    ["REQUEST_TIMED_OUT", "RequestTimedOut", true],
    ["LEADER_NOT_AVAILABLE", "UnexpectedBrokerError", true],
    ["POLICY_VIOLATION", "UnexpectedBrokerError", false]
  ])("%s is %s at the port", (type, tag, retryable) => {
    const error = errors.of(failure(type, "why"), subject)
    assert.deepStrictEqual([error._tag, error.retryable], [tag, retryable])
  })

  it("the reason is found in the errors that wrap it", () => {
    const wrapping = (fields: object) => new Error("outer", { cause: Object.assign(new Error("inner"), fields) })
    assert.strictEqual(tagOf(fromThrown(wrapping({ code: "SELF_SIGNED_CERT_IN_CHAIN" }))), "TlsFailed")
    assert.strictEqual(tagOf(fromThrown(wrapping({ code: "ECONNREFUSED" }))), "BrokerUnavailable")
    assert.strictEqual(tagOf(fromThrown(failure("REQUEST_TIMEOUT", "late"))), "RequestTimedOut")
  })

  it("anything may be thrown, also a value that is no error, or an error that is its own cause", () => {
    assert.strictEqual(tagOf(fromThrown("text")), "UnexpectedBrokerError")
    assert.strictEqual(tagOf(fromThrown(undefined)), "UnexpectedBrokerError")
    const circular = new Error("round")
    circular.cause = circular
    assert.strictEqual(tagOf(fromThrown(circular)), "UnexpectedBrokerError")
  })

  it("code 0 is success, and an unknown code is named by its number", () => {
    assert.isUndefined(failureOfCode(0))
    assert.strictEqual(failureOfCode(9999)?.type, "KAFKA_ERROR_9999")
  })
})
