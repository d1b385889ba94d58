/** The types of the options. Each `@ts-expect-error` is checked by `tsc -b`: it fails when the line below starts to compile. */
import type { Settings } from "@eventbus/config"
import {
  type CircuitBreakerOptions,
  consumer,
  createEventBus,
  type DeadLetterOptions,
  defineTopic,
  type EventBus,
  on,
  type RetryOptions,
  Serde,
  type SharedSettings,
  skip,
  standardSchema
} from "@eventbus/node"
import { describe, expect, expectTypeOf, it } from "vitest"
import { z } from "zod"

const Order = z.object({ id: z.string(), cents: z.int() })
const base = { topic: "orders", groupId: "billing" } as const

/** The names of a section of a configuration file, without the unit of a duration. */
type InFile<S> = WithoutUnit<keyof S & string>
type WithoutUnit<K extends string> = K extends `${infer N}Ms` ? N : K

describe("the types", () => {
  it("RCH-06: every key of a configuration file is an option of the same name", () => {
    type Binding = typeof Settings.Binding.Encoded
    // A file names its handler, and has the sections that hold code here.
    type Elsewhere = "topic" | "groupId" | "handler" | "naming" | "circuitBreaker" | "deadLetter"
    expectTypeOf<Exclude<InFile<Binding>, Elsewhere>>().toEqualTypeOf<keyof SharedSettings>()
    expectTypeOf<InFile<typeof Settings.PerKey.Encoded>>().toEqualTypeOf<keyof NonNullable<SharedSettings["perKey"]>>()
    expectTypeOf<InFile<typeof Settings.Retry.Encoded>>().toEqualTypeOf<keyof RetryOptions>()
    expectTypeOf<InFile<typeof Settings.CircuitBreaker.Encoded>>().toEqualTypeOf<
      Exclude<keyof CircuitBreakerOptions, "probe">
    >()
    expectTypeOf<InFile<typeof Settings.DeadLetter.Encoded>>().toEqualTypeOf<
      Exclude<keyof DeadLetterOptions, "onDeadLetter" | "topicFor" | "fingerprint">
    >()
  })

  it("RCH-04: a handler knows the types of its serdes", () => {
    consumer({
      ...base,
      key: Serde.string,
      value: standardSchema(Order),
      handler: async ({ key, value }, { signal }) => {
        expectTypeOf(key).toEqualTypeOf<string>()
        expectTypeOf(value).toEqualTypeOf<{ id: string; cents: number }>()
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
      }
    })
    consumer({ ...base, handler: async ({ value }) => expectTypeOf(value).toEqualTypeOf<Uint8Array | null>() })
  })

  it("RCH-04: the topic alone decides the type of a published value, so a literal in it stays one", () => {
    const charged = defineTopic("charged", {
      value: standardSchema(z.object({ type: z.enum(["Charged", "Refunded"]), id: z.string() }))
    })
    const publish = (bus: EventBus, isCharge: boolean) => {
      const type = isCharge ? "Charged" : "Refunded"
      void bus.publish(charged, { value: { type, id: "o-1" } })
      void bus.publishAll(charged, [{ value: { type, id: "o-1" } }])
      // @ts-expect-error: the topic has no such type
      void bus.publish(charged, { value: { type: "Lost", id: "o-1" } })
    }
    expectTypeOf(publish).returns.toEqualTypeOf<void>()
  })

  it("RCH-04: a handler that expects more than bytes needs a serde", () => {
    // @ts-expect-error: no serde gives it a text
    consumer({ ...base, handler: async ({ value }: { readonly value: string }) => console.log(value) })
  })

  it("RCH-04: a setting that there is none of, and a result that is no promise, do not compile", () => {
    // @ts-expect-error: maxPolInterval
    consumer({ ...base, maxPolInterval: "5m", handler: async () => undefined })
    // @ts-expect-error: a number is no promise
    consumer({ ...base, handler: () => 5 })
  })

  it("RCH-04: a rule gets an error of its class", () => {
    class Declined extends Error {
      readonly code = 5
    }
    const rule = on(Declined, ({ code }) => {
      expectTypeOf(code).toEqualTypeOf<number>()
      return skip
    })
    expect(rule.routeOf(new Declined())).toBe(skip)
    expect(rule.routeOf(new Error())).toBe(undefined)
    // @ts-expect-error: a text is no route
    on(Declined, "skip")
    // @ts-expect-error: a name is no class
    expect(() => on("Declined", skip)).toThrow("the first argument is a class")
  })

  it("RCH-06: a message fits its topic", () => {
    const orders = defineTopic("orders", { key: Serde.string, value: standardSchema(Order) })
    const bus: EventBus = createEventBus({ kafka: { brokers: ["localhost:9092"] } })
    const never = () => {
      void bus.publish(orders, { key: "k", value: { id: "o-1", cents: 5 } })
      void bus.publish("orders", { value: "text" })
      // @ts-expect-error: the key is missing
      void bus.publish(orders, { value: { id: "o-1", cents: 5 } })
      // @ts-expect-error: cents is a number
      void bus.publish(orders, { key: "k", value: { id: "o-1", cents: "5" } })
      // @ts-expect-error: a topic by name takes text or bytes
      void bus.publish("orders", { value: { id: "o-1" } })
    }
    expect(never).toBeInstanceOf(Function)
  })
})
