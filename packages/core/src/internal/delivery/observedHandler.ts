/**
 * A binding's handler as a partition calls it: each call runs within the interceptors, and in a span where the program has a tracer. Without both, a partition
 * calls the handler itself.
 */
import type * as Effect from "effect/Effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type * as Interceptor from "../../Interceptor.ts"
import * as Tracing from "../../Tracing.ts"
import * as UserFunction from "../../UserFunction.ts"
import { Undecodable } from "../record/decoding.ts"
import type { Handler } from "../settings/bindingDefinition.ts"
import type { ConsumerContext } from "./consumerContext.ts"

type Call<R> = Effect.Effect<unknown, unknown, R>

export const observed = <R>(context: ConsumerContext<R>): Handler<R> => {
  const { definition, tracing, interceptors } = context
  const { handler } = definition
  if (tracing === undefined && interceptors.length === 0) return handler

  const isIntercepted = interceptors.length > 0
  const traced = (record: ConsumerRecord, call: Call<R> | Undecodable) => {
    if (call instanceof Undecodable) return call
    const within = isIntercepted ? intercepted(context, [record], call) : call
    return tracing === undefined ? within : tracing.call(context, record, within)
  }
  const tracedBatch = (records: ReadonlyArray<ConsumerRecord>, call: Call<R>) => {
    const within = isIntercepted ? intercepted(context, records, call) : call
    return tracing === undefined ? within : tracing.callBatch(context, records, within)
  }

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
          traced(
            record,
            handler.invoke(
              tracing === undefined ? transaction : Tracing.producer(transaction),
              record,
              receiver,
              receivedMillis
            )
          )
      }
    case "PerBatch":
      return {
        _tag: handler._tag,
        open: (records, receiver, receivedMillis) => {
          const batch = handler.open(records, receiver, receivedMillis)
          return {
            ...batch,
            run: (indices) =>
              tracedBatch(
                indices.flatMap((index) => records[index] ?? []),
                batch.run(indices)
              )
          }
        }
      }
  }
}

/** An interceptor that throws, or returns no Effect, is a defect of the call. */
const intercepted = <R>(
  { definition, interceptors }: ConsumerContext<R>,
  records: ReadonlyArray<ConsumerRecord>,
  call: Call<R>
): Call<R> => {
  const [first] = records
  if (first === undefined) return call
  const { cluster, name: binding, tiers } = definition
  const { topic, partition } = first
  const of: Interceptor.Call = { cluster, binding, topic, partition, tier: tiers.ofTopic(topic)?.first ?? 0, records }
  return interceptors.reduceRight<Call<R>>(
    (inner, interceptor) => UserFunction.callEffect("an interceptor", () => interceptor(inner, of)),
    call
  )
}
