/**
 * Takes the records out of a chunk that belong to another group: replays for it in the main topic (ruling 70), and its copies in a shared retry topic (ruling 71). And those that no handler may see: what order per key has left in a retry topic.
 * They look like compacted records from then on: no delivery, no concurrency slot, no call of the circuit breaker, and the offset moves past them. A scheduler looks
 * when the records are due: headers that are read before that take memory for the whole delay.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { RecordChunk } from "../../Broker.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as PassedOver from "../observe/passedOver.ts"
import type { Partition } from "../partition/partition.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import { skipped } from "../record/deliveryResult.ts"
import * as OrderHeaders from "../record/orderHeaders.ts"
import * as ReplayHeaders from "../record/replayHeaders.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import { type ConsumerContext, reportSettled } from "./consumerContext.ts"

export interface ForeignRecords {
  /** The chunk without the records of other groups; the same chunk when it has none. */
  readonly without: (partition: Partition, chunk: RecordChunk) => RecordChunk
}

/** A lock without a record, or a claim, of a binding that kept the order of each key before: where it does so now, the unit takes such records itself. */
const isForNoHandler = ({ tier, order }: Partition, record: ConsumerRecord): boolean =>
  tier !== undefined && order === undefined && record.headers.length > 0 && OrderHeaders.isForNoHandler(record)

/** Reports once a minute, and when the scope closes, how many records were passed over; nothing when there were none. */
export const make = Effect.fnUntraced(function* <R>(
  context: ConsumerContext<R>
): Effect.fn.Return<ForeignRecords, never, Scope.Scope> {
  const { definition, replayReader, hub, consumer } = context
  const of = { ...BindingKey.onEvent(definition), consumer }
  const count = yield* PassedOver.make<"replay" | "copy">((passedOver) =>
    hub.emit({ _tag: "ForeignRecordsPassedOver", ...of, ...passedOver })
  )
  const ownerOf = (partition: Partition, record: ConsumerRecord): string | undefined => {
    // A record without headers is the usual case.
    if (record.headers.length === 0) return undefined
    return partition.tier === undefined
      ? ReplayHeaders.foreign(record, replayReader)
      : CopyOwner.foreign(record, definition)
  }
  const isOurs = (partition: Partition) => (record: ConsumerRecord) => {
    const owner = ownerOf(partition, record)
    if (owner === undefined) return !isForNoHandler(partition, record)
    count(partition.topic, owner, partition.tier === undefined ? "replay" : "copy")
    reportSettled(context, partition, record, skipped)
    return false
  }

  return {
    without: (partition, chunk) => {
      const { records } = chunk
      const first = records.findIndex(
        (record) => ownerOf(partition, record) !== undefined || isForNoHandler(partition, record)
      )
      if (first < 0) return chunk
      const ours = records.filter(isOurs(partition))
      return { ...chunk, records: ours, bytes: (chunk.bytes / records.length) * ours.length }
    }
  }
})
