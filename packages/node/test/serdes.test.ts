/** Serdes of any Standard Schema, and what is published with them. */

import { DeadLetterRecord } from "@eventbus/core"
import {
  batchConsumer,
  consumer,
  defineTopic,
  EventBusError,
  type EventBusOptions,
  on,
  Serde,
  skip,
  standardSchema,
  TypeId,
  transactionalConsumer
} from "@eventbus/node"
import { Result, Schema } from "effect"
import * as v from "valibot"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import { startBus, until } from "./bus.ts"

const zodOrder = z.object({ id: z.string(), lines: z.array(z.object({ cents: z.int() })) })
const schemas = [
  ["zod", zodOrder],
  ["valibot", v.object({ id: v.string(), lines: v.array(v.object({ cents: v.pipe(v.number(), v.integer()) })) })],
  [
    "effect",
    Schema.toStandardSchemaV1(
      Schema.Struct({ id: Schema.String, lines: Schema.Array(Schema.Struct({ cents: Schema.Int })) })
    )
  ]
] as const

const bytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
const good = { id: "o-1", lines: [{ cents: 5 }] }
const bad = { id: "o-1", lines: [{ cents: 5 }, { cents: "six" }] }

describe("a serde of a Standard Schema", () => {
  it.each(schemas)(
    "RCH-04: %s: reads what the schema reads, and names the path of what it refuses",
    (vendor, schema) => {
      const serde = standardSchema<unknown, typeof good>(schema as never)
      expect(Result.getOrThrow(serde.decode(bytes(good)))).toEqual(good)
      const failure = Result.getOrThrow(Result.flip(serde.decode(bytes(bad))))
      expect(failure).toMatchObject({ _tag: "DecodeFailure", serde: `json(${vendor})`, path: '["lines"][1]["cents"]' })
      expect(failure.detail).toContain('at ["lines"][1]["cents"]')
    }
  )

  it.each(schemas)("RCH-04: %s: writes what it reads again, and refuses the rest", (_, schema) => {
    const serde = standardSchema<unknown, typeof good>(schema as never)
    expect(Result.getOrThrow(serde.encode(good))).toEqual(bytes(good))
    const failure = Result.getOrThrow(Result.flip(serde.encode(bad as never)))
    expect(failure).toMatchObject({ _tag: "EncodeFailure", path: '["lines"][1]["cents"]' })
  })

  it.each([
    ["no JSON", new TextEncoder().encode("{")],
    ["zero bytes", new Uint8Array()],
    ["bytes that are no UTF-8", Uint8Array.of(0xff)],
    ["a tombstone", null]
  ])("RCH-04: %s is a decode failure", (_, input) => {
    expect(Result.isFailure(standardSchema(zodOrder).decode(input))).toBe(true)
  })

  it("RCH-04: a schema that answers with a promise is refused, and its rejection is taken over", async () => {
    const late = z.string().refine(() => Promise.reject(new Error("late")))
    const schema = { "~standard": { version: 1, vendor: "late", validate: () => late.parseAsync("a") } } as const
    const failure = Result.getOrThrow(Result.flip(standardSchema(schema as never).decode(bytes("a"))))
    expect(failure.detail).toContain("returned a Promise")
    await new Promise((resolve) => setImmediate(resolve))
  })

  it("RCH-04: what the schema transforms, the handler gets; what it refuses is dead-lettered with its path", async () => {
    const handled: Array<Date> = []
    const shape = z.object({ at: z.iso.datetime().transform((text) => new Date(text)) })
    const { bus, kafka } = await startBus({
      consumers: {
        orders: consumer({
          topic: "orders",
          groupId: "billing",
          value: standardSchema(shape),
          handler: async ({ value }) => void handled.push(value.at)
        })
      }
    })
    await bus.publish("orders", { value: '{"at":"2026-01-01T00:00:00Z"}' })
    await bus.publish("orders", { value: '{"at":7}' })
    await until(async () => (await kafka.records("orders.DLT")).length === 1 && handled.length === 1)
    expect(handled).toEqual([new Date("2026-01-01T00:00:00Z")])
    const letter = DeadLetterRecord.read((await kafka.records("orders.DLT"))[0]!)
    expect(letter.lastExceptionClass).toBe("DecodeFailure")
    expect(letter.lastExceptionMessage).toContain('at ["at"]')
  })
})

const invoices = defineTopic("invoices", { key: Serde.string, value: standardSchema(z.object({ order: z.string() })) })

