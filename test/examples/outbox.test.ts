/** The outbox examples as programs, and one of them killed wherever it can be. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { KafkaJs } from "@eventbus/kafkajs"
import { Effect, type Scope } from "effect"
import { pgLogin } from "../outbox/clients.ts"
import { freshName, skipPostgres } from "../outbox/databases.ts"
import { namedSchema } from "../outbox/processes.ts"
import { urlOf } from "../services/login.ts"
import { start } from "./program.ts"

const timeout = 120_000
const onPostgres = it.live.skipIf(skipPostgres)

/** The URL of a schema that is dropped with the Scope. */
const postgresUrl = Effect.map(namedSchema, (schema) =>
  urlOf("postgres", pgLogin, `?options=${encodeURIComponent(`-c search_path=${schema}`)}`)
)

/** The URL of an SQLite file that is deleted with the Scope. */
const sqliteUrl = Effect.map(
  Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "outbox-example-"))),
    (folder) => Effect.promise(() => rm(folder, { recursive: true }))
  ),
  (folder) => `file:${join(folder, "shop.sqlite")}`
)

describe("outbox examples", () => {
  it.live(
    "OUT-B-10 outboxEmbedded: a transaction, a rollback and a listener, without Kafka or a framework",
    () =>
      Effect.gen(function* () {
        const program = yield* start("outboxEmbedded.ts")
        assert.strictEqual(yield* program.exit, 0)
        assert.sameMembers(
          [...program.lines()],
          ["a mail goes out about o-1", "o-2 is refused: no order, no mail", "a mail goes out about o-3"]
        )
      }),
    timeout
  )

  it.live(
    "OUT-B-10 outboxRest: a request answers when order and event are committed, and then the listener runs",
    () =>
      Effect.gen(function* () {
        const program = yield* start("outboxRest.ts", { PORT: "0" })
        yield* program.writes("listening on port")
        const [, port] = /listening on port (\d+)/.exec(program.output())!
        const ask = (path: string, body?: unknown) =>
          Effect.promise(() => {
            const post = { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } }
            return fetch(`http://127.0.0.1:${port}${path}`, body === undefined ? undefined : post)
          })
        const order = { id: "o-1", cents: 1250 }
        assert.strictEqual((yield* ask("/orders", order)).status, 201)
        assert.strictEqual((yield* ask("/orders", order)).status, 409)
        assert.strictEqual((yield* ask("/orders", { id: "o-2" })).status, 400)
        const shown = Effect.flatMap(ask("/orders/o-1"), (answer) => Effect.promise(() => answer.text()))
        const mailed = yield* shown.pipe(
          Effect.repeat({ until: (text) => text.includes('"mails":1') }),
          Effect.timeout("10 seconds")
        )
        assert.deepStrictEqual(JSON.parse(mailed), { ...order, mails: 1 })
        assert.strictEqual((yield* ask("/orders/o-2")).status, 404)
        assert.strictEqual((yield* ask("/health")).status, 200)
        yield* program.signal("SIGTERM")
        assert.strictEqual(yield* program.exit, 130)
      }),
    timeout
  )

  it.live(
    "OUT-B-10 outboxTwoDatabases: each transaction joins the outbox of its own database",
    () =>
      Effect.gen(function* () {
        const program = yield* start("outboxTwoDatabases.ts")
        assert.strictEqual(yield* program.exit, 0)
        assert.sameMembers(
          [...program.lines()],
          ["shop: OrderPlaced o-1", "shop: OrderPaid o-1", "crm: CustomerMoved ann"]
        )
      }),
    timeout
  )

  onPostgres(
    "OUT-T-01 OUT-T-03 outboxForeignTransactions: pg, a tagged template and Kysely write an event in their transactions",
    () =>
      Effect.gen(function* () {
        const program = yield* start("outboxForeignTransactions.ts", { DATABASE_URL: yield* postgresUrl })
        assert.strictEqual(yield* program.exit, 0, program.output())
        assert.sameMembers([...program.lines()], ["placed pg", "placed postgres", "placed kysely"])
      }).pipe(Effect.scoped),
    timeout
  )

  it.live(
    "outboxEffectivelyOnce: also runs inside one process",
    () =>
      Effect.gen(function* () {
        const program = yield* start("outboxEffectivelyOnce.ts")
        assert.strictEqual(yield* program.exit, 0)
        assert.strictEqual(program.lines().at(-1), "5 orders, 1500 cents")
      }),
    timeout
  )
})

const steps = ["inserted", "written", "committed", "relaying", "published", "delivered", "billed", "handled"] as const

KafkaSuite.shared("outboxEffectivelyOnce on a real Kafka", (bootstrap) => {
  const freshTopic = Effect.gen(function* () {
    const admin = yield* (yield* Broker.Broker).admin
    const topic = freshName().replaceAll("_", "-")
    yield* admin.createTopics([{ topic, partitions: 2 }])
    yield* Effect.addFinalizer(() => Effect.ignore(admin.deleteTopics([topic])))
    return topic
  })

  /** Killed at the step, started again, and once more, for whatever comes late. */
  const survives = (step: string, databaseUrl: Effect.Effect<string, never, Scope.Scope>) =>
    Effect.gen(function* () {
      const env = { KAFKA_BROKERS: bootstrap.join(","), DATABASE_URL: yield* databaseUrl, TOPIC: yield* freshTopic }
      const killed = yield* start("outboxEffectivelyOnce.ts", { ...env, KILL_AT: step })
      assert.isNull(yield* killed.exit, killed.output())
      const again = yield* start("outboxEffectivelyOnce.ts", env)
      assert.strictEqual(yield* again.exit, 0, again.output())
      assert.strictEqual(again.lines().at(-1), "5 orders, 1500 cents")
      // Sent twice, or delivered twice: the inbox has noticed.
      if (step === "published" || step === "handled") assert.include(again.output(), "had been billed already")
      const onceMore = yield* start("outboxEffectivelyOnce.ts", env)
      assert.strictEqual(yield* onceMore.exit, 0, onceMore.output())
      assert.strictEqual(onceMore.lines().at(-1), "5 orders, 1500 cents")
    }).pipe(Effect.scoped, Effect.provide(KafkaJs.layer({ brokers: bootstrap })))

  describe.concurrent("killed with -9", () => {
    for (const step of steps) {
      onPostgres(`OUT-K-02 OUT-K-03 at '${step}', PostgreSQL`, () => survives(step, postgresUrl), timeout)
    }
    for (const step of ["committed", "published", "handled"]) {
      it.live(`OUT-K-02 OUT-K-03 at '${step}', SQLite`, () => survives(step, sqliteUrl), timeout)
    }
  })
})
