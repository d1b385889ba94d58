/**
 * Test suites on a real Kafka.
 *
 * Without Java, Maven and `KAFKA_BROKERS` a suite is skipped, and one line says what to install. With `CI=true` it fails instead.
 * Tests follow the real clock: use `it.live` of `@effect/vitest` in `shared`; in `own`, `it.effect` uses the real clock already.
 */
import { layer, type Vitest } from "@effect/vitest"
import { Duration } from "effect"
import { describe, inject, it } from "vitest"
import { type Answer, ask, type Question } from "./internal/sharedKafka.ts"
import * as RealKafka from "./RealKafka.ts"

/** `KAFKA_VERSION` may name an older release. */
const isKafka4 = Number.parseInt(process.env["KAFKA_VERSION"] ?? "4", 10) >= 4

/** Whether the brokers can assign the partitions of groups (KIP-848): Apache Kafka 4.0 and later. */
export const hasConsumerProtocol = isKafka4

/** Whether each transaction has an epoch of its own (KIP-890): Apache Kafka 4.0 and later. */
export const hasEpochsOfTransactions = isKafka4

/**
 * A suite on the run's shared Kafka: the cluster that `KAFKA_BROKERS` names, or else one plaintext broker, which starts with the first suite that needs it.
 * Other suites use it at the same time, so topics and groups need names of their own.
 */
export const shared = (name: string, body: (bootstrap: ReadonlyArray<string>) => void): void =>
  whenAvailable(name, "/shared", body)

/** A suite on a cluster of its own, which its tests may break. The cluster starts once for the suite; `KAFKA_BROKERS` is not used. */
export const own = (
  name: string,
  options: RealKafka.Options,
  body: (it: Vitest.MethodsNonLive<RealKafka.RealKafka>) => void
): void =>
  whenAvailable(name, "/tools", () => {
    // The runner's own timeout ends first: its error says more.
    const timeout = Duration.sum(Duration.fromInputUnsafe(options.startTimeout ?? "3 minutes"), Duration.minutes(5))
    layer(RealKafka.layer(options), { excludeTestServices: true, timeout })(body)
  })

/** A suite that runs Java's clients and starts no broker. */
export const withJava = (name: string, body: () => void): void => whenAvailable(name, "/tools", body)

const whenAvailable = (name: string, question: Question, body: (bootstrap: ReadonlyArray<string>) => void): void => {
  describe(name, async () => {
    const answer = await ask(inject("sharedKafka"), question)
    if (answer._tag === "Available") return body(answer.bootstrap)
    reportMissing(answer)
  })
}

const reportMissing = ({ reason }: Extract<Answer, { _tag: "Unavailable" }>): void => {
  if (process.env.CI === "true") {
    it("has a real Kafka", () => {
      throw new Error(reason)
    })
    return
  }
  it.skip(reason, () => {})
}
