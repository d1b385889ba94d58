/** A connection that breaks between a statement and its answer, with a proxy before a real PostgreSQL. */
import { assert, it } from "@effect/vitest"
import { EventRetryPolicy, Inbox, ListenerRegistry, Outbox, OutboxSchema } from "@eventbus/outbox"
import { Effect, Exit, Layer, Logger, Option, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { pgIn, pgLogin } from "./clients.ts"
import * as CuttingProxy from "./cuttingProxy.ts"
import { onDatabases } from "./databases.ts"
import { namedSchema } from "./processes.ts"

/** Gets the number of its call. */
type Listener = (call: number) => Effect.Effect<unknown, unknown>

/** Through the proxy: a running outbox, and what it has done so far. A hook behind the commit and the listener run side by side. */
const scenario = <A, E>(
  listener: Listener,
  body: (
    proxy: CuttingProxy.CuttingProxy,
    seen: ReadonlyArray<string>
  ) => Effect.Effect<A, E, SqlClient.SqlClient | Layer.Success<ReturnType<typeof Outbox.singleNode>>>
) =>
  Effect.gen(function* () {
    const schema = yield* namedSchema
    const proxy = yield* CuttingProxy.make
    const { host, port } = proxy
    const seen: Array<string> = []
    let calls = 0
    const client = pgIn(schema, 4, { ...pgLogin, host, port })
    const outbox = Outbox.singleNode({
      interval: "200 millis",
      retryPolicy: EventRetryPolicy.fixed("50 millis"),
      hook: { afterCommit: () => Effect.sync(() => seen.push("after commit")) }
    }).pipe(
      Layer.provide(
        ListenerRegistry.layerAll((event) =>
          Effect.suspend(() => {
            seen.push(event.eventId)
            return listener(++calls)
          })
        )
      ),
      Layer.provide(Layer.effectDiscard(Effect.andThen(OutboxSchema.migrate(), Inbox.migrate()))),
      Layer.provideMerge(client),
      Layer.provideMerge(Logger.layer([]))
    )
    return yield* Effect.provide(body(proxy, seen), outbox)
  }).pipe(Effect.scoped)

const write = (eventId: string) =>
  SqlClient.SqlClient.use((sql) => sql.withTransaction(Outbox.write({ eventType: "E", eventId, payload: 1 })))

const stored = SqlClient.SqlClient.use(
  (sql) =>
    sql<{ event_id: string; status: number; attempts: number }>`SELECT event_id, status, attempts FROM outbox_event`
)

const untilDone = stored.pipe(
  Effect.retry({ times: 5 }),
  Effect.repeat({ until: (rows) => rows.every((row) => row.status === 1), schedule: Schedule.spaced("20 millis") }),
  Effect.timeout("20 seconds")
)

onDatabases("a connection cut", () => {
  it.live(
    "OUT-K-03: between COMMIT and its answer: the caller cannot know the outcome, and the event is delivered once",
    () =>
      scenario(
        () => Effect.void,
        Effect.fnUntraced(function* (proxy, seen) {
          yield* proxy.arm({ at: "answer", text: "COMMIT\0" })
          assert.isTrue(Exit.isFailure(yield* Effect.exit(write("e"))))
          assert.strictEqual(proxy.cuts(), 1)
          const rows = yield* untilDone
          assert.deepStrictEqual(rows, [{ event_id: "e", status: 1, attempts: 0 }])
          // By the poller: what may not have committed does not take the hot path.
          assert.deepStrictEqual(seen, ["e"])
          // Asking again with the same id finds that it is there.
          assert.isTrue(Exit.isFailure(yield* Effect.exit(write("e"))))
          assert.strictEqual((yield* untilDone).length, 1)
        })
      )
  )

  it.live("OUT-W-11: before COMMIT has arrived: no event exists, and none is delivered", () =>
    scenario(
      () => Effect.void,
      Effect.fnUntraced(function* (proxy, seen) {
        yield* proxy.arm({ at: "request", text: "COMMIT" })
        assert.isTrue(Exit.isFailure(yield* Effect.exit(write("e"))))
        assert.strictEqual(proxy.cuts(), 1)
        yield* Effect.sleep("500 millis")
        assert.deepStrictEqual(yield* stored, [])
        yield* write("next")
        yield* untilDone
        assert.deepStrictEqual(seen.toSorted(), ["after commit", "next"])
      })
    )
  )

  it.live(
    "OUT-D-18: between the mark of a handled event and its answer: the event is marked once and delivered once",
    () =>
      scenario(
        () => Effect.void,
        Effect.fnUntraced(function* (proxy, seen) {
          yield* proxy.arm({ at: "answer", text: "UPDATE 1\0" })
          yield* write("e")
          assert.deepStrictEqual(yield* untilDone, [{ event_id: "e", status: 1, attempts: 0 }])
          yield* Effect.sleep("500 millis")
          assert.strictEqual(proxy.cuts(), 1)
          assert.deepStrictEqual(seen.toSorted(), ["after commit", "e"])
        })
      )
  )

  it.live("OUT-S-06: between the mark of a failed event and its answer: the attempt counts once", () =>
    scenario(
      (call) => (call === 1 ? Effect.fail("not yet") : Effect.void),
      Effect.fnUntraced(function* (proxy, seen) {
        yield* proxy.arm({ at: "answer", text: "UPDATE 1\0" })
        yield* write("e")
        assert.deepStrictEqual(yield* untilDone, [{ event_id: "e", status: 1, attempts: 1 }])
        assert.strictEqual(proxy.cuts(), 1)
        assert.deepStrictEqual(seen.toSorted(), ["after commit", "e", "e"])
      })
    )
  )

  it.live("OUT-K-02: between COMMIT and its answer in the inbox: the next delivery finds it handled", () =>
    scenario(
      () => Effect.void,
      Effect.fnUntraced(function* (proxy) {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE account (orders integer)`
        yield* sql`INSERT INTO account VALUES (0)`
        const inbox = yield* Inbox.make()
        const bill = inbox.once("billing", "e")(sql`UPDATE account SET orders = orders + 1`)
        yield* proxy.arm({ at: "answer", text: "COMMIT\0" })
        assert.isTrue(Exit.isFailure(yield* Effect.exit(bill)))
        assert.isTrue(Option.isNone(yield* Effect.retry(bill, { times: 5 })))
        assert.deepStrictEqual(yield* sql`SELECT orders FROM account`, [{ orders: 1 }])
      })
    )
  )
}, ["PostgreSQL"])
