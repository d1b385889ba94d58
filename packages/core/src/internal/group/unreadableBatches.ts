/** Batches that cannot be read: each holds its own partition, until an operator passes it or retention removes it (ruling 79). */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { ConsumerEvent } from "../../Broker.ts"
import type { RecordPosition } from "../../ConsumerRecord.ts"
import type { HeldBatch } from "../../Snapshot.ts"
import { report } from "../delivery/consumerContext.ts"
import { remedies } from "../partition/unreadableText.ts"
import type * as Running from "./runningPartitions.ts"

type Unreadable = Extract<ConsumerEvent, { readonly _tag: "Unreadable" }>

/** Holds the partition in front of the batch. */
export const hold = <R>(
  { options: { context } }: Running.RunningPartitions<R>,
  { partition }: Running.RunningPartition,
  event: Unreadable
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { topic, partition: number, offset, lastOffset, records, codec, problem, detail } = event
    const batch: HeldBatch = {
      ...{ topic, partition: number, offset, lastOffset, records, codec, problem, detail },
      remedy: remedies[problem],
      sinceMillis: yield* Clock.currentTimeMillis
    }
    partition.holdBatch(batch)
    report(context, partition, { _tag: "BatchUnreadable", batch })
    yield* partition.syncFetch
  })

/** Goes on behind the batch at this offset; undefined when there is none. */
export const skip = <R>(
  { options: { context, session } }: Running.RunningPartitions<R>,
  entry: Running.RunningPartition | undefined,
  at: RecordPosition,
  reason: string
): Effect.Effect<HeldBatch | undefined> =>
  Effect.gen(function* () {
    const batch = entry?.partition.unreadable
    if (entry === undefined || batch?.offset !== at.offset || entry.isDraining) return undefined
    const { partition } = entry
    const nextOffset = batch.lastOffset + 1n
    const { topic, partition: number, generation, log } = partition
    partition.holdBatch(undefined)
    log.skipGap({ from: batch.offset, to: nextOffset }, partition.position())
    // A chunk without records: the position passes the batch once everything before it is finished.
    const gap = { topic, partition: number, generation, records: [], nextOffset, highWatermark: log.end, bytes: 0 }
    partition.offer(gap)
    report(context, partition, { _tag: "BatchSkipped", batch, reason })
    yield* session.seek(partition, nextOffset)
    yield* partition.syncFetch
    return batch
  })
