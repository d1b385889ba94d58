/** The dispatcher that a bus starts: from a transaction without Effect to the record, through starts, stops and deaths. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import {
  consumer,
  createEventBus,
  defineTopic,
  EventBusError,
  type EventBusOptions,
  Serde,
  standardSchema
} from "@eventbus/node"
import { createOutbox, type OutboxDispatcherOptions, outboxDispatcher } from "@eventbus/node/outbox"
import { memoryKafka } from "@eventbus/node/testing"
import { drizzle } from "drizzle-orm/node-postgres"
import { beforeEach, describe, expect, it, onTestFinished } from "vitest"
import { z } from "zod"
import { whenUsable } from "../../../../test/services/suites.ts"
import { until } from "../bus.ts"
import { postgresProblem, schemaOfFile } from "./postgres.ts"

const orders = defineTopic("orders", { key: Serde.string, value: standardSchema(z.object({ id: z.string() })) })
const outbox = createOutbox({ dialect: "pg", notify: true })

/** A bus with a dispatcher on a cluster with topic `orders`. The end of the test stops both. */
const busWith = (dispatcher: Partial<OutboxDispatcherOptions>, options: Partial<EventBusOptions> = {}) => {
  const kafka = memoryKafka({ topics: { orders: 1 } })
  const lines: Array<string> = []
  const bus = createEventBus({
    kafka,
    signals: [],
    log: ({ message }) => void lines.push(message),
    outbox: outboxDispatcher({ interval: "100ms", ...dispatcher } as OutboxDispatcherOptions),
    ...options
  })
  onTestFinished(async () => {
    await bus.stop()
    await kafka.close()
  })
  return { bus, kafka, lines }
}

