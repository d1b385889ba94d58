import { assert, describe, it } from "@effect/vitest"
import { EventEnvelope, ListenerRegistry, Outbox } from "@eventbus/outbox"
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
