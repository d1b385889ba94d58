/** Processes and operators of a fleet on an in-memory cluster. */
import { Binding, type BindingOptions, Fleet } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Clock, Context, Effect, Layer } from "effect"
import { skewed } from "../../outbox/skewedClock.ts"
import { advance, bytes, orders, settle, start, text } from "../bus.ts"

export const control = "__eventbus.control"
export const fleetTopic = "__eventbus.fleet"
export const target = { binding: "orders", groupId: "billing" }
export const release = { ...target, reason: "the bank is back", by: "bob" }

/** An operator, with connections of its own. */
export const operator = Effect.map(Layer.build(Fleet.layer()), (context) => Context.get(context, Fleet.Fleet))

/** Binding `orders`, whose handler notes the values. */
export const noting = (
  handled: Array<string>,
  settings: Partial<BindingOptions.Settings<Uint8Array | null, string>> = {},
  name = "orders"
): Binding.Binding<never> =>
  Binding.make(name, { ...orders, ...settings, handler: ({ value }) => Effect.sync(() => void handled.push(value)) })

/** The same, whose wall clock is so far ahead of the cluster's. */
export const operatorOff = (offMillis: number) =>
  Effect.flatMap(Clock.Clock, (clock) =>
    Effect.provideService(
      operator,
      Clock.Clock,
      skewed(clock, () => offMillis)
    )
  )

interface Options extends Fleet.Settings {
  /** How far its wall clock is ahead of the cluster's. */
  readonly offMillis?: number
}

/** A process of the fleet with these bindings. */
export const startIn = Effect.fnUntraced(function* (
  { offMillis = 0, ...settings }: Options,
  ...bindings: ReadonlyArray<Binding.Binding<never>>
) {
  const clock = skewed(yield* Clock.Clock, () => offMillis)
  return yield* Effect.flatMap(Layer.build(Fleet.layer(settings)), (context) =>
    Effect.provideContext(start(...bindings), context)
  ).pipe(Effect.provideService(Clock.Clock, clock))
})

/** Lets all processes read what was written, and answer. */
export const soon = advance("2 seconds")

/** Writes an entry past every operator, acknowledged, with the times of the cluster. */
export const write = Effect.fnUntraced(function* (topic: string, key: string, value: object | string | null) {
  const memory = yield* MemoryBroker.MemoryBroker
  const producer = yield* memory.broker.producer()
  const encoded = value === null ? null : bytes(typeof value === "string" ? value : JSON.stringify(value))
  yield* producer.send({ topic, partition: 0, key: bytes(key), value: encoded })
  yield* settle
}, Effect.scoped)

/** The newest values by key, as JSON. */
export const entries = Effect.fnUntraced(function* (topic: string) {
  const memory = yield* MemoryBroker.MemoryBroker
  const found = new Map<string, Record<string, unknown> | null>()
  for (const { key, value } of yield* memory.log(topic, 0)) {
    found.set(text(key) ?? "", value === null ? null : JSON.parse(text(value)!))
  }
  return found
})

/** The answers in the fleet topic, oldest first, as `{state}` or `{state}: {error}`. */
export const acks = Effect.fnUntraced(function* (command: string) {
  const memory = yield* MemoryBroker.MemoryBroker
  return (yield* memory.log(fleetTopic, 0)).flatMap(({ key, value }) => {
    if (!text(key)?.startsWith(`ack/${command}/`)) return []
    const { state, error } = JSON.parse(text(value)!)
    return [error === undefined ? state : `${state}: ${error}`]
  })
})