whenUsable("the dispatcher of a bus on PostgreSQL", postgresProblem, () => {
  const schema = schemaOfFile()
  const db = drizzle(schema.pool)
  const place = (id: string) =>
    db.transaction((tx) => outbox.write(tx, { topic: orders, key: id, value: { id }, headers: { source: "shop" } }))
  beforeEach(schema.empty)

  it("RCH-09: an event of a Drizzle transaction becomes exactly one record, and a consumer handles it; then the table is empty", async () => {
    const handled: Array<unknown> = []
    const { bus, kafka } = busWith(
      { database: schema.url },
      {
        consumers: {
          orders: consumer({
            ...orders,
            groupId: "billing",
            handler: ({ key, value }) => void handled.push([key, value])
          })
        }
      }
    )
    await bus.start()
    await bus.ready()
    expect(bus.health()).toEqual({ status: "UP", live: true, ready: true, reasons: [] })
    const eventId = await place("o-1")
    await db
      .transaction(async (tx) => {
        await outbox.write(tx, { topic: orders, key: "o-2", value: { id: "o-2" } })
        throw new Error("no stock")
      })
      .catch(() => undefined)
    await until(() => handled.length === 1)
    expect(handled).toEqual([["o-1", { id: "o-1" }]])
    const records = await kafka.records("orders")
    const texts = records.map(({ headers }) =>
      Object.fromEntries(headers.map(({ key, value }) => [key, Buffer.from(value ?? []).toString()]))
    )
    expect(texts).toMatchObject([
      { "x-eventbus-event-id": eventId, source: "shop", "content-type": "application/json" }
    ])
    await until(async () => (await schema.rows()).length === 0)
    await bus.stop()
    expect(bus.health().reasons).toMatchObject([{ type: "NotRunning" }])
  })

  it("RCH-09: a stopped bus delivers nothing, and a bus that starts again delivers what was written meanwhile", async () => {
    const { bus, kafka } = busWith({ database: () => Promise.resolve(schema.url) })
    await bus.start()
    await bus.ready()
    await bus.stop()
    await place("o-1")
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(await kafka.records("orders")).toEqual([])
    await bus.start()
    await until(async () => (await kafka.records("orders")).length === 1)
  })

  it("RCH-09: a database that is away keeps no bus from starting: health says so, and the dispatcher comes when it is back", async () => {
    let isAway = true
    const away = schema.url.replace(/:\d+\//, ":1/")
    const { bus, kafka, lines } = busWith({ database: () => (isAway ? away : schema.url) })
    await bus.start()
    await until(() => bus.health().reasons.some(({ message }) => message.startsWith("The outbox does not run")))
    expect(bus.health()).toMatchObject({ status: "DOWN", live: true, ready: false, reasons: [{ type: "OutboxDown" }] })
    await until(() => lines.some((line) => line.includes("trying again in 1000 ms")))
    isAway = false
    await place("o-1")
    await until(async () => (await kafka.records("orders")).length === 1)
    await until(() => bus.health().ready)
  })

  it("RCH-09: tables that are missing are named, and migrate makes them", async () => {
    const missing = busWith({ database: schema.url, table: "shop_event" })
    await missing.bus.start()
    await until(() => missing.bus.health().reasons.some(({ message }) => message.includes("Table 'shop_event' lacks")))
    await missing.bus.stop()
    const made = busWith({ database: schema.url, table: "shop_event", migrate: true })
    await made.bus.start()
    await made.bus.ready()
    await db.transaction((tx) =>
      createOutbox({ dialect: "pg", table: "shop_event" }).write(tx, { topic: "orders", value: "o-1" })
    )
    await until(async () => (await made.kafka.records("orders")).length === 1)
  })

  it("RCH-09: a process that dies in the middle: a second one delivers each committed event once, in order per key, and no other", async () => {
    const child = spawn(process.execPath, [fileURLToPath(new URL("./deadProcess.ts", import.meta.url)), schema.url], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    onTestFinished(() => void child.kill("SIGKILL"))
    await once(child.stdout, "data")
    child.kill("SIGKILL")
    await once(child, "exit")
    expect(await schema.rows()).toHaveLength(20)
    const { bus, kafka } = busWith({ database: schema.url, lease: "1s" })
    await bus.start()
    await until(async () => (await kafka.records("orders")).length === 20)
    const records = (await kafka.records("orders")).map(({ key, value }) =>
      [key, value].map((part) => Buffer.from(part!).toString())
    )
    for (const key of ["k-0", "k-1", "k-2"]) {
      const values = records.filter(([k]) => k === key).map(([, value]) => Number(value))
      expect(values).toEqual(values.toSorted((a, b) => a - b))
    }
    await until(async () => (await schema.rows()).length === 0)
    expect(new Set(records.map(([, value]) => value)).size).toBe(20)
  })
})

describe("the options of a dispatcher", () => {
  it.each([
    ["a database that is no URL", { database: "localhost" }, "outbox.database: found no URL"],
    ["another database", { database: "oracle://shop:secret@db/shop" }, "outbox.database: found the scheme oracle://"],
    ["a duration that is none", { interval: "soon" }, /outbox\.interval: found .?soon/],
    ["a table that is none", { table: 5 }, "outbox.table: found 5"],
    ["an unknown option", { intervall: 5 }, "outbox.intervall: found an unknown option"],
    ["an unknown cluster", { cluster: "dr" }, 'outbox.cluster: found "dr", allowed is one of the clusters default'],
    ["an option of the producer", { producer: { acks: 7 } }, "outbox.producer"]
  ])("RCH-09: a start with %s rejects with words", async (_, options, words) => {
    const { bus } = busWith({ database: "postgres://localhost:1/none", ...options } as Partial<OutboxDispatcherOptions>)
    const started = bus.start()
    await expect(started).rejects.toBeInstanceOf(EventBusError.ConfigurationValidation)
    await expect(started).rejects.toThrow(words)
    await expect(started).rejects.not.toThrow("secret")
  })

  it("RCH-09: options in place of the dispatcher are refused", async () => {
    const { bus } = busWith({}, { outbox: { database: "postgres://localhost/shop" } as never })
    await expect(bus.start()).rejects.toThrow(
      "outbox: found something else, allowed is what outboxDispatcher({ ... }) answers"
    )
  })
})
