/**
 * Records whose serde has to fetch something first (`Serde.prepare`), such as a schema that is not in the cache.
 *
 * The records before such a record are handed over, then the partition waits. No record overtakes it, and an outage of the source dead-letters nothing. The wait is
 * no attempt: it takes no slot and no permit, and uses up no processing budget.
 */
import { Cause, Effect, Exit } from "effect"
import type { RecordChunk } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type * as Serde from "../../Serde.ts"
import * as UserFunction from "../../UserFunction.ts"
import { partOf } from "../partition/chunkPart.ts"
import type { Partition } from "../partition/partition.ts"
import * as Decoding from "../record/decoding.ts"
import type { ConsumerContext } from "./consumerContext.ts"

type Handle<R> = (part: RecordChunk) => Effect.Effect<void, never, R>

/** Hands records over once their serdes are prepared. Answers `handle` itself where no serde of the binding prepares anything. Ends early when the partition stops. */
export const whenPrepared = <R>(context: ConsumerContext<R>, partition: Partition, handle: Handle<R>): Handle<R> => {
  const { key, value } = context.definition.serdes
  if (key.prepare === undefined && value.prepare === undefined) return handle
  const missingFor = (record: ConsumerRecord): ReadonlyArray<Effect.Effect<void>> => [
    ...missing(key, record, "key"),
    ...missing(value, record, "value")
  ]
  return Effect.fnUntraced(function* (chunk) {
    const { records } = chunk
    let from = 0
    for (const [index, record] of records.entries()) {
      const awaited = missingFor(record)
      if (awaited.length === 0) continue
      if (index > from) yield* handle(partOf(chunk, from, index))
      from = index
      partition.current = record
      partition.preparingSinceMillis = context.clock.currentTimeMillisUnsafe()
      for (const each of awaited) yield* partition.until(each)
      partition.preparingSinceMillis = undefined
      if (partition.stopping) return
    }
    yield* handle(partOf(chunk, from, records.length))
  })
}

/**
 * The preparation that a half of the record needs. It never fails: where `prepare` throws, returns no Effect, or returns one that fails, all of which is against its
 * contract, the record counts as undecodable.
 */
const missing = (serde: Serde.Any, record: ConsumerRecord, half: Decoding.Half): ReadonlyArray<Effect.Effect<void>> => {
  const refuse = (thrown: unknown) => Decoding.refuse(serde, record, half, thrown)
  try {
    const prepared = serde.prepare?.(record[half], record)
    if (prepared === undefined) return []
    const running = Effect.exit(
      UserFunction.runBounded(
        "prepare",
        UserFunction.callEffect("prepare", () => prepared)
      )
    )
    return [Effect.map(running, (exit) => (Exit.isFailure(exit) ? refuse(Cause.squash(exit.cause)) : undefined))]
  } catch (thrown) {
    refuse(thrown)
    return []
  }
}
