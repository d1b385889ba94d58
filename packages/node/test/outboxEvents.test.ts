/** The way of an event until the first statement: its topic's serdes encode it, or it is refused with words. No database is needed. */
import { defineTopic, Serde, standardSchema } from "@eventbus/node"
import { createOutbox, OutboxError, type OutboxTransaction, outboxStatements } from "@eventbus/node/outbox"
import { describe, expect, expectTypeOf, it } from "vitest"
import { z } from "zod"

const Order = z.object({ id: z.string(), at: z.coerce.date() })
const orders = defineTopic("orders", { key: Serde.string, value: standardSchema(Order) })
const outbox = createOutbox({ dialect: "pg" })
const value = { id: "o-1", at: new Date(0) }

/** A transaction that notes its statements. */
const noted = () => {
  const statements: Array<{ readonly sql: string; readonly params: ReadonlyArray<unknown> }> = []
  const tx = async (sql: string, params: ReadonlyArray<unknown>) => void statements.push({ sql, params })
  return { tx, statements }
}

describe("an event of outbox.write", () => {
  it("RCH-09: the proof of a transaction comes first, then one insert for all events of a write", async () => {
    const { tx, statements } = noted()
    const ids = await outbox.writeAll(tx, [
      { topic: orders, key: "a", value },
      { topic: orders, key: "b", value, eventId: "e-2", occurredAt: 5 }
    ])
    expect(ids[1]).toBe("e-2")
    expect(statements.map(({ sql }) => sql.replace(/^(\w+ \w+ \w+).*/, "$1"))).toEqual([
      "LOCK TABLE outbox_event",
      "INSERT INTO outbox_event"
    ])
    expect(statements[1]!.params).toContain(ids[0])
    expect(statements[1]!.params).toContain(5)
    const none = noted()
    expect(await outbox.writeAll(none.tx, [])).toEqual([])
    expect(none.statements).toEqual([])
  })

  it("RCH-09: a Date is what the schema's JSON says, and bytes are Buffers for every client", async () => {
    const { tx, statements } = noted()
    await outbox.write(tx, { topic: orders, key: "a", value })
    await outbox.write(tx, { topic: "audit", value: new Uint8Array([1, 2]) })
    const payloads = statements.flatMap(({ params }) => params.filter((param) => param instanceof Uint8Array))
    expect(payloads.map((payload) => Buffer.isBuffer(payload))).toEqual([true, true])
    expect(payloads.map(String)).toEqual(['{"id":"o-1","at":"1970-01-01T00:00:00.000Z"}', "\u0001\u0002"])
  })

  it("RCH-09: headers of another record are forwarded without those of the connector; content-type says what the value is", async () => {
    const { tx, statements } = noted()
    const headers = { "x-eventbus-attempt": "3", traceparent: "00-a-b-01", "content-type": "text/csv" }
    await outbox.write(tx, { topic: "audit", key: "k", value: "a;b", headers })
    expect(statements[1]!.params).toContain('{"traceparent":"00-a-b-01"}')
    expect(statements[1]!.params).toContain("text/csv")
  })

  const huge = "x".repeat(129)
  it.each([
    [
      "a BigInt",
      { topic: defineTopic("orders", { value: standardSchema(z.bigint()) }), value: 1n },
      "EncodeFailure",
      "cannot encode the value for topic 'orders': Do not know how to serialize a BigInt"
    ],
    [
      "a value of another kind",
      { topic: orders, key: "a", value: { id: 5, at: new Date(0) } },
      "EncodeFailure",
      /json\(zod\) cannot encode the value for topic 'orders': .*expected string.* at \["id"\]/
    ],
    [
      "a missing key",
      { topic: orders, value },
      "EncodeFailure",
      "cannot encode the key for topic 'orders': Expected a string, got null"
    ],
    [
      "an object for a topic by name",
      { topic: "audit", value: { id: "o-1" } },
      "EncodeFailure",
      "cannot encode the value for topic 'audit'"
    ],
    ["a tombstone", { topic: "audit", value: null }, "RecordRejected", "a tombstone (null) has no place in the outbox"],
    [
      "a partition",
      { topic: "audit", value: "a", partition: 3 },
      "RecordRejected",
      "'partition' has no place in the outbox"
    ],
    ["a timestamp", { topic: "audit", value: "a", timestamp: 3 }, "RecordRejected", "use 'occurredAt'"],
    [
      "a key of bytes",
      { topic: "audit", key: Buffer.from([255]), value: "a" },
      "RecordRejected",
      "'key' is no text (UTF-8)"
    ],
    [
      "a long key",
      { topic: "audit", key: huge, value: "a" },
      "RecordRejected",
      "topic 'audit' was rejected: 'key' has 129 characters; at most 128 are allowed"
    ],
    ["a long topic", { topic: huge, value: "a" }, "RecordRejected", "'topic' has 129 characters"],
    [
      "a header of bytes",
      { topic: "audit", value: "a", headers: { h: Buffer.from([255]) } },
      "RecordRejected",
      "header 'h' is no text (UTF-8)"
    ],
    [
      "a repeated header",
      {
        topic: "audit",
        value: "a",
        headers: [
          { key: "h", value: Buffer.from("1") },
          { key: "h", value: Buffer.from("2") }
        ]
      },
      "RecordRejected",
      "header 'h' occurs twice"
    ],
    ["an id of other characters", { topic: "audit", value: "a", eventId: "é" }, "RecordRejected", "'eventId' is"],
    [
      "2 MiB",
      { topic: "audit", value: Buffer.alloc(2_097_152) },
      "PayloadTooLarge",
      "The payload of 'audit' has 2097152 bytes"
    ],
    ["no topic", { value: "a" }, "InvalidEnvelope", "'topic' is neither a text nor what defineTopic answers"],
    ["nothing", undefined, "InvalidEnvelope", "'topic' is neither"]
  ])("RCH-09: %s rejects before any statement, and says what is wrong where", async (_, given, tag, words) => {
    const { tx, statements } = noted()
    const written = outbox.write(tx, given as never)
    await expect(written).rejects.toMatchObject({ _tag: tag })
    await expect(written).rejects.toThrow(words)
    expect(statements).toEqual([])
  })

  it("RCH-09: one bad event among many keeps all of them out, and its index is told", async () => {
    const { tx, statements } = noted()
    const bad = { topic: orders, key: "b", value: { id: 5 } } as never
    await expect(outbox.writeAll(tx, [{ topic: orders, key: "a", value }, bad])).rejects.toThrow(
      "the value of message 1 for topic 'orders'"
    )
    const named = [
      { topic: "audit", value: "a" },
      { topic: "audit", key: huge, value: "b" }
    ]
    await expect(outbox.writeAll(tx, named)).rejects.toThrow("event 1: 'key' has 129 characters")
    const twice = [
      { topic: "audit", value: "a", eventId: "e" },
      { topic: "audit", value: "b", eventId: "e" }
    ]
    await expect(outbox.writeAll(tx, twice)).rejects.toThrow("'e' occurs twice in one write")
    expect(statements).toEqual([])
  })

  it("RCH-09: an event fits its topic", () => {
    const never = (tx: OutboxTransaction) => {
      void outbox.write(tx, { topic: orders, key: "k", value })
      // @ts-expect-error: the key is missing
      void outbox.write(tx, { topic: orders, value })
      // @ts-expect-error: id is a text
      void outbox.write(tx, { topic: orders, key: "k", value: { id: 5, at: new Date(0) } })
      // @ts-expect-error: a topic by name takes text or bytes
      void outbox.write(tx, { topic: "orders", value })
      // @ts-expect-error: a text is no transaction
      void outbox.write("tx", { topic: "orders", value: "a" })
    }
    expect(never).toBeInstanceOf(Function)
    expectTypeOf(outbox.write).returns.toEqualTypeOf<Promise<string>>()
  })
})

