/** A bus of `@eventbus/node` on a real Kafka: whether it comes through with these options. */
import type { BrokerError } from "@eventbus/core"
import { consumer, createEventBus, type KafkaOptions, Serde } from "@eventbus/node"
import { Effect } from "effect"
import * as Transport from "../transport.ts"
import * as Bus from "./bus.ts"

/** Publishes a record and handles it, and stops the bus. Fails with the error of `publish`; the topic must exist. */
export const passesOn = Effect.fnUntraced(function* (topic: string, kafka: KafkaOptions) {
  const handled: Array<string> = []
  const orders = consumer({
    ...{ topic, groupId: topic, value: Serde.string, retry: { blocking: { maxAttempts: 1 }, tiers: [] } },
    handler: ({ value }) => void handled.push(value)
  })
  const bus = createEventBus({
    kafka: { transport: Transport.name, ...kafka },
    signals: [],
    log: "off",
    consumers: { orders }
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => bus.start()),
    () => Effect.promise(() => bus.stop())
  )
  yield* Effect.tryPromise({
    try: () => bus.publish(topic, { value: "o-1" }),
    catch: (error) => error as BrokerError.BrokerError
  })
  yield* Bus.until("the record is handled", () => handled.length === 1)
}, Effect.scoped)
