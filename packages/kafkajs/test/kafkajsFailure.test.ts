import { assert, describe, it } from "@effect/vitest"
import { kafkajsFailure } from "../src/internal/kafkajsFailure.ts"

const thrown = (name: string, fields: object, cause?: unknown) =>
  Object.assign(new Error(`${name} happened`, { cause }), { name, ...fields })

describe("what kafkajs throws", () => {
  it("is named by the reason in the errors that it wraps", () => {
    const tls = thrown("KafkaJSConnectionError", { code: "SELF_SIGNED_CERT_IN_CHAIN" })
    const refused = thrown("KafkaJSConnectionError", { code: "ECONNREFUSED" })
    const wrong = thrown("KafkaJSSASLAuthenticationError", {})
    const cases = [
      [thrown("KafkaJSNumberOfRetriesExceeded", {}, tls), "TLS"],
      [thrown("KafkaJSNonRetriableError", {}, refused), "CONNECTION"],
      [thrown("KafkaJSNonRetriableError", {}, wrong), "AUTHENTICATION"],
      [thrown("KafkaJSProtocolError", { type: "ILLEGAL_SASL_STATE" }), "AUTHENTICATION"],
      [thrown("KafkaJSRequestTimeoutError", {}), "REQUEST_TIMEOUT"]
    ] as const
    for (const [error, type] of cases) assert.strictEqual(kafkajsFailure(error).type, type)
  })
})
