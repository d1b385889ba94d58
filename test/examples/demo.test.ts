import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import * as KafkaSuite from "@eventbus/kafka-runner/KafkaSuite"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { pgIn, pgLogin } from "../outbox/clients.ts"
import { freshName, skipPostgres } from "../outbox/databases.ts"
import { urlOf } from "../services/login.ts"
import { start } from "./program.ts"

const timeout = 150_000
const verdict = /✔ every record accounted for: (\d+) = (\d+) paid \+ (\d+) dead-lettered(?: \+ (\d+) waiting)?\n/

const accountOf = (output: string): { readonly produced: number; readonly waiting: number } => {
  const [, produced, paid, deadLettered, waiting = "0"] = verdict.exec(output) ?? assert.fail(output)
  assert.strictEqual(Number(produced), Number(paid) + Number(deadLettered) + Number(waiting))
  return { produced: Number(produced), waiting: Number(waiting) }
}

/** The lines about order per key, the first one first. On a real Kafka the names of the topics have a prefix. */
const inOrder =
  /eve-1 has failed for good and is held for an operator[^\n]*: 1\n {2}ann-1 waits in \S*subscriptions\.retry-1[^\n]*: 2\n {2}charged meanwhile: bob-1 cyd-1 bob-2 cyd-2\n {2}ann's card works again\n {2}charged in order: ann-1 ann-2 ann-3\n[^\n]*parked skip subscriptions 0@2\n {2}dead-lettered: eve-1 · charged behind it: eve-2\n {2}✔ every customer was charged in order\n/

describe.concurrent("the demo", () => {
  it.live(
    "reports every record and leaves none waiting",
    () =>
      Effect.gen(function* () {
        const demo = yield* start("demo.ts")
        assert.strictEqual(yield* demo.exit, 0, demo.output())
        assert.deepStrictEqual(accountOf(demo.output()), { produced: 662, waiting: 0 })
        assert.match(demo.output(), inOrder)
        assert.include(demo.output(), "in SQLite; 33 more rolled back")
        assert.match(demo.output(), /^Event Bus Connector · on SQLite and a broker in this process\n/)
        const totals = /(\d+) committed so far = (\d+) handled \+ (\d+) dead-lettered \+ (\d+) on their way/g
        const sums = Array.from(demo.output().matchAll(totals), (match) => match.slice(1).map(Number))
        assert.isNotEmpty(sums)
        for (const [placed, handled = 0, dead = 0, open = 0] of sums) assert.strictEqual(placed, handled + dead + open)
      }),
    timeout
  )

  it.live.skipIf(skipPostgres)(
    "reads its orders from the PostgreSQL that DATABASE_URL names, and leaves nothing in it",
    () =>
      Effect.gen(function* () {
        const database = freshName()
        const run = (text: string) =>
          SqlClient.SqlClient.use((sql) => sql.unsafe(text)).pipe(Effect.provide(pgIn("public", 1), { local: true }))
        yield* Effect.acquireRelease(run(`CREATE DATABASE ${database}`), () =>
          Effect.orDie(run(`DROP DATABASE ${database} WITH (FORCE)`))
        )
        const login = { ...pgLogin, database }
        const demo = yield* start("demo.ts", { DATABASE_URL: urlOf("postgres", login) })
        assert.strictEqual(yield* demo.exit, 0, demo.output())
        assert.deepStrictEqual(accountOf(demo.output()), { produced: 662, waiting: 0 })
        assert.include(demo.output(), "in PostgreSQL; 33 more rolled back")
        const left = yield* SqlClient.SqlClient.use(
          (sql) => sql`SELECT 1 FROM pg_namespace WHERE nspname LIKE 'eventbus_demo_%'`
        ).pipe(Effect.provide(PgClient.layer({ ...login, maxConnections: 1 })))
        assert.deepStrictEqual(left, [])
      }),
    timeout
  )

  it.live(
    "reports what is wrong with DATABASE_URL",
    () =>
      Effect.gen(function* () {
        const nobody = yield* start("demo.ts", { DATABASE_URL: "postgres://postgres@127.0.0.1:1/test" })
        assert.strictEqual(yield* nobody.exit, 1)
        assert.match(nobody.output(), /^ {2}✘ DATABASE_URL: no schema can be made at 127\.0\.0\.1:1 .*\n$/)
        const other = yield* start("demo.ts", { DATABASE_URL: "mongodb://127.0.0.1/test" })
        assert.strictEqual(yield* other.exit, 1)
        assert.match(other.output(), /^ {2}✘ DATABASE_URL: this demo knows postgres:.*\n$/)
      }),
    timeout
  )

  it.live(
    "LIF-15: stops gracefully with Ctrl-C in the middle of slow orders, and still reports every record",
    () =>
      Effect.gen(function* () {
        const demo = yield* start("demo.ts")
        yield* demo.writes("app-2 gets SIGTERM")
        yield* demo.signal("SIGINT")
        assert.strictEqual(yield* demo.exit, 130, demo.output())
        assert.include(demo.output(), "interrupted: the instances finish what they have")
        assert.isBelow(accountOf(demo.output()).produced, 662)
      }),
    timeout
  )

  it.live(
    "reports a missing broker",
    () =>
      Effect.gen(function* () {
        const demo = yield* start("demo.ts", { KAFKA_BROKERS: "127.0.0.1:1" })
        assert.strictEqual(yield* demo.exit, 1)
        assert.match(demo.output(), /^ {2}✘ No broker of \[127\.0\.0\.1:1\] can be reached.*\n$/)
      }),
    timeout
  )
})

KafkaSuite.shared("the demo on a real Kafka", (bootstrap) => {
  it.live(
    "reports every record",
    () =>
      Effect.gen(function* () {
        const demo = yield* start("demo.ts", { KAFKA_BROKERS: bootstrap.join(",") })
        assert.strictEqual(yield* demo.exit, 0, demo.output())
        assert.match(demo.output(), inOrder)
        assert.deepStrictEqual(accountOf(demo.output()), { produced: 662, waiting: 0 })
      }),
    timeout
  )
})
