/**
 * Records whose serde has to fetch something first (`Serde.prepare`), such as a schema that is not in the cache.
 *
 * The records before such a record are handed over, then the partition waits. No record overtakes it, and an outage of the source dead-letters nothing. The wait is
 * no attempt: it takes no slot and no permit, and uses up no processing budget.
 */
import * as Effect from "effect/Effect"
import type { RecordChunk } from "../../Broker.ts"
import { partOf } from "../partition/chunkPart.ts"
import type { Partition } from "../partition/partition.ts"
import * as Preparing from "../record/preparing.ts"
import type { ConsumerContext } from "./consumerContext.ts"

type Handle<R> = (part: RecordChunk) => Effect.Effect<void, never, R>

/** Hands records over once their serdes are prepared. Answers `handle` itself where no serde of the binding prepares anything. Ends early when the partition stops. */
export const whenPrepared = <R>(context: ConsumerContext<R>, partition: Partition, handle: Handle<R>): Handle<R> => {
  const missingFor = Preparing.make(context.definition.serdes)
  if (missingFor === undefined) return handle
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
