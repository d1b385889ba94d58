/**
 * A binding's handler for rehearsals: decoding, and then the user's function alone. Neither the idempotency store nor a transaction of Kafka is around it, because a
 * rehearsal that completed the key of a record would make its replay skip the record.
 */
import type * as Effect from "effect/Effect"
import type { Producer } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Delivery } from "../../Delivery.ts"
import type * as Serde from "../../Serde.ts"
import { decode, type Receiver, Undecodable } from "../record/decoding.ts"

/** Makes the call of the handler. A transactional one gets the producer in place of its transaction. */
export type RehearsedCall<R> = (transaction: Producer) => Effect.Effect<unknown, unknown, R>

/** Decodes a record. `receivedMillis` is when it arrived. */
export type RehearsedHandler<R> = (
  record: ConsumerRecord,
  receiver: Receiver,
  receivedMillis: number
) => RehearsedCall<R> | Undecodable

/** `call` makes the call of the user's function, without anything around it. */
export const make =
  <K, V, R>(
    key: Serde.Serde<K>,
    value: Serde.Serde<V>,
    call: (delivery: Delivery<K, V>, transaction: Producer) => Effect.Effect<unknown, unknown, R>
  ): RehearsedHandler<R> =>
  (record, receiver, receivedMillis) => {
    const delivery = decode(key, value, record, receiver, receivedMillis)
    return delivery instanceof Undecodable ? delivery : (transaction) => call(delivery, transaction)
  }
