/** A binding that notes what it has handled, and records for it. */
import { Binding, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { bytes } from "../bus.ts"

class Down extends Data.TaggedError("Down") {}

export interface Given {
  readonly order: "partition" | "key"
  readonly orderingMode?: "PER_KEY" | "RELAXED_IN_RETRY"
  readonly hold?: boolean
  /** How often the record of a value fails; a record may fail for ever. */
  readonly fails?: Readonly<Record<string, number>>
  readonly tiers?: ReadonlyArray<`${number} seconds`>
}

/** A binding that notes what it has handled. */
export const orders = ({
  order,
  orderingMode = "PER_KEY",
  hold = false,
  fails = {},
  tiers = ["10 seconds"]
}: Given) => {
  const handled: Array<string> = []
  const left = new Map(Object.entries(fails))
  const binding = Binding.make("orders", {
    ...{ topic: "orders", groupId: "billing", key: Serde.string, value: Serde.string },
    ...{ orderingMode, processingOrder: order },
    ...(orderingMode === "PER_KEY" ? { perKey: { onDeadLetter: hold ? "hold" : "continue" } } : {}),
    retry: RetryPolicy.tiered({
      tiers: tiers.map((delay) => ({ delay, maxAttempts: 1 })),
      blocking: { maxAttempts: 1 }
    }),
    onError: { Down: Route.nextTier },
    handler: ({ value }) =>
      Effect.suspend(() => {
        const times = left.get(value) ?? 0
        if (times > 0) {
          left.set(value, times - 1)
          return Effect.fail(new Down())
        }
        handled.push(value)
        return Effect.void
      })
  })
  return { binding, handled }
}

export const publish = (records: ReadonlyArray<readonly [key: string, value: string]>) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, ({ broker }) =>
    Effect.scoped(
      Effect.flatMap(broker.producer(), ({ sendAll }) =>
        sendAll(
          records.map(([key, value]) => ({ topic: "orders", partition: 0, key: bytes(key), value: bytes(value) }))
        )
      )
    )
  )

export const committed = Effect.flatMap(MemoryBroker.MemoryBroker, ({ broker }) =>
  Effect.scoped(
    Effect.flatMap(broker.admin, (admin) => admin.committedOffsets("billing", ["orders", "orders.retry-1"]))
  )
)
