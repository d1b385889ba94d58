/** Input from outside is data: it cannot choose the objects that are made, cannot run as SQL, and a secret in it is not shown. */
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Configuration } from "@eventbus/config"
import { Binding, Serde } from "@eventbus/core"
import { EventEnvelope, Inbox, OutboxSchema, OutboxStore, SqlIdempotencyStore } from "@eventbus/outbox"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { MemoryBroker } from "@eventbus/testkit"
import { Duration, Effect, Exit, Option, Result, Schema } from "effect"
import { SqlClient } from "effect/sql"
import * as Bus from "../scenarios/bus.ts"

class Order extends Schema.Class<Order>("Order")({ id: Schema.String }) {}
class Forbidden extends Schema.Class<Forbidden>("Forbidden")({ id: Schema.String }) {}

describe("records", () => {
  Bus.scenario("SEC-02 a record is decoded to the type of its binding, whatever its header claims", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 1 })
      const seen: Array<unknown> = []
      yield* Bus.start(
        Binding.make("orders", {
          ...Bus.orders,
          value: Serde.json(Order),
          handler: ({ value }) => Effect.sync(() => void seen.push(value))
        })
      )
      const claims =
        '"@type":"Forbidden","@class":"java.lang.Runtime","_tag":"Forbidden","constructor":{"name":"Forbidden"}'
      const headers = ["__TypeId__", "x-type", "content-type"].map((key) => ({ key, value: Bus.bytes("Forbidden") }))
      yield* memory.append("orders", 0, [
        { key: null, value: Bus.bytes(`{"id":"1","__proto__":{"admin":true},${claims}}`), headers }
      ])
      yield* Bus.settle
      assert.deepStrictEqual(seen, [new Order({ id: "1" })])
      assert.isFalse(seen[0] instanceof Forbidden)
      assert.deepStrictEqual(Object.getOwnPropertyNames(seen[0]), ["id"])
      assert.isUndefined(Reflect.get({}, "admin"))
      assert.isUndefined(Reflect.get(seen[0] as object, "admin"))
    })
  )
})

/** Each would end its statement, or be another value, if it were pasted into one. */
const hostile = ["'); DROP TABLE outbox_event; --", "' OR '1'='1", '"', "\\'", "`", "$1", "?", "%", "_", "ключ", "null"]

/** The id of an event is ASCII. */
const idOf = (text: string): string => (/^[ -~]+$/.test(text) ? text : encodeURIComponent(text))

const database = () => NodeSqlite.layer({ filename: ":memory:" })

