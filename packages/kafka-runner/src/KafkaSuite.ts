/**
 * Test suites on a real Kafka.
 *
 * Without Java, Maven and `KAFKA_BROKERS` a suite is skipped, and one line says how to get it; when `CI` is `true` it fails instead.
 * Tests follow the real clock: use `it.live` of `@effect/vitest` in `shared`; in `own`, `it.effect` is live already.
 */
import { layer, type Vitest } from "@effect/vitest"
import { Duration } from "effect"
import { describe, inject, it } from "vitest"
import { type Answer, ask, type Question } from "./internal/sharedKafka.ts"
import * as RealKafka from "./RealKafka.ts"

/**
 * Tests on the run's one Kafka: the cluster that `KAFKA_BROKERS` names, else a single plaintext broker that starts with the first
 * suite that asks for it. Other suites use it at the same time: choose topic and group names of your own.
 */
export const shared = (name: string, body: (bootstrap: ReadonlyArray<string>) => void): void =>
  whenAvailable(name, "/shared", body)

/** Tests on a cluster of their own, which they may break; `KAFKA_BROKERS` is not used. It starts once for the suite. */
export const own = (
  name: string,
  options: RealKafka.Options,
  body: (it: Vitest.MethodsNonLive<RealKafka.RealKafka>) => void
): void =>
  whenAvailable(name, "/tools", () => {
    // The layer's own bound is the runner's, whose error tells more.
    const timeout = Duration.sum(Duration.fromInputUnsafe(options.startTimeout ?? "3 minutes"), Duration.minutes(5))
    layer(RealKafka.layer(options), { excludeTestServices: true, timeout })(body)
  })

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
