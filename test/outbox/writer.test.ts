/** Writing: envelopes, transactions, hooks, on every database. */
import { assert, describe, it } from "@effect/vitest"
import { EventEnvelope, EventType, JsonCodec, OutboxStore, OutboxWriter, TxContext, WriterHook } from "@eventbus/outbox"
import { Effect, Exit, Layer, Result } from "effect"
import { SqlClient } from "effect/sql"
import { onDatabases } from "./databases.ts"

const withWriter = (options?: OutboxWriter.WriterOptions) =>
  OutboxWriter.layer(options).pipe(
    Layer.provideMerge(Layer.mergeAll(Layer.orDie(OutboxStore.layer()), TxContext.layer))
  )

const stored = OutboxStore.OutboxStore.use((store) => store.pollPending({ limit: 1000 })).pipe(
  Effect.map((polled) => OutboxStore.separateUndecodable(polled).events)
)
const storedTypes = Effect.map(stored, (events) => events.map((e) => e.envelope.eventType))

const bytes = (text: string) => new TextEncoder().encode(text)

describe("EventEnvelope", () => {
  it.effect("OUT-W-01 OUT-W-06 OUT-W-07: defaults, typed and plain names, shorthand", () =>
    Effect.gen(function* () {
      const Orders = EventType.all("OrderPlaced", "OrderPaid")
      const typed = yield* EventEnvelope.make({
        eventType: Orders.OrderPlaced,
        aggregateType: EventType.of("order"),
        aggregateId: "o-1",
        payload: { a: 1 }
      })
      const short = yield* EventEnvelope.ofJson("OrderPaid", "{}")
      assert.strictEqual(typed.eventType, "OrderPlaced")
      assert.strictEqual(typed.aggregateType, "order")
      assert.strictEqual(short.aggregateType, "__GLOBAL__")
      assert.strictEqual(short.aggregateType, EventType.anyAggregateType.name)
      assert.deepStrictEqual([short.aggregateId, short.tenantId, short.headers.size], [undefined, undefined, 0])
      assert.strictEqual(short.occurredAtMillis, 0)
      assert.match(short.eventId, /^[0-9A-HJKMNP-TV-Z]{26}$/)
      assert.isTrue(typed.eventId < short.eventId)
    })
  )

  it.effect("OUT-W-02 OUT-W-03 C31: exactly one payload, limited in bytes, inclusive", () =>
    Effect.gen(function* () {
      const tagOf = (input: Partial<EventEnvelope.Input>) =>
        Effect.match(EventEnvelope.make({ eventType: "e", ...input }), {
          onFailure: (e) => e._tag,
          onSuccess: () => "ok"
        })
      assert.strictEqual(yield* tagOf({}), "InvalidEnvelope")
      assert.strictEqual(yield* tagOf({ payloadJson: "{}", payloadBytes: bytes("x") }), "InvalidEnvelope")
      assert.strictEqual(yield* tagOf({ payloadJson: "x".repeat(1_048_576) }), "ok")
      assert.strictEqual(yield* tagOf({ payloadJson: "x".repeat(1_048_577) }), "PayloadTooLarge")
      assert.strictEqual(yield* tagOf({ payloadJson: "🎉".repeat(400_000) }), "PayloadTooLarge")
      assert.strictEqual(yield* tagOf({ payloadJson: "" }), "ok")
      assert.strictEqual(yield* tagOf({ payloadBytes: new Uint8Array(0) }), "ok")
      assert.strictEqual(yield* tagOf({ payload: () => 1 }), "InvalidEnvelope")
      assert.strictEqual(yield* tagOf({ payload: 1n }), "InvalidEnvelope")
      assert.strictEqual(yield* tagOf({ payloadJson: "{}", occurredAt: Number.NaN }), "InvalidEnvelope")
    })
  )

  it.effect("OUT-W-04: an envelope is immutable, and a null header key is refused", () =>
    Effect.gen(function* () {
      const payload = bytes("abc")
      const headers = new Map([["k", "v"]])
      const envelope = yield* EventEnvelope.make({ eventType: "e", payloadBytes: payload, headers })
      payload[0] = 0
      headers.set("k", "changed")
      assert.deepStrictEqual(envelope.payload, bytes("abc"))
      assert.deepStrictEqual([...envelope.headers], [["k", "v"]])
      for (const bad of [new Map([[null, "v"]]), { k: null }, new Map([["k", 1]])]) {
        const refused = yield* Effect.flip(
          EventEnvelope.make({ eventType: "e", payloadJson: "{}", headers: bad as unknown as Record<string, string> })
        )
        assert.strictEqual(refused._tag, "InvalidEnvelope")
      }
    })
  )

  it.effect("OUT-W-18: text that a database cannot store is refused", () =>
    Effect.gen(function* () {
      const bad: ReadonlyArray<Partial<EventEnvelope.Input>> = [
        { eventType: "a\0b" },
        { eventType: "" },
        { eventType: "x".repeat(129) },
        { aggregateId: "\ud800" },
        { tenantId: "a\0" },
        { eventId: "x".repeat(37) },
        { headers: { k: "\ud800" } },
        { headers: { "k\0": "v" } },
        { payloadJson: '"\ud800"' }
      ]
      for (const input of bad) {
        const refused = yield* Effect.flip(EventEnvelope.make({ eventType: "e", payloadJson: "{}", ...input }))
        assert.strictEqual(refused._tag, "InvalidEnvelope", JSON.stringify(input))
      }
    })
  )

  it("OUT-T-07: the default codec reads and writes flat text maps only", () => {
    const { parseObject, toJson } = JsonCodec.defaultCodec
    assert.strictEqual(toJson(null), null)
    assert.strictEqual(toJson(new Map()), null)
    for (const text of [null, "", "null"]) assert.deepStrictEqual(parseObject(text), Result.succeed(new Map()))
    for (const text of ["[]", "1", "{", '{"a":1}', '{"a":{}}']) assert.isTrue(Result.isFailure(parseObject(text)), text)
    const odd = new Map([
      ["__proto__", "x"],
      ['q"\\', "знач🎉"],
      ["", ""]
    ])
    assert.deepStrictEqual(parseObject(toJson(odd)), Result.succeed(odd))
  })
})

