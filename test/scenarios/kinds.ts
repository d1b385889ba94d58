/**
 * One binding on topic `orders` for every kind of handler, with two retry tiers: what holds for one has to hold for all.
 */
import {
  Binding,
  type CircuitBreaker,
  CurrentTransaction,
  EventBusError,
  RetryPolicy,
  Route,
  Serde
} from "@eventbus/core"
import { Data, Effect } from "effect"
import { bytes, now } from "./bus.ts"

export class Down extends Data.TaggedError("Down") {}
/** Permanent: to the dead letter topic at once. */
export class Invalid extends Data.TaggedError("Invalid") {}

export interface Call {
  readonly value: string | null
  readonly tier: number
  readonly attempt: number
  readonly atMillis: number
}

export interface Setup {
  readonly handle: (call: Call) => Effect.Effect<void, Down | Invalid>
  readonly circuitBreaker?: CircuitBreaker.Options
  readonly autoOffsetReset?: "latest"
  readonly concurrency?: number
  readonly maxInFlight?: number
  readonly consumer?: "shared" | "separate"
  readonly value?: Serde.Serde<string | null>
}

const text = Serde.nullable(Serde.string)

const common = ({
  circuitBreaker,
  autoOffsetReset,
  maxInFlight,
  concurrency = 1,
  consumer = "shared",
  value = text
}: Setup) =>
  ({
    topic: "orders",
    groupId: "billing",
    concurrency,
    value,
    retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["10 seconds", "1 minute"], consumer }),
    onError: { Down: Route.retry, Invalid: Route.deadLetter() },
    ...(circuitBreaker === undefined ? {} : { circuitBreaker }),
    ...(autoOffsetReset === undefined ? {} : { autoOffsetReset }),
    ...(maxInFlight === undefined ? {} : { maxInFlight })
  }) as const

interface Handed {
  readonly value: string | null
  readonly tier: number
  readonly attempt: number
}
const each =
  (setup: Setup) =>
  ({ value, tier, attempt }: Handed) =>
    Effect.flatMap(now, (atMillis) => setup.handle({ value, tier, attempt, atMillis }))

export const kinds = {
  single: (setup: Setup) => Binding.make("orders", { ...common(setup), handler: each(setup) }),
  "by key": (setup: Setup) =>
    Binding.make("orders", { ...common(setup), processingOrder: "key", handler: each(setup) }),
  unordered: (setup: Setup) =>
    Binding.make("orders", { ...common(setup), processingOrder: "unordered", handler: each(setup) }),
  "in batches": (setup: Setup) =>
    Binding.make("orders", { ...common(setup), listenerType: "BATCH", maxPollRecords: 4, handler: each(setup) }),
  "whole batches": (setup: Setup) =>
    Binding.makeBatch("orders", {
      ...common(setup),
      maxPollRecords: 4,
      handleBatch: ({ deliveries }) =>
        Effect.gen(function* () {
          const exits = yield* Effect.forEach(deliveries, (delivery) => Effect.result(each(setup)(delivery)))
          const [first, ...more] = exits.flatMap((exit, index) =>
            exit._tag === "Failure" ? [{ index, error: exit.failure }] : []
          )
          if (first !== undefined) return yield* EventBusError.BatchProcessing.these([first, ...more])
        })
    }),
  transactional: (setup: Setup) =>
    Binding.makeTransactional("orders", {
      ...common(setup),
      maxPollRecords: 4,
      handler: (delivery) =>
        Effect.andThen(
          Effect.orDie(
            CurrentTransaction.send({ topic: "out", key: null, value: bytes(`${delivery.value}@${delivery.tier}`) })
          ),
          each(setup)(delivery)
        )
    })
}
