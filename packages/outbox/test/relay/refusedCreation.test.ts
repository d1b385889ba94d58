/** A topic that the cluster does not create is a missing topic: its events wait, and none is given up. */
import { assert, describe, it } from "@effect/vitest"
import { Broker, BrokerError } from "@eventbus/core"
import { Effect, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as NodeSqlite from "../../src/drivers/NodeSqlite.ts"
import * as KafkaRelay from "../../src/KafkaRelay.ts"
import * as Outbox from "../../src/Outbox.ts"
import * as OutboxHealth from "../../src/OutboxHealth.ts"
import * as OutboxSchema from "../../src/OutboxSchema.ts"

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" }))),
  Layer.provideMerge(Logger.layer([]))
)

const refusals: Readonly<Record<string, BrokerError.BrokerError>> = {
  "a replication factor that the cluster does not have": new BrokerError.UnexpectedBrokerError({
    operation: "create topics",
    code: "INVALID_REPLICATION_FACTOR",
    detail: "Replication factor: 3 larger than available brokers: 1.",
    retryable: false
  }),
  "a policy": new BrokerError.UnexpectedBrokerError({
    operation: "create topics",
    code: "POLICY_VIOLATION",
    detail: "no",
    retryable: false
  }),
  "its settings": new BrokerError.InvalidTopic({ topic: "later", detail: "more partitions than allowed" }),
  "a missing right": new BrokerError.AuthorizationFailed({ resource: "cluster", name: "kafka", operation: "create" }),
  "a quota": new BrokerError.UnexpectedBrokerError({
    operation: "create topics",
    code: "THROTTLING_QUOTA_EXCEEDED",
    detail: "later",
    retryable: true
  })
}

/** A cluster with topic `there`, that refuses to create topic `later` until it is allowed. */
const cluster = (refusal: BrokerError.BrokerError) => {
  const sent: Array<string> = []
  const state = { isAllowed: false, exists: false }
  const admin = {
    createTopics: () =>
      Effect.suspend(() => {
        if (!state.isAllowed) return Effect.fail(refusal)
        state.exists = true
        return Effect.void
      })
  }
  const send = ({ topic }: { readonly topic: string }) =>
    Effect.suspend(() => {
      if (topic === "later" && !state.exists) return Effect.fail(new BrokerError.UnknownTopic({ topic }))
      sent.push(topic)
      return Effect.succeed({ topic, partition: 0, offset: 0n })
    })
  const broker = { admin: Effect.succeed(admin), producer: () => Effect.succeed({ send }) }
  return { sent, state, layer: Layer.succeed(Broker.Broker, broker as unknown as Broker.Broker["Service"]) }
}

const write = (eventType: string) =>
  SqlClient.SqlClient.use((sql) =>
    sql.withTransaction(Outbox.writeAll(Array.from({ length: 10 }, () => ({ eventType, payload: 1 }))))
  )

describe("C39 a relay that creates missing topics", () => {
  for (const [reason, refusal] of Object.entries(refusals)) {
    it.effect(`ruling 87: ${reason} is why a topic is not created: only its events wait, and none is given up`, () => {
      const { sent, state, layer } = cluster(refusal)
      const outbox = Outbox.singleNode({ maxAttempts: 3, retryPolicy: KafkaRelay.retryPolicy }).pipe(
        Layer.provide(KafkaRelay.layer({ missingTopics: "create" })),
        Layer.provide(layer),
        Layer.provideMerge(database)
      )
      return Effect.gen(function* () {
        yield* write("later")
        yield* Effect.repeat(TestClock.adjust("1 second"), { times: 60 })
        yield* write("there")
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(new Set(sent), new Set(["there"]))
        assert.strictEqual(sent.length, 10)
        const during = yield* OutboxHealth.OutboxHealth.use(({ check }) => check)
        assert.deepInclude(during, { status: "degraded", pending: 10, dead: 0 })
        assert.include(during.detail, "topic 'later'")
        assert.include(during.detail, refusal.message)
        state.isAllowed = true
        yield* Effect.repeat(TestClock.adjust("1 second"), { times: 30 })
        assert.strictEqual(sent.length, 20)
        const after = yield* OutboxHealth.OutboxHealth.use(({ check }) => check)
        assert.deepInclude(after, { status: "up", pending: 0, dead: 0 })
      }).pipe(Effect.provide(outbox))
    })
  }
})
