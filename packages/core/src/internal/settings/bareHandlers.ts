/** The functions that a user has given as handlers, without anything around them but the look at what they answer. */
import * as Effect from "effect/Effect"
import type { BatchOptions } from "../../BindingOptions.ts"
import type { TopicPartition } from "../../ConsumerRecord.ts"
import type { Delivery } from "../../Delivery.ts"
import * as UserFunction from "../../UserFunction.ts"
import * as Results from "../failure/results.ts"

/** The handler alone. Its answer is read, so that a failed result is not taken for done. */
export const ofRecords =
  <K, V, E, R>(options: { readonly handler: (delivery: Delivery<K, V>) => Effect.Effect<unknown, E, R> }) =>
  (delivery: Delivery<K, V>): Effect.Effect<unknown, unknown, R> =>
    Effect.flatMap(UserFunction.checked("the handler", options.handler(delivery)), Results.toEffect)

/** The handler of batches alone. */
export const ofBatches =
  <K, V, E, R>(options: BatchOptions<K, V, E, R>, { topic, partition }: TopicPartition) =>
  (deliveries: ReadonlyArray<Delivery<K, V>>): Effect.Effect<unknown, unknown, R> =>
    Effect.map(UserFunction.checked("the handler", options.handleBatch({ topic, partition, deliveries })), (value) =>
      UserFunction.settled("the handler", value)
    )