describe("SQL", () => {
  it.effect("SEC-04 values are parameters: each comes back unchanged and affects only its own row", () =>
    Effect.gen(function* () {
      yield* OutboxSchema.migrate()
      const store = yield* OutboxStore.make()
      const events = yield* Effect.forEach(hostile, (text) =>
        EventEnvelope.make({
          eventId: idOf(text),
          eventType: text,
          aggregateType: text,
          aggregateId: text,
          headers: { [text]: text },
          payload: text
        })
      )
      yield* store.insertNew(events)
      for (const owner of hostile) {
        const claimed = yield* store.claimPending({ owner, lockTimeout: "1 minute", limit: 1 })
        assert.strictEqual(claimed.length, 1)
        const { eventId, eventType, aggregateType, aggregateId, headers } = Result.getOrThrow(claimed[0]!.envelope)
        assert.strictEqual(eventId, idOf(eventType))
        for (const text of [aggregateType, aggregateId]) assert.strictEqual(text, eventType)
        assert.deepStrictEqual(headers, new Map([[eventType, eventType]]))
        assert.deepStrictEqual(yield* store.renewClaims(owner, [eventId]), [eventId])
        assert.strictEqual(yield* store.markDead(eventId, owner, { _tag: "Claim", owner }), 1)
      }
      for (const text of hostile) {
        assert.strictEqual(yield* store.countDead({ eventType: text, aggregateType: text }), 1)
        assert.strictEqual(yield* store.replayDead(idOf(text)), 1)
      }
      assert.strictEqual((yield* store.pollPending({ limit: 100 })).length, hostile.length)
      yield* Inbox.migrate()
      const inbox = yield* Inbox.make()
      yield* SqlIdempotencyStore.migrate()
      const keys = yield* SqlIdempotencyStore.make()
      const seldom = Duration.minutes(1)
      for (const text of hostile) {
        assert.isTrue(Option.isSome(yield* inbox.once(text, text)(Effect.succeed("first"))))
        assert.isTrue(Option.isNone(yield* inbox.once(text, text)(Effect.succeed("again"))))
        const claims = [yield* keys.begin(text, { lease: seldom }), yield* keys.begin(text, { lease: seldom })]
        assert.notStrictEqual(claims[0]?._tag, claims[1]?._tag)
      }
    }).pipe(Effect.provide(database()))
  )

  it.effect("SEC-05 every component refuses a table name that is not an identifier, and runs nothing", () =>
    Effect.gen(function* () {
      const components = {
        store: (table: string) => OutboxStore.make({ table }),
        schema: (table: string) => OutboxSchema.migrate({ table }),
        verify: (table: string) => OutboxSchema.verify({ table }),
        inbox: (table: string) => Inbox.make({ table }),
        inboxSchema: (table: string) => Inbox.migrate({ table }),
        keys: (table: string) => SqlIdempotencyStore.make({ table }),
        keySchema: (table: string) => SqlIdempotencyStore.migrate({ table }),
        keyPurge: (table: string) => SqlIdempotencyStore.purge({ table })
      }
      const names = ["", "a b", "a;drop", "a'", 'a"', "a`", "1a", "a.b.c", "x".repeat(41), "ä", "a.", "a--", "a\n"]
      for (const [name, use] of Object.entries(components)) {
        for (const table of names) {
          const used: Effect.Effect<unknown, unknown, SqlClient.SqlClient> = use(table)
          const exit = yield* Effect.exit(used)
          assert.isTrue(
            Exit.isFailure(exit) && inspect(exit, { depth: 5 }).includes("InvalidIdentifier"),
            `${name} '${table}'`
          )
        }
      }
      const sql = yield* SqlClient.SqlClient
      assert.deepStrictEqual(yield* sql`SELECT name FROM sqlite_master`, [])
    }).pipe(Effect.provide(database()))
  )
})

const secret = "hunter2-s3cret"
const clusterOf = (lines: ReadonlyArray<string>) =>
  ["eventbus:", "  clusters:", "    default:", ...lines.map((line) => `      ${line}`), "  bindings: {}"].join("\n")

describe("configuration", () => {
  it.effect("SEC-01 printing the configuration never shows a password of a file or a variable", () =>
    Effect.gen(function* () {
      const text = clusterOf([
        "brokers: a:1",
        "ssl: { key: $PASSWORD, passphrase: $PASSWORD }",
        "sasl: { mechanism: plain, username: app, password: $PASSWORD }"
      ])
      const read = yield* Configuration.parse(text.replaceAll("$PASSWORD", `'\${PASSWORD}'`), {
        env: { PASSWORD: secret }
      })
      const written = yield* Configuration.parse(text.replaceAll("$PASSWORD", secret))
      for (const configuration of [read, written]) {
        assert.include(inspect(configuration, { depth: 20 }), "app")
        for (const print of [JSON.stringify(configuration), inspect(configuration, { depth: 20, showHidden: true })]) {
          assert.notInclude(print, secret)
        }
      }
    })
  )

  it.effect("SEC-01 the message about a mistake at or beside a secret does not show it", () =>
    Effect.gen(function* () {
      const mistakes = [
        `sasl: { mechanism: plain, username: app, password: [${secret}] }`,
        `sasl: { mechanism: plain, username: app, password: { value: ${secret} } }`,
        `sasl: { mechanism: plain, username: app, passwrd: ${secret} }`,
        `sasl: { mechanism: kerberos, username: app, password: ${secret} }`,
        `ssl: { key: [${secret}] }`
      ]
      for (const mistake of mistakes) {
        const error = yield* Effect.flip(Configuration.parse(clusterOf(["brokers: a:1", mistake])))
        const prints = [error.message, JSON.stringify(error), inspect(error, { depth: 20 })]
        for (const print of prints) assert.notInclude(print, secret, mistake)
      }
    })
  )
})