onDatabases("OutboxWriter", (db) => {
  it.effect("OUT-W-05 OUT-W-08 C31: written payloads come back byte for byte", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const writer = yield* OutboxWriter.OutboxWriter
      const texts = ["", "null", "{}", "[]", ' {"a":1} ', '{"a":1,"a":2}', "not json", "a\0b", "🎉"]
      const inputs: ReadonlyArray<EventEnvelope.Input> = [
        ...texts.map((payloadJson) => ({ eventType: "json", payloadJson })),
        { eventType: "big", payloadJson: "x".repeat(1_048_576) },
        { eventType: "bytes", payloadBytes: new Uint8Array(0) },
        { eventType: "bytes", payloadBytes: Uint8Array.from({ length: 256 }, (_, i) => i) },
        {
          eventType: "all",
          aggregateType: "order",
          aggregateId: "",
          tenantId: "t-1",
          occurredAt: new Date("2031-02-03T04:05:06.789Z"),
          headers: { ключ: "знач🎉", 'q"\\': "'", "": "" },
          payload: { n: 1 }
        }
      ]
      const ids = yield* sql.withTransaction(
        Effect.gen(function* () {
          const one = yield* writer.write("first", "{}")
          return [one, ...(yield* writer.writeAll(inputs))]
        })
      )
      const expected = yield* Effect.forEach([{ eventType: "first", payloadJson: "{}" }, ...inputs], (input, i) =>
        EventEnvelope.make({ occurredAt: 0, ...input, eventId: ids[i]! })
      )
      const events = yield* stored
      assert.deepStrictEqual(
        events.map((e) => ({ ...e.envelope, payload: [...e.envelope.payload] })),
        expected.map((e) => ({ ...e, payload: [...e.payload] }))
      )
      assert.deepStrictEqual(
        events.map((e) => e.attempts),
        events.map(() => 0)
      )
    }).pipe(Effect.provide(Layer.provideMerge(withWriter(), db.migrated)))
  )

  it.effect("OUT-W-01 OUT-S-01: every database keeps an id of visible ASCII and refuses any other", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const writer = yield* OutboxWriter.OutboxWriter
      const write = (eventId: string) => sql.withTransaction(writer.write({ eventType: "e", eventId, payload: 1 }))
      const ids = ["!", "~", "A", "a", "tenant-7/2031:#1", "a b", "x".repeat(36)]
      for (const id of ids) assert.strictEqual(yield* write(id), id)
      for (const id of ["🎉-1", "é", "a ", " a", " ", "a\n", "a\u007f", ""]) {
        const refused = yield* Effect.flip(write(id))
        assert.deepInclude(refused, { _tag: "InvalidEnvelope", field: "eventId" })
        if (id !== "") assert.include(refused.message, `${JSON.stringify(id)}; only visible ASCII characters`)
      }
      assert.deepStrictEqual(
        (yield* stored).map((event) => event.eventId),
        ids
      )
    }).pipe(Effect.provide(Layer.provideMerge(withWriter(), db.migrated)))
  )

  it.effect("OUT-W-09 OUT-W-10: ids come in order; without a transaction nothing is written", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const writer = yield* OutboxWriter.OutboxWriter
      assert.strictEqual((yield* Effect.flip(writer.write("e", "{}")))._tag, "NotInTransaction")
      assert.strictEqual((yield* Effect.flip(writer.writeAll([])))._tag, "NotInTransaction")
      assert.deepStrictEqual(yield* stored, [])
      const ids = yield* sql.withTransaction(
        writer.writeAll(Array.from({ length: 450 }, (_, i) => ({ eventType: "e", payload: i })))
      )
      assert.deepStrictEqual(yield* sql.withTransaction(writer.writeAll([])), [])
      assert.deepStrictEqual(
        (yield* stored).map((e) => e.eventId),
        ids
      )
    }).pipe(Effect.provide(Layer.provideMerge(withWriter(), db.migrated)))
  )

  it.effect("OUT-T-04 OUT-W-11 OUT-W-16: rollbacks, savepoints included, leave no row and fire nothing", () => {
    const fired: Array<string> = []
    const hook: WriterHook.WriterHook = {
      afterCommit: (events) => Effect.sync(() => void fired.push(...events.map((e) => `commit ${e.eventType}`))),
      afterRollback: (events) => Effect.sync(() => void fired.push(...events.map((e) => `rollback ${e.eventType}`)))
    }
    return Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const writer = yield* OutboxWriter.OutboxWriter
      yield* TxContext.withTransaction(
        Effect.gen(function* () {
          yield* writer.write("kept", "{}")
          yield* Effect.exit(
            TxContext.withTransaction(Effect.andThen(writer.write("savepoint", "{}"), Effect.fail("no")))
          )
          assert.deepStrictEqual(fired, ["rollback savepoint"])
          yield* sql.withTransaction(writer.write("inner", "{}"))
        })
      )
      const out = yield* Effect.exit(
        TxContext.withTransaction(Effect.andThen(writer.write("outer", "{}"), Effect.fail("no")))
      )
      assert.isTrue(Exit.isFailure(out))
      yield* Effect.exit(sql.withTransaction(Effect.andThen(writer.write("plain", "{}"), Effect.die("no"))))
      assert.deepStrictEqual(yield* storedTypes, ["kept", "inner"])
      assert.deepStrictEqual(fired, ["rollback savepoint", "commit kept", "commit inner", "rollback outer"])
    }).pipe(Effect.provide(Layer.provideMerge(withWriter({ hook }), db.migrated)))
  })

  it.effect("OUT-W-12 OUT-W-13 OUT-W-15: one callback per batch, in lifecycle order", () => {
    const calls: Array<string> = []
    const note = (name: string) => (events: ReadonlyArray<EventEnvelope.EventEnvelope>) =>
      Effect.sync(() => void calls.push(`${name} ${events.length}`))
    const hook: WriterHook.WriterHook = {
      beforeWrite: (events) => Effect.as(note("beforeWrite")(events), events.slice(1)),
      afterWrite: note("afterWrite"),
      afterCommit: note("afterCommit"),
      afterRollback: note("afterRollback")
    }
    return Effect.gen(function* () {
      const writer = yield* OutboxWriter.OutboxWriter
      const three = writer.writeAll(["a", "b", "c"].map((eventType) => ({ eventType, payload: 1 })))
      const ids = yield* TxContext.withTransaction(Effect.tap(three, () => Effect.sync(() => calls.push("body"))))
      yield* Effect.exit(TxContext.withTransaction(Effect.andThen(three, Effect.fail("no"))))
      assert.strictEqual(ids.length, 2)
      assert.deepStrictEqual(calls, [
        ...["beforeWrite 3", "afterWrite 2", "body", "afterCommit 2"],
        ...["beforeWrite 3", "afterWrite 2", "afterRollback 2"]
      ])
      assert.deepStrictEqual(yield* storedTypes, ["b", "c"])
    }).pipe(Effect.provide(Layer.provideMerge(withWriter({ hook }), db.migrated)))
  })

  it.effect("OUT-W-13: a rollback hook in a transaction that cannot run it refuses the write before the insert", () => {
    const calls: Array<string> = []
    const hook: WriterHook.WriterHook = { afterRollback: () => Effect.sync(() => void calls.push("rollback")) }
    return Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const writer = yield* OutboxWriter.OutboxWriter
      const refused = yield* sql.withTransaction(Effect.flip(writer.write("e", "{}")))
      assert.strictEqual(refused._tag, "RollbackHookUnsupported")
      assert.include(refused.message, "TxContext.withTransaction")
      assert.deepStrictEqual(yield* stored, [])
      yield* TxContext.withTransaction(writer.write("e", "{}"))
      // A write that was refused has nothing to roll back.
      const twice = [1, 2].map(() => ({ eventType: "e", eventId: "same", payload: 1 }))
      yield* Effect.exit(TxContext.withTransaction(writer.writeAll(twice)))
      assert.deepStrictEqual(calls, [])
      yield* Effect.exit(TxContext.withTransaction(Effect.andThen(writer.write("e", "{}"), Effect.fail("no"))))
      assert.deepStrictEqual(calls, ["rollback"])
      assert.deepStrictEqual(yield* storedTypes, ["e"])
    }).pipe(Effect.provide(Layer.provideMerge(withWriter({ hook }), db.migrated)))
  })

  it.effect("OUT-W-14 C29: failing hooks never touch a committed write; beforeWrite decides", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const batch = ["a", "b", "c", "d", "e"].map((eventType) => ({ eventType, payload: 1 }))
      const writeWith = (hook: WriterHook.WriterHook) =>
        Effect.gen(function* () {
          const writer = yield* OutboxWriter.make({ hook })
          return yield* TxContext.withTransaction(writer.writeAll(batch))
        })
      const thrower = () => {
        throw undefined
      }
      const ok = yield* writeWith({
        afterWrite: thrower,
        afterCommit: () => Effect.fail("x"),
        afterRollback: () => Effect.die(1)
      })
      assert.strictEqual(ok.length, 5)
      assert.strictEqual((yield* stored).length, 5)
      const refused = yield* Effect.flip(
        writeWith({ beforeWrite: () => Effect.fail(new WriterHook.WriteRefused({ reason: "closed" })) })
      )
      assert.strictEqual(refused._tag, "WriteRefused")
      const callbacks: Array<string> = []
      const afterCommit = () => Effect.sync(() => void callbacks.push("fired"))
      assert.deepStrictEqual(yield* writeWith({ beforeWrite: () => Effect.succeed(null), afterCommit }), [])
      assert.deepStrictEqual(yield* writeWith({ beforeWrite: () => Effect.succeed([]), afterCommit }), [])
      assert.deepStrictEqual(callbacks, [])
      const twice = yield* Effect.flip(writeWith({ beforeWrite: (e) => Effect.succeed([e[0]!, e[1]!, e[0]!]) }))
      assert.strictEqual(twice._tag, "InvalidEnvelope")
      const huge = new Uint8Array(1_048_577)
      const tooLarge = yield* Effect.flip(
        writeWith({ beforeWrite: (e) => Effect.succeed([{ ...e[0]!, payload: huge }]) })
      )
      assert.strictEqual(tooLarge._tag, "PayloadTooLarge")
      assert.strictEqual((yield* stored).length, 5)
      yield* writeWith({ beforeWrite: (e) => Effect.succeed(e.map((x) => ({ ...x, tenantId: "changed" }))) })
      assert.strictEqual((yield* stored).filter((e) => e.envelope.tenantId === "changed").length, 5)
      yield* sql`SELECT 1`
    }).pipe(
      Effect.provide(Layer.provideMerge(Layer.mergeAll(Layer.orDie(OutboxStore.layer()), TxContext.layer), db.migrated))
    )
  )

  it.effect(
    "OUT-T-01 OUT-T-02 OUT-T-03: a transaction that Effect does not own takes the row and says how it ended",
    () => {
      const fired: Array<string> = []
      const hook: WriterHook.WriterHook = {
        afterCommit: () => Effect.sync(() => void fired.push("commit")),
        afterRollback: () => Effect.sync(() => void fired.push("rollback"))
      }
      return Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const tx = yield* TxContext.TxContext
        const writer = yield* OutboxWriter.OutboxWriter
        assert.isFalse(yield* tx.isTransactionActive)
        assert.strictEqual((yield* Effect.flip(tx.afterCommit(Effect.void)))._tag, "NotInTransaction")
        const own = yield* sql.reserve
        const query = (text: string, params: ReadonlyArray<unknown>) => Effect.runPromise(own.executeRaw(text, params))
        for (const end of ["COMMIT", "ROLLBACK"]) {
          yield* Effect.promise(() => query("BEGIN", []))
          const joined = TxContext.join(query)
          yield* joined.run(
            Effect.gen(function* () {
              assert.isTrue(yield* tx.isTransactionActive)
              yield* writer.write(end, "{}")
            })
          )
          assert.strictEqual(fired.length, end === "COMMIT" ? 0 : 1)
          yield* Effect.promise(() => query(end, []))
          yield* end === "COMMIT" ? joined.committed : joined.rolledBack
        }
        const execute: TxContext.Execute = (text, params) => Effect.orDie(own.executeRaw(text, params))
        yield* TxContext.transaction(execute)(writer.write("helper", "{}"))
        yield* Effect.exit(
          TxContext.transaction(execute)(Effect.andThen(writer.write("gone", "{}"), Effect.fail("no")))
        )
        const found = yield* own.execute("SELECT event_type FROM outbox_event ORDER BY seq", [], undefined)
        assert.deepStrictEqual(
          found.map((row) => row.event_type),
          ["COMMIT", "helper"]
        )
        assert.deepStrictEqual(fired, ["commit", "rollback", "commit", "rollback"])
      }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(withWriter({ hook }), db.migrated)))
    }
  )

  it.effect("the caller's span travels as traceparent, the SQL client's own does not", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const writer = yield* OutboxWriter.OutboxWriter
      const write = sql.withTransaction(writer.write("e", "{}"))
      yield* write
      const traceId = yield* Effect.andThen(
        write,
        Effect.map(Effect.currentSpan, (s) => s.traceId)
      ).pipe(Effect.withSpan("order.place"), Effect.orDie)
      const [plain, traced] = yield* stored
      assert.isFalse(plain!.envelope.headers.has("traceparent"))
      assert.strictEqual(traced!.envelope.headers.get("traceparent")?.split("-")[1], traceId)
    }).pipe(Effect.provide(Layer.provideMerge(withWriter(), db.migrated)))
  )
})
