/** Records that a service of Spring Kafka has left in its retry topics: a process reads them in Spring's own groups, as docs/guide/move-from-spring.md says. */
import { assert, describe } from "@effect/vitest"
import { Binding, RetryPolicy, Serde, TopicName } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, inTime, scenario, start, valuesOf } from "../bus.ts"

const naming: TopicName.NamingStrategy = { ...TopicName.standard, deadLetter: () => "payments-dlt" }
const [retryTopic, retryGroup] = ["payments-retry-5000", "billing-retry-5000"]

/** The binding of the process for the leftovers. */
const leftovers = (handled: Array<string>) =>
  Binding.make("leftovers", {
    ...{ topic: retryTopic, groupId: retryGroup, value: Serde.string, naming },
    retry: RetryPolicy.tiered({
      ...{ blocking: { maxAttempts: 1 }, tiers: [{ delay: "15 seconds", maxAttempts: 1 }], consumer: "separate" }
    }),
    onError: () => undefined,
    handler: ({ value }) =>
      value === "bad" ? Effect.fail("refused" as const) : Effect.sync(() => void handled.push(value))
  })

/** The binding of the service. */
const payments = (handled: Array<string>, adopts: ReadonlyArray<string>) =>
  Binding.make("payments", {
    ...{ topic: "payments", groupId: "billing", value: Serde.string, naming, adopts },
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["5 seconds"], consumer: "separate" }),
    handler: ({ value, record }) => Effect.sync(() => void handled.push(`${value} in ${record.topic}`))
  })

/** Spring has handled the first of three records. */
const springLeft = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["payments", retryTopic, "payments-dlt"]) yield* memory.createTopic(topic)
  const attempts = { key: "retry_topic-attempts", value: Uint8Array.of(0, 0, 0, 2) }
  const record = (value: string) => ({ key: bytes("a"), value: bytes(value), headers: [attempts] })
  yield* memory.append(retryTopic, 0, ["handled", "left", "bad"].map(record))
  const admin = yield* memory.broker.admin
  yield* admin.setCommittedOffsets(retryGroup, [{ topic: retryTopic, partition: 0, offset: 1n }])
})

describe("records that Spring has left in its retry topics", () => {
  scenario(
    "C51 DLT-22 a process in Spring's group begins where Spring committed; a replay to a tier brings its dead letters to the binding that adopts the group",
    () =>
      Effect.gen(function* () {
        yield* springLeft
        const [left, handled]: [Array<string>, Array<string>] = [[], []]
        const process = yield* start(leftovers(left))
        yield* advance("1 minute")
        yield* process.close
        assert.deepStrictEqual([left, yield* valuesOf("payments-dlt")], [["left"], ["bad"]])

        const stranger = yield* start(payments(handled, []))
        const foreign = yield* stranger.connector.deadLetters("payments")
        assert.deepStrictEqual((yield* inTime(foreign.stats)).foreign, new Map([[retryGroup, 1]]))
        yield* stranger.close

        const service = yield* start(payments(handled, [retryGroup]))
        const letters = yield* service.connector.deadLetters("payments")
        assert.strictEqual((yield* inTime(letters.stats)).count, 1)
        assert.strictEqual((yield* inTime(letters.replay(9))).refused, 1)
        assert.strictEqual((yield* inTime(letters.replayToTier(1, 9))).replayed, 1)
        yield* advance("1 minute")
        assert.deepStrictEqual(handled, ["bad in payments.retry-1"])
        assert.strictEqual((yield* inTime(letters.stats)).count, 0)
      })
  )
})
