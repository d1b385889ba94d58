/**
 * A binding's handler as a partition calls it: each call in a span, where there is a tracer. Otherwise it is the handler itself.
 */
import type { Effect } from "effect"
import type { ConsumerRecord } from "../ConsumerRecord.ts"
import * as Tracing from "../Tracing.ts"
import type { Handler } from "./definition.ts"
import { Undecodable } from "./delivery.ts"
import type { Handling } from "./handling.ts"

export const observed = <R>(handling: Handling<R>): Handler<R> => {
  const { definition, tracing } = handling
  const { handler } = definition
  if (tracing === undefined) return handler

  const traced = (record: ConsumerRecord, call: Effect.Effect<unknown, unknown, R> | Undecodable) =>
    call instanceof Undecodable ? call : tracing.call(handling, record, call)

  switch (handler._tag) {
    case "PerRecord":
      return {
        _tag: handler._tag,
        invoke: (record, receiver, receivedMillis) => traced(record, handler.invoke(record, receiver, receivedMillis))
      }
    case "Transactional":
      return {
        _tag: handler._tag,
        invoke: (transaction, record, receiver, receivedMillis) =>
          traced(record, handler.invoke(Tracing.producer(transaction), record, receiver, receivedMillis))
      }
    case "PerBatch":
      return {
        _tag: handler._tag,
        open: (records, receiver, receivedMillis) => {
          const batch = handler.open(records, receiver, receivedMillis)
          return {
            ...batch,
            run: (indices) =>
              tracing.callBatch(
                handling,
                indices.flatMap((index) => records[index] ?? []),
                batch.run(indices)
              )
          }
        }
      }
  }
}
