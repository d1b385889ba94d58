/** Health in both directions: down when the database does not answer, and up again once nothing waits or is refused. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import * as NodeSqlite from "../src/drivers/NodeSqlite.ts"
import { monitorOf } from "../src/internal/base/monitor.ts"
import { noteRefusal, watchRefusals } from "../src/internal/store/readOnly.ts"
import { tableNames } from "../src/internal/store/tableNames.ts"
import * as ListenerRegistry from "../src/ListenerRegistry.ts"
import * as Outbox from "../src/Outbox.ts"
import { DownstreamUnavailable } from "../src/OutboxError.ts"
import * as OutboxHealth from "../src/OutboxHealth.ts"
import * as OutboxSchema from "../src/OutboxSchema.ts"
import * as OutboxStore from "../src/OutboxStore.ts"

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" }))),
  Layer.provideMerge(Logger.layer([]))
)

const check = OutboxHealth.OutboxHealth.use((health) => health.check)
const write = (eventType: string) =>
  SqlClient.SqlClient.use((sql) => sql.withTransaction(Outbox.writeJson(eventType, "{}")))
const change = (text: string) => SqlClient.SqlClient.use((sql) => sql.unsafe(text))
const pass = (seconds: number) => Effect.repeat(TestClock.adjust("1 second"), { times: seconds - 1 })

describe("health while a destination is down", () => {
  for (const holds of ["event", "listener"] as const) {
    /** Events of type `down` wait, those of type `slow` are due again and again. */
    const outbox = Outbox.singleNode({ retryPolicy: () => 5000, maxAttempts: 1000 }).pipe(
      Layer.provide(
        ListenerRegistry.layerAll(({ eventType }) =>
          eventType === "down"
            ? Effect.fail(new DownstreamUnavailable({ cause: "no", destination: "x", holds }))
            : Effect.fail("not yet")
        )
      ),
      Layer.provideMerge(database)
    )

    it.effect(
      `ruling 74, ${holds}: degraded while an event waits, however long, and no longer once others ended it`,
      () =>
        Effect.gen(function* () {
          yield* write("down")
          yield* pass(3600)
          assert.strictEqual((yield* check).status, "degraded")
          yield* change("UPDATE outbox_event SET status = 1, done_at = 1")
          assert.deepInclude(yield* check, { status: "up", pending: 0 })
        }).pipe(Effect.provide(outbox))
    )

    it.effect(`ruling 74, ${holds}: events of other destinations keep it degraded for two minutes at most`, () =>
      Effect.gen(function* () {
        yield* write("down")
        yield* write("slow")
        yield* pass(20)
        yield* change("DELETE FROM outbox_event WHERE event_type = 'down'")
        yield* pass(121)
        yield* change("UPDATE outbox_event SET created_at = available_at")
        assert.deepInclude(yield* check, { pending: 1 })
        assert.strictEqual((yield* check).status, "up", (yield* check).detail)
      }).pipe(Effect.provide(outbox))
    )
  }
})

describe("health after a refused write", () => {
  it.effect("ruling 74: a quiet outbox whose connections take writes is up again within two seconds", () =>
    Effect.gen(function* () {
      const store = yield* OutboxStore.OutboxStore
      monitorOf(store).report("database", "read-only connection", "25006", 0)
      assert.strictEqual((yield* check).status, "degraded")
      yield* TestClock.adjust("2 seconds")
      assert.deepInclude(yield* check, { status: "up", problems: [] })
    }).pipe(Effect.provide(Outbox.writerOnly().pipe(Layer.provideMerge(database))))
  )

  for (const isReadOnly of [true, false]) {
    it.effect(
      `ruling 74: the listening connection is ${isReadOnly ? "" : "not "}made anew when connections ${isReadOnly ? "are read-only" : "take writes"}`,
      () =>
        Effect.gen(function* () {
          const names = tableNames("outbox_event")
          const refusal = Object.assign(new Error("read-only transaction"), { code: "25006" })
          const sql = {
            onDialectOrElse: (options: { readonly orElse: () => unknown }) => options.orElse(),
            transactionService: SqlClient.TransactionConnection(0),
            unsafe: () => (isReadOnly ? Effect.fail("ended by itself") : Effect.succeed([]))
          } as unknown as SqlClient.SqlClient
          let refused = 0
          watchRefusals(sql, names)
          monitorOf({ names }).watchConnections(() => refused++)
          yield* noteRefusal(sql, refusal)
          yield* TestClock.adjust("1 second")
          assert.strictEqual(refused, isReadOnly ? 1 : 0)
        }).pipe(Effect.provide(Logger.layer([])))
    )
  }
})

describe("health while the database does not answer", () => {
  it.effect(
    "ruling 74: the check says `down` after five seconds, and is not held by an answer that never comes",
    () => {
      const silent = {
        names: {},
        lag: Effect.uninterruptible(Effect.never)
      } as unknown as OutboxStore.OutboxStore["Service"]
      return Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(check, { startImmediately: true })
        yield* TestClock.adjust("6 seconds")
        assert.isDefined(fiber.pollUnsafe())
        const report = yield* Fiber.join(fiber)
        assert.strictEqual(report.status, "down")
        assert.include(report.detail, "5s")
      }).pipe(
        Effect.provide(
          OutboxHealth.layer().pipe(
            Layer.provide(Layer.succeed(OutboxStore.OutboxStore, silent)),
            Layer.provideMerge(Logger.layer([]))
          )
        )
      )
    }
  )
})