describe("a transaction of outbox.write", () => {
  const method = () => Promise.resolve()
  it.each([
    ["nothing", undefined, "found undefined, allowed is a transaction of pg, Kysely, Drizzle"],
    ["a URL", "postgres://", "found string"],
    ["an empty object", {}, "found an object of an unknown kind"],
    [
      "a pool of pg",
      { query: method, totalCount: 0 },
      "found a pool, whose statements run on any connection, allowed is a client behind BEGIN"
    ],
    ["a pool of mysql2", { query: method, execute: method, getConnection: method }, "found a pool"],
    ["a DataSource of TypeORM", { query: method, createQueryRunner: method }, "found a pool"],
    ["Drizzle's db", { execute: method, query: {} }, "found the db of Drizzle, allowed is the tx of db.transaction"],
    ["Kysely's db", { executeQuery: method, isTransaction: false }, "found a Kysely without a transaction"],
    ["Prisma's client", { $executeRawUnsafe: method, $connect: method }, "allowed is the tx of prisma.$transaction"]
  ])("RCH-09: %s is refused with what to pass", async (_, tx, words) => {
    const written = outbox.write(tx as never, { topic: "audit", value: "a" })
    await expect(written).rejects.toBeInstanceOf(OutboxError.NotInTransaction)
    await expect(written).rejects.toThrow(words)
  })

  it("RCH-09: a function that answers with no promise is refused before the insert", async () => {
    const statements: Array<string> = []
    const forgetful = (sql: string) => void statements.push(sql)
    const written = outbox.write(forgetful as never, { topic: "audit", value: "a" })
    await expect(written).rejects.toThrow("the transaction answered with undefined; a promise is expected")
    expect(statements).toHaveLength(1)
  })

  it("RCH-09: MySQL has placeholders and a proof of its own", async () => {
    const { tx, statements } = noted()
    await createOutbox({ dialect: "mysql", table: "shop.events" }).write(tx, { topic: "audit", value: "a" })
    expect(statements.map(({ sql }) => sql.slice(0, 30))).toEqual([
      "SAVEPOINT eventbus_outbox",
      "RELEASE SAVEPOINT eventbus_out",
      "INSERT INTO shop.events (event"
    ])
    expect(statements.at(-1)!.sql).not.toContain("$1")
  })
})

describe("the options of an outbox", () => {
  it("RCH-09: wrong options throw at once, and name what is allowed", () => {
    expect(() => createOutbox({ dialect: "oracle" as never })).toThrow(
      `dialect: found 'oracle', allowed "pg" or "mysql"`
    )
    expect(() => createOutbox({} as never)).toThrow("dialect")
    expect(() => createOutbox({ dialect: "pg", table: "drop table" })).toThrow("is not a legal table name")
    expect(() => outboxStatements("pg", { table: "drop table" })).toThrow("is not a legal table name")
  })
})