describe("publishing", () => {
  it("RCH-06: text, bytes, headers and tombstones to a topic by name; several in order", async () => {
    const { bus, kafka } = await startBus({})
    const first = await bus.publish("orders", { key: "k", value: "text", headers: { trace: "t-1" }, timestamp: 5 })
    expect(first).toEqual({ topic: "orders", partition: 0, offset: 0n })
    const others = await bus.publishAll("orders", [{ value: Uint8Array.of(1) }, { key: "k", value: null }])
    expect(others.map(({ offset }) => offset)).toEqual([1n, 2n])
    const [text, raw, tombstone] = await kafka.records("orders")
    expect(text).toMatchObject({ timestamp: 5, headers: [{ key: "trace" }] })
    expect([raw?.key, raw?.value, tombstone?.value]).toEqual([null, Uint8Array.of(1), null])
  })

  it("RCH-04 SER-07: values of several types are told apart by their header, in whatever package they are", async () => {
    const values = TypeId.serde({
      "pay.Payment": standardSchema(z.object({ cents: z.int() })),
      "pay.Refund": standardSchema(z.object({ of: z.string() }))
    })
    const handled: Array<string> = []
    const handler = ({ value }: { readonly value: { readonly _tag: string } }) => void handled.push(value._tag)
    const { bus } = await startBus({
      consumers: { orders: consumer({ topic: "orders", groupId: "billing", value: values, handler }) }
    })
    await bus.publish(defineTopic("orders", { value: values }), { value: { _tag: "pay.Refund", value: { of: "p-1" } } })
    await until(() => handled.length === 1)
    expect(handled).toEqual(["pay.Refund"])
  })

  it("RCH-06: a value that does not fit its topic rejects with EncodeFailure, and of several none is sent", async () => {
    const { bus, kafka } = await startBus({})
    await kafka.createTopic("invoices")
    const wrong = { key: "k", value: { order: 7 } } as never
    await expect(bus.publishAll(invoices, [{ key: "k", value: { order: "o-1" } }, wrong])).rejects.toBeInstanceOf(
      Serde.EncodeFailure
    )
    expect(await kafka.records("invoices")).toEqual([])
    await bus.publish(invoices, { key: "k", value: { order: "o-1" } })
    expect((await kafka.records("invoices")).length).toBe(1)
  })

  it("RCH-06 ruling 70: headers of the connector that a program forwards are not published, in a transaction neither", async () => {
    const forwarded = { "x-eventbus-retry-tier": "2", trace: "t-1" }
    const { bus, kafka } = await startBus({
      consumers: {
        orders: transactionalConsumer({
          ...{ topic: "orders", groupId: "billing", value: Serde.string },
          handler: async (_, { producer }) =>
            void (await producer.publish("copies", { value: "c-1", headers: forwarded }))
        })
      }
    })
    await kafka.createTopic("copies")
    await bus.publish("orders", { value: "o-1", headers: forwarded })
    const [published] = await kafka.records("orders")
    expect(published?.headers.map(({ key }) => key)).toEqual(["trace"])
    await until(async () => (await kafka.records("copies")).length === 1)
    const [copy] = await kafka.records("copies")
    expect(copy?.headers.map(({ key }) => key)).toEqual(["trace"])
  })

  it("RCH-06: an unknown cluster rejects with its known names", async () => {
    const { bus } = await startBus({})
    await expect(bus.publish("orders", { value: "a" }, { cluster: "dr" })).rejects.toThrow("Known are: [default]")
  })
})

const orders = { topic: "orders", groupId: "billing", value: Serde.string }
const noRetries = { blocking: { maxAttempts: 1 }, tiers: [] }
const started = (consumers: EventBusOptions["consumers"]) => startBus({ consumers: consumers! })

