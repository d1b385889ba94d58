/** A table with a million finished rows: the cost of claims, and the effect of a purge on writers. */
import { Outbox, OutboxStore, PurgeScheduler } from "@eventbus/outbox"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { Role } from "../harness/Benchmark.ts"
import { now, since } from "../harness/stopwatch.ts"
import { fill, settle } from "./backlog.ts"
import { postgres } from "./databases.ts"

const pending = 20_000

/** Rows of 500 bytes that became DONE a month ago. */
const insertDone = (rows: number) =>
  SqlClient.SqlClient.use(
    (sql) => sql`INSERT INTO outbox_event (event_id, event_type, aggregate_type, payload, status, done_at)
      SELECT 'done-' || n, 'bench', 'order', convert_to(repeat('x', 500), 'UTF8'), 1, now() - interval '30 days'
      FROM generate_series(1, ${rows}) AS n`
  ).pipe(Effect.andThen(settle))

/** Duration in milliseconds of a query for the lag, as the health check makes it. */
const lagTimes = Effect.gen(function* () {
  const store = yield* OutboxStore.OutboxStore
  const millis: Array<number> = []
  for (let n = 0; n < 20; n++) {
    const start = now()
    yield* store.lag
    millis.push(since(start).millis)
  }
  return millis
})

/** Duration in milliseconds of each claim of 500 rows until the table is empty. */
const claimAll = Effect.gen(function* () {
  const store = yield* OutboxStore.OutboxStore
  const millis: Array<number> = []
  for (;;) {
    const start = now()
    const claimed = yield* store.claimPending({ limit: 500, owner: "bench", lockTimeout: "1 hour" })
    if (claimed.length === 0) return millis
    millis.push(since(start).millis)
  }
})

const beside = (doneRows: number) =>
  Effect.gen(function* () {
    if (doneRows > 0) yield* insertDone(doneRows)
    yield* fill(pending)
    return { lag: yield* lagTimes, claims: yield* claimAll }
  }).pipe(Effect.provide(postgres))

const medianOf = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

export const claiming: Role<Readonly<Record<"doneRows", number>>> = Effect.fnUntraced(function* ({ parameters }) {
  yield* beside(0)
  const empty = yield* beside(0)
  const full = yield* beside(parameters.doneRows)
  return {
    empty: empty.claims,
    full: full.claims,
    ratio: [medianOf(full.claims) / medianOf(empty.claims)],
    lag: full.lag
  }
})

/** A writer commits one event after another during a purge. Returns the durations of its transactions, before and meanwhile. */
export const purging: Role<Readonly<Record<"doneRows", number>>> = ({ parameters }) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* OutboxStore.OutboxStore
    yield* insertDone(parameters.doneRows)
    const scheduler = yield* PurgeScheduler.make({ purger: PurgeScheduler.terminal(store) })
    const write = sql.withTransaction(Outbox.write({ eventType: "bench", payloadJson: "x".repeat(500) }))
    const writing = (into: Array<number>) =>
      Effect.gen(function* () {
        const start = now()
        yield* write
        into.push(since(start).millis)
        yield* Effect.sleep("2 millis")
      }).pipe(Effect.forever, Effect.forkScoped)
    const alone: Array<number> = []
    const before = yield* writing(alone)
    yield* Effect.sleep("5 seconds")
    yield* Fiber.interrupt(before)
    const meanwhile: Array<number> = []
    yield* writing(meanwhile)
    const start = now()
    const removed = yield* scheduler.runOnce
    const spent = since(start)
    // A small purge ends before the write that it began beside.
    yield* Effect.repeat(Effect.sleep("1 milli"), { while: () => meanwhile.length === 0 })
    if (removed !== parameters.doneRows) return yield* Effect.fail(`${removed} rows were purged`)
    return {
      alone,
      meanwhile,
      pause: [Math.max(...meanwhile)],
      rate: [(removed / spent.millis) * 1000]
    }
  }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(Outbox.writerOnly(), postgres)))
