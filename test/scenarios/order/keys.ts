/**
 * Bindings with order per key that note what they have handled, for the scenarios of this folder.
 */
import { Binding, type BindingOptions, type ConsumerRecord, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { bytes, headersOf } from "../bus.ts"

class Down extends Data.TaggedError("Down") {}
class Wrong extends Data.TaggedError("Wrong") {}

export interface Given {
  readonly order?: "partition" | "key"
  readonly perKey?: BindingOptions.PerKey
  /** How often the record of a value fails. */
  readonly fails?: Readonly<Record<string, number>>
  /** Values that are dead-lettered without a retry. */
  readonly wrong?: ReadonlyArray<string>
  readonly tiers?: ReadonlyArray<`${number} seconds`>
  /** How long the handler takes for a value, in milliseconds. */
  readonly takes?: Readonly<Record<string, number>>
  /** The tier's limit of handlers. */
  readonly concurrency?: number
}

/** A binding of topic `orders`, and the values that it has handled, in order. */
export const keyed = ({ order = "key", perKey = {}, fails = {}, wrong = [], takes = {}, ...given }: Given) => {
  const { tiers = ["10 seconds"], concurrency = 1 } = given
  const handled: Array<string> = []
  const left = new Map(Object.entries(fails))
  const binding = Binding.make("orders", {
    ...{ topic: "orders", groupId: "billing", value: Serde.string },
    ...{ orderingMode: "PER_KEY", processingOrder: order, perKey },
    retry: RetryPolicy.tiered({
      tiers: tiers.map((delay) => ({ delay, maxAttempts: 1, concurrency })),
      blocking: { maxAttempts: 1 }
    }),
    onError: { Down: Route.retry, Wrong: Route.deadLetter("wrong") },
    handler: ({ value }): Effect.Effect<void, Down | Wrong> =>
      Effect.flatMap(Effect.sleep(takes[value] ?? 0), (): Effect.Effect<void, Down | Wrong> => {
        const times = left.get(value) ?? 0
        left.set(value, times - 1)
        if (wrong.includes(value)) return Effect.fail(new Wrong())
        if (times > 0) return Effect.fail(new Down())
        handled.push(value)
        return Effect.void
      })
  })
  return { binding, handled }
}

/** Publishes records to partition 0. Their key is the first character of their value; `-` stands for none. */
export const publishKeyed = (...values: ReadonlyArray<string>) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, (memory) =>
    memory.append(
      "orders",
      0,
      values.map((value) => ({ key: value.startsWith("-") ? null : bytes(value.slice(0, 1)), value: bytes(value) }))
    )
  )

/** The locks in the retry topic, oldest first. */
export const locks = Effect.flatMap(MemoryBroker.MemoryBroker, (memory) =>
  Effect.map(memory.log("orders.retry-1", 0), (log) =>
    log.filter((record) => record.key !== null && headersOf(record).has("x-eventbus-order-kind"))
  )
)

/** The record with other headers of order per key. */
export const changed = (
  { key, value, headers }: ConsumerRecord.ConsumerRecord,
  by: Readonly<Record<string, string>>
) => ({
  ...{ key, value },
  headers: headers.map((header) => {
    const given = by[header.key.replace("x-eventbus-order-", "")]
    return header.key.startsWith("x-eventbus-order-") && given !== undefined
      ? { key: header.key, value: bytes(given) }
      : header
  })
})
