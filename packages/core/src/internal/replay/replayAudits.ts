/**
 * The audit entries of the journal: which letters operators gave up, and which of those they let wait again.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { PartitionOffsets } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord, ProducerRecord } from "../../ConsumerRecord.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import { Discarded, Restored } from "../../Replay.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as Journal from "./replayJournal.ts"
import type { TopicScan } from "./topicScan.ts"

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** Most characters of the texts of a letter, which a stranger may have written: the entry fits into the journal however long they are. */
const longestClass = 256
const longestMessage = 1_024

/** The audit entry of a discarded record. */
export const discardedEntry = (
  topic: string,
  groupId: string,
  letter: DeadLetterRecord,
  why: Pick<Discarded, "reason" | "discardedAt" | "by" | "runId">
): ProducerRecord => {
  const { record, originalTopic, originalPartition, originalOffset, lastExceptionClass, lastExceptionMessage } = letter
  const { partition, offset } = record
  const audit: Discarded = {
    ...{ groupId, partition, offset: String(offset), ...why },
    ...{ originalTopic, originalPartition, originalOffset: String(originalOffset) },
    exceptionClass: lastExceptionClass.slice(0, longestClass),
    exceptionMessage: lastExceptionMessage.slice(0, longestMessage)
  }
  return { topic, key: keyOf("discarded", audit), value: encoder.encode(JSON.stringify(audit)) }
}

/** The entries of a record that is no longer discarded. */
export const restoredEntries = (
  topic: string,
  { groupId, partition, offset, reason, discardedAt, by, runId }: Discarded,
  why: Pick<Restored, "reason" | "by" | "restoredAt" | "runId">
): ReadonlyArray<ProducerRecord> => {
  const audit: Restored = {
    ...{ groupId, partition, offset, ...why, discardedBecause: reason, discardedAt },
    ...(by === undefined ? {} : { discardedBy: by }),
    ...(runId === undefined ? {} : { discardedRunId: runId })
  }
  return [
    { topic, key: keyOf("discarded", audit), value: null },
    { topic, key: keyOf("restored", audit), value: encoder.encode(JSON.stringify(audit)) }
  ]
}

const keyOf = (kind: string, { partition, offset, groupId }: Pick<Discarded, "partition" | "offset" | "groupId">) =>
  encoder.encode(`${kind}/${partition}/${offset}/${groupId}`)

/** Finds the last entries of a kind among records of the journal, as far as they are of the groups. An unreadable entry is left out. */
type Find<A> = (records: Iterable<ConsumerRecord>, groups: CopyOwner.Groups) => ReadonlyArray<A>

const finder =
  <A extends Discarded | Restored>(kind: string, decode: (value: unknown) => Option.Option<A>): Find<A> =>
  (records, groups) => {
    const found = new Map<string, A>()
    for (const { key, value, transactional } of records) {
      const name = key === null ? "" : decoder.decode(key)
      if (!name.startsWith(`${kind}/`) || transactional === false) continue
      const audit = value === null ? undefined : Option.getOrUndefined(decode(decoder.decode(value)))
      if (value === null) found.delete(name)
      else if (audit !== undefined && CopyOwner.isOurs(groups, audit.groupId)) found.set(name, audit)
    }
    return Array.from(found.values())
  }

export const discardedIn = finder("discarded", Schema.decodeUnknownOption(Schema.fromJsonString(Discarded)))
export const restoredIn = finder("restored", Schema.decodeUnknownOption(Schema.fromJsonString(Restored)))

/** Reads the records that the groups have discarded, or restored. */
const reader =
  <A>(find: Find<A>) =>
  (
    scan: TopicScan,
    topic: string,
    logOffsets: ReadonlyArray<PartitionOffsets>,
    groups: CopyOwner.Groups
  ): Effect.Effect<ReadonlyArray<A>, BrokerError> =>
    Effect.map(Stream.runCollect(Journal.entries(scan, topic, logOffsets)), (records) => find(records, groups))

export const discarded = reader(discardedIn)
export const restored = reader(restoredIn)