describe("other kinds of handlers", () => {
  it("RCH-04: a batch handler gets batches, and says which records failed", async () => {
    const batches: Array<ReadonlyArray<string>> = []
    const { bus, kafka } = await started({
      orders: batchConsumer({
        ...orders,
        retry: noRetries,
        handleBatch: async ({ deliveries }) => {
          const values = deliveries.map(({ value }) => value)
          batches.push(values)
          const index = values.indexOf("bad")
          if (index >= 0) throw EventBusError.BatchProcessing.these([{ index, error: new RangeError("bad") }])
        }
      })
    })
    await bus.publishAll(
      "orders",
      ["a", "bad", "b"].map((value) => ({ value }))
    )
    await until(async () => (await kafka.committed("billing", "orders", 0)) === 3n)
    expect(batches[0]).toEqual(["a", "bad", "b"])
    const letters = (await kafka.records("orders.DLT")).map(DeadLetterRecord.read)
    expect(letters.map(({ lastExceptionClass }) => lastExceptionClass)).toEqual(["RangeError"])
  })

  it("RCH-04: a transactional handler's publishes commit with its offset; a failed attempt leaves nothing behind", async () => {
    let attempts = 0
    const late: Array<unknown> = []
    const { bus, kafka } = await started({
      orders: transactionalConsumer({
        ...orders,
        retry: { blocking: { maxAttempts: 2, initialBackoff: 1 }, tiers: [] },
        handler: async ({ value }, { producer }) => {
          // Not awaited: the transaction waits for it all the same.
          void producer.publish(invoices, { key: value, value: { order: `${value}-${++attempts}` } })
          if (attempts === 1) throw new Error("down")
          setTimeout(() => producer.publish("invoices", { value: "late" }).catch((error) => late.push(error)), 20)
        }
      })
    })
    await kafka.createTopic("invoices")
    await bus.publish("orders", { value: "o-1" })
    await until(() => late.length === 1)
    const published = await kafka.records("invoices")
    expect(published.map(({ value }) => new TextDecoder().decode(value!))).toEqual(['{"order":"o-1-2"}'])
  })

  it("RCH-04: a publish that fails in a transaction fails its handler", async () => {
    const { bus, kafka } = await started({
      orders: transactionalConsumer({
        ...orders,
        retry: noRetries,
        handler: async (_, { producer }) => void producer.publish(invoices, { key: "k", value: { order: 7 } as never })
      })
    })
    await bus.publish("orders", { value: "o-1" })
    await until(async () => (await kafka.records("orders.DLT")).length === 1)
    const [letter] = (await kafka.records("orders.DLT")).map(DeadLetterRecord.read)
    expect(letter?.lastExceptionClass).toBe("EncodeFailure")
  })

  it("RCH-04: idempotency in memory, enrich, transforms, a probe and functions of dead letters are reachable", async () => {
    const seen: Array<string> = []
    const letters: Array<string> = []
    const { bus } = await startBus({
      idempotencyStore: "memory",
      consumers: {
        orders: consumer({
          ...orders,
          idempotency: { key: ({ value }) => value, lease: "10s" },
          enrich: () => [{ key: "tenant", value: new TextEncoder().encode("t-1") }],
          transforms: { upper: async () => ({ value: "UPPER" }) },
          circuitBreaker: { slidingWindowSize: 20, waitDurationInOpenState: "1s", probe: async () => undefined },
          deadLetter: {
            onDeadLetter: async ({ lastExceptionClass }) => void letters.push(lastExceptionClass),
            fingerprint: () => "mine"
          },
          retry: noRetries,
          onError: [on(SyntaxError, skip)],
          handler: async ({ value, headers }) => {
            if (value === "bad") throw new RangeError("bad")
            seen.push(`${value} ${headers.some(({ key }) => key === "tenant")}`)
          }
        })
      }
    })
    await bus.publishAll(
      "orders",
      ["a", "a", "bad", "b"].map((value) => ({ value }))
    )
    await until(() => seen.length === 2 && letters.length === 1)
    expect(seen).toEqual(["a true", "b true"])
    expect(letters).toEqual(["RangeError"])
    const deadLetters = await bus.deadLetters("orders")
    expect(deadLetters.transforms).toEqual(["upper"])
    const [letter] = (await deadLetters.letters()).letters
    expect(letter?.fingerprint).toBe("own-mine")
    const previews = await deadLetters.transformed([{ partition: letter!.partition, offset: letter!.offset }], "upper")
    expect(previews).toMatchObject([{ _tag: "Copied" }])
  })

  it("RCH-04: a rehearsal calls a handler that says it may be called", async () => {
    let isBroken = true
    const { bus, kafka } = await started({
      orders: consumer({
        ...orders,
        rehearsable: true,
        retry: noRetries,
        handler: async () => {
          if (isBroken) throw new Error("down")
        }
      })
    })
    await bus.publish("orders", { value: "o-1" })
    await until(async () => (await kafka.records("orders.DLT")).length === 1)
    isBroken = false
    const report = await (await bus.deadLetters("orders")).rehearse({ all: true })
    expect(report).toMatchObject({ mode: "handler", passes: 1 })
  })
})
