/** A binding that handles topic `orders`, with letters in its dead letter topic, and an observer of what lies in the logs. */
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, headersOf, publish, start, text } from "../../../../test/scenarios/bus.ts"
import * as Binding from "../../src/Binding.ts"
import type { Settings } from "../../src/BindingOptions.ts"
import * as RetryPolicy from "../../src/RetryPolicy.ts"
import * as Route from "../../src/Route.ts"
import * as Serde from "../../src/Serde.ts"

class Down extends Data.TaggedError("Down") {}

const partitions = 2
export const topics = ["orders", "orders.retry-1", "orders.DLT"]

export interface Orders {
  /** Values whose handling fails, by the tier in which it does; 0 is the main topic. */
  readonly failing: Map<string, (tier: number) => boolean>
  /** Values in the order in which the handler got them. */
  readonly calls: Array<string>
}

/** A binding with one retry tier of a minute, and one attempt in each. */
export const withOrders = Effect.fnUntraced(function* (
  values: ReadonlyArray<string>,
  settings: Partial<Settings<string, string>> = {}
) {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of topics) yield* memory.createTopic(topic, { partitions })
  const orders: Orders = { failing: new Map(), calls: [] }
  const binding = Binding.make("orders", {
    ...{ topic: "orders", groupId: "billing", value: Serde.string, key: Serde.string },
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 minute", maxAttempts: 1 }] }),
    ...settings,
    handler: ({ value, tier }) => {
      orders.calls.push(value)
      return orders.failing.get(value)?.(tier) === true ? Effect.fail(new Down()) : Effect.void
    },
    onError: { Down: Route.retry }
  })
  const app = yield* start(binding)
  for (const value of values) orders.failing.set(value, () => true)
  yield* publish("orders", values)
  for (let step = 0; step < 16; step++) yield* advance("10 seconds")
  orders.failing.clear()
  const runs = yield* app.connector.runs("orders")
  const letters = yield* app.connector.deadLetters("orders")
  return { ...orders, memory, app, runs, letters }
})

/** The values of all readable records of a topic that carry the id of a run. */
export const ofRun = Effect.fnUntraced(function* (topic: string, runId: string) {
  const memory = yield* MemoryBroker.MemoryBroker
  const logs = yield* Effect.forEach([0, 1], (partition) => memory.log(topic, partition))
  return logs
    .flat()
    .filter((record) => headersOf(record).get("x-eventbus-run-id")?.startsWith(`${runId}/`) === true)
    .map(({ value }) => text(value) ?? "")
    .sort()
})
