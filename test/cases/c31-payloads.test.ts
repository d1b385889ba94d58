import { assert, describe, it } from "@effect/vitest"
import { EventEnvelope, Inbox, ListenerRegistry, Outbox } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { onDatabases } from "../outbox/databases.ts"

const texts = ["", "null", "{}", "[]", ' {"a":1} ', '{"a":1,"a":2}', "not json", "a\0b", "🎉", "x".repeat(1_048_576)]

const inputs: ReadonlyArray<Omit<EventEnvelope.Input, "eventType">> = [
  ...texts.map((payloadJson) => ({ payloadJson })),
  { payload: null },
  { payloadBytes: new Uint8Array(0) },
  { payloadBytes: Uint8Array.from({ length: 256 }, (_, n) => n) },
  ...[{}, { k: "" }, { ключ: "знач🎉" }, { 'quote"': "back\\slash", "'": "''" }].map((headers) => ({
    payload: 1,
    headers
  }))
]

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")

const write = (events: ReadonlyArray<EventEnvelope.Input>) =>
  SqlClient.SqlClient.use((sql) => sql.withTransaction(Outbox.writeAll(events)))

onDatabases("C31 payloads and headers", (db) => {
  it.live(
    "OUT-W-02 OUT-W-05 ruling 43: the listener gets the same bytes and headers on the hot and on the cold path",
    () => {
      const received = new Map<string, readonly [string, ReadonlyArray<readonly [string, string]>]>()
      const listening = ListenerRegistry.layerAll((event) =>
        Effect.sync(() => received.set(event.eventId, [hex(event.payload), [...event.headers]]))
      )
      const named = (path: string) => inputs.map((input, n) => ({ ...input, eventType: "E", eventId: `${path}-${n}` }))
      const arrived = (count: number) =>
        Effect.sleep("10 millis").pipe(
          Effect.repeat({ until: () => received.size === count }),
          Effect.timeout("20 seconds")
        )
      return Effect.gen(function* () {
        // Nobody delivers yet: what is written now comes by the cold path.
        yield* Effect.provide(write(named("cold")), Layer.fresh(Outbox.writerOnly()))
        yield* Effect.gen(function* () {
          yield* arrived(inputs.length)
          // The poller sleeps for an hour from here on.
          yield* write(named("hot"))
          yield* arrived(2 * inputs.length)
        }).pipe(Effect.provide(Outbox.singleNode({ interval: "1 hour" }).pipe(Layer.provide(listening))))
        for (const [n, input] of inputs.entries()) {
          const { payload, headers } = yield* EventEnvelope.make({ eventType: "E", ...input })
          const expected = [hex(payload), [...headers]] as const
          assert.deepStrictEqual(received.get(`cold-${n}`), expected, `cold ${n}`)
          assert.deepStrictEqual(received.get(`hot-${n}`), expected, `hot ${n}`)
        }
      }).pipe(Effect.provide(db.migrated))
    }
  )
})

const fail = () => {
  throw new Error("trap")
}

describe("C31 what is no event", () => {
  it.effect(
    "ruling 16 ruling 43 what JSON would write as null, and what throws when it is read, is InvalidEnvelope",
    () =>
      Effect.gen(function* () {
        const hostile = new Proxy({}, { get: fail, has: fail, ownKeys: fail, getPrototypeOf: fail })
        const refused: ReadonlyArray<object> = [
          ...[Number.NaN, Infinity, -Infinity, { a: [null, Number.NaN] }, hostile].map((payload) => ({ payload })),
          ...[5, "abc", [1]].map((payloadBytes) => ({ payloadBytes })),
          ...[5, null, {}].map((payloadJson) => ({ payloadJson })),
          { payload: 1, headers: hostile },
          { payload: 1, occurredAt: Symbol("now") },
          hostile
        ]
        for (const input of refused) {
          const given = input === hostile ? hostile : { eventType: "E", ...input }
          const error = yield* Effect.flip(EventEnvelope.make(given as EventEnvelope.Input))
          assert.strictEqual(error._tag, "InvalidEnvelope")
        }
        for (const payload of [null, { a: null }, "null", "NaN"]) yield* EventEnvelope.make({ eventType: "E", payload })
      })
  )
})

describe("C31 an id of the inbox that is none", () => {
  it.effect("ruling 16 fails every delivery: none counts as handled", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox.make()
      let handled = 0
      const handler = Effect.sync(() => void handled++)
      for (const id of [undefined, null, "", Number.NaN, 1n, {}, Symbol("id")]) {
        for (const once of [inbox.once("billing", id as string), inbox.once(id as string, "event")]) {
          for (let delivery = 0; delivery < 2; delivery++) {
            const exit = yield* Effect.exit(once(handler))
            assert.include(String(exit), "InvalidEnvelope")
          }
        }
      }
      assert.strictEqual(handled, 0)
    }).pipe(
      Effect.provide(
        Layer.provideMerge(Layer.effectDiscard(Inbox.migrate()), NodeSqlite.layer({ filename: ":memory:" }))
      ),
      Effect.scoped
    )
  )
})

describe("C31 refused payloads and headers", () => {
  const make = (input: object) =>
    Effect.map(
      Effect.flip(EventEnvelope.make({ eventType: "E", ...input } as EventEnvelope.Input)),
      (error) => error._tag
    )

  it.effect("OUT-W-02 OUT-W-03: two payloads, no payload, and a payload of one byte too many", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* make({}), "InvalidEnvelope")
      assert.strictEqual(yield* make({ payloadJson: "{}", payloadBytes: new Uint8Array(1) }), "InvalidEnvelope")
      assert.strictEqual(yield* make({ payload: 1, payloadJson: "1" }), "InvalidEnvelope")
      assert.strictEqual(yield* make({ payloadJson: "x".repeat(1_048_577) }), "PayloadTooLarge")
      // Fewer than a million characters, and more than a mebibyte.
      assert.strictEqual(yield* make({ payloadJson: "🎉".repeat(400_000) }), "PayloadTooLarge")
    })
  )

  it.effect("OUT-W-04 OUT-W-18: a header without a value, and text that no database can store", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* make({ payload: 1, headers: { k: null } }), "InvalidEnvelope")
      assert.strictEqual(yield* make({ payload: 1, headers: { k: "a\0b" } }), "InvalidEnvelope")
      assert.strictEqual(yield* make({ payloadJson: "\ud800" }), "InvalidEnvelope")
    })
  )
})
