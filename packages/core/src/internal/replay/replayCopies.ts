/**
 * The copies that a replay publishes: where each goes, and with which headers.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import * as Partitioner from "../../Partitioner.ts"
import * as ReplayHeaders from "../record/replayHeaders.ts"
import { type Copy, CopyRefused, type Run } from "./replayRun.ts"
import type { Target } from "./replayTargets.ts"

/** The copy of a dead letter for the topic that it came from, or for the retry tier of the run. */
export const copyOf = Effect.fnUntraced(function* (run: Run, letter: DeadLetterRecord, target: Target) {
  const { options, selection } = run
  const { record, key, value } = letter
  const { topic } = target
  const runId = selection.planned?.runId
  // Time and partition are set here, because the bond in the headers names them.
  const timestamp = yield* Clock.currentTimeMillis
  const partition = yield* partitionIn(run, letter, topic, target.partition)
  const headers =
    selection.tier === undefined
      ? ReplayHeaders.forSource(
          letter,
          options.groupId,
          { clusterId: run.admin.clusterId, ...{ topic, partition, timestamp } },
          runId
        )
      : ReplayHeaders.forTier(letter, options.groupId, { topic, tier: selection.tier }, timestamp, runId)
  const { compression } = record
  const copy: Copy = { record, copy: { topic, key, value, headers, partition, timestamp, compression } }
  return copy
})

/** The wanted partition if the topic has it, or else the one of the key. */
const partitionIn = Effect.fnUntraced(function* (
  run: Run,
  { record, key }: DeadLetterRecord,
  topic: string,
  wanted?: number
) {
  const partitions = run.partitionCounts.get(topic) ?? (yield* countPartitions(run, record, topic))
  if (wanted !== undefined && wanted < partitions) return wanted
  return key === null ? Number(record.offset % BigInt(partitions)) : Partitioner.partitionFor(key, partitions)
})

const countPartitions = Effect.fnUntraced(function* (run: Run, record: ConsumerRecord, topic: string) {
  const { partitions } = yield* Effect.mapError(
    run.admin.describeTopic(topic),
    (error) => new CopyRefused([{ record, error }])
  )
  run.partitionCounts.set(topic, partitions)
  return partitions
})
