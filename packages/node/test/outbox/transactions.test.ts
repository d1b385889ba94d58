/** `outbox.write` in the transactions of every client for PostgreSQL: an event is there if and only if its data is. */
import { defineTopic, Serde, standardSchema } from "@eventbus/node"
import { createOutbox, OutboxError, type OutboxTransaction } from "@eventbus/node/outbox"
import { afterAll, beforeEach, describe, expect, it } from "vitest"
import { z } from "zod"
import { whenUsable } from "../../../../test/services/suites.ts"
import { clients } from "./clients.ts"
import { postgresProblem, schemaOfFile } from "./postgres.ts"

const orders = defineTopic("orders", { key: Serde.string, value: standardSchema(z.object({ id: z.string() })) })
const outbox = createOutbox({ dialect: "pg" })
const event = (id: string) => ({ topic: orders, key: id, value: { id } })

whenUsable("outbox.write on PostgreSQL", postgresProblem, () => {
  const schema = schemaOfFile()
  beforeEach(schema.empty)

  describe.each(Object.entries(clients))("in a transaction of %s", (_, make) => {
    const client = make(schema)
    afterAll(client.close)

    it("RCH-09: a committed transaction has its order and exactly one event, with key, headers and bytes", async () => {
      let id: string | undefined
      await client.transaction(async (tx, insertOrder) => {
        await insertOrder("o-1")
        id = await outbox.write(tx, { ...event("o-1"), headers: { source: "shop" }, tenantId: "t" })
      })
      expect(await schema.orders()).toEqual(["o-1"])
      const rows = await schema.rows()
      expect(rows).toMatchObject([
        {
          event_id: id,
          event_type: "orders",
          aggregate_id: "o-1",
          tenant_id: "t",
          payload: Buffer.from('{"id":"o-1"}'),
          content_type: "application/json",
          headers: '{"source":"shop"}'
        }
      ])
    })

    it("RCH-09: a transaction that is rolled back leaves neither", async () => {
      const rolledBack = client.transaction(async (tx, insertOrder) => {
        await insertOrder("o-1")
        await outbox.write(tx, event("o-1"))
        throw new Error("no stock")
      })
      await expect(rolledBack).rejects.toThrow("no stock")
      expect([await schema.orders(), await schema.rows()]).toEqual([[], []])
    })

    it("RCH-09: several events of one write keep their order; bytes and a missing key are stored as they are", async () => {
      await client.transaction(async (tx) => {
        await outbox.writeAll(tx, [event("o-1"), event("o-2"), event("o-3")])
        await outbox.write(tx, { topic: "audit", value: Buffer.from([0, 255, 10]) })
      })
      const rows = await schema.rows()
      expect(rows.map((row) => row.aggregate_id)).toEqual(["o-1", "o-2", "o-3", null])
      expect(rows.at(-1)).toMatchObject({
        event_type: "audit",
        payload: Buffer.from([0, 255, 10]),
        content_type: "application/octet-stream",
        headers: null
      })
    })

    it("RCH-09: outside of a transaction nothing is written, and the error says what to pass", async () => {
      const refused = outbox.write(client.outside as OutboxTransaction, event("o-1"))
      await expect(refused).rejects.toBeInstanceOf(OutboxError.NotInTransaction)
      await expect(refused).rejects.toThrow(/A write to the outbox needs an open transaction.*(allowed is|Pass) /)
      expect(await schema.rows()).toEqual([])
    })

    it("RCH-09: a transaction that has ended is refused, and nothing is written", async () => {
      let ended: OutboxTransaction | undefined
      await client.transaction(async (tx) => {
        ended = tx
      })
      await expect(outbox.write(ended!, event("o-1"))).rejects.toBeInstanceOf(OutboxError.NotInTransaction)
      expect(await schema.rows()).toEqual([])
    })
  })

  it("RCH-09: a client of pg that has not begun is refused by what the database says", async () => {
    const client = await schema.pool.connect()
    await expect(outbox.write(client, event("o-1"))).rejects.toThrow("the connection is in none")
    client.release()
    expect(await schema.rows()).toEqual([])
  })

  it("RCH-09: two writers at once: each transaction has its own events, and one that rolls back takes none of the other's", async () => {
    const client = clients["pg"]!(schema)
    const first = client.transaction(async (tx) => {
      for (const id of ["a-1", "a-2", "a-3"]) await outbox.write(tx, event(id))
    })
    const second = client.transaction(async (tx) => {
      for (const id of ["b-1", "b-2"]) await outbox.write(tx, event(id))
      throw new Error("second")
    })
    const refused = expect(second).rejects.toThrow("second")
    await first
    await refused
    expect((await schema.rows()).map((row) => row.aggregate_id)).toEqual(["a-1", "a-2", "a-3"])
  })

  it("RCH-09: a refusal of the database is the cause of the rejection", async () => {
    const client = clients["pg"]!(schema)
    const twice = client.transaction(async (tx) => {
      await outbox.write(tx, { ...event("o-1"), eventId: "e-1" })
      await outbox.write(tx, { ...event("o-1"), eventId: "e-1" })
    })
    await expect(twice).rejects.toMatchObject({ _tag: "OutboxStoreError", cause: { code: "23505" } })
    expect(await schema.rows()).toEqual([])
  })

  it("RCH-09: notify tells the listeners with the commit, and not before", async () => {
    const listener = await schema.pool.connect()
    const told: Array<string> = []
    listener.on("notification", ({ channel }) => void told.push(channel))
    await listener.query("LISTEN outbox_event_wake")
    const notifying = createOutbox({ dialect: "pg", notify: true })
    await clients["pg"]!(schema).transaction(async (tx) => {
      await notifying.write(tx, event("o-1"))
      await listener.query("SELECT 1")
      expect(told).toEqual([])
    })
    await listener.query("SELECT 1")
    expect(told).toEqual(["outbox_event_wake"])
    await listener.query("UNLISTEN *")
    listener.release()
  })
})
