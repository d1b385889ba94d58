/**
 * The transaction that a handler of `Binding.makeTransactional` runs in.
 *
 * A record that is sent through it carries no header whose name begins with `x-eventbus-`: those describe the record that is handled, and are left out. It becomes visible to `read_committed` readers together with the offset of the record that is being handled, or never.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Producer } from "./Broker.ts"
import type { BrokerError } from "./BrokerError.ts"
import type { ProducerRecord, RecordMetadata } from "./ConsumerRecord.ts"

/** The transaction of the record that is being handled, as a producer. */
export class CurrentTransaction extends Context.Service<CurrentTransaction, Producer>()(
  "@eventbus/core/CurrentTransaction"
) {}

/** Publishes within the transaction of the record that is being handled. */
export const send = (record: ProducerRecord): Effect.Effect<RecordMetadata, BrokerError, CurrentTransaction> =>
  Effect.flatMap(CurrentTransaction, (transaction) => transaction.send(record))

/** Publishes several records, in order, within the transaction of the record that is being handled. */
export const sendAll = (
  records: ReadonlyArray<ProducerRecord>
): Effect.Effect<ReadonlyArray<RecordMetadata>, BrokerError, CurrentTransaction> =>
  Effect.flatMap(CurrentTransaction, (transaction) => transaction.sendAll(records))
