/**
 * The entries of replay leases in the journal: `lease/{run}/{group}` → JSON. Each run has a key of its own, and all of them lie in partition 0, so the order of the log
 * decides who came first, and compaction changes nothing about it: an entry names the offset of the run's first one.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ConsumerRecord, ProducerRecord } from "../../ConsumerRecord.ts"
import { partition } from "./journalTail.ts"

/** A run that holds the lease, or waits for it. */
const ReplayLeaseHolder = Schema.Struct({
  /** The version of this format. A reader takes a newer one as it is, as far as it knows its fields. */
  v: Schema.Int,
  host: Schema.String,
  pid: Schema.Int,
  /** When the run asked for the lease, epoch milliseconds by its own clock. */
  since: Schema.Int,
  /** How many records it has dealt with. */
  replayed: Schema.Int,
  /** The offset of its first entry; absent in that one. */
  claim: Schema.optionalKey(Schema.String),
  /** False while it waits. */
  holds: Schema.Boolean
})
export type ReplayLeaseHolder = typeof ReplayLeaseHolder.Type

/** The last entry of a run. */
export interface LeaseEntry {
  readonly holder: ReplayLeaseHolder
  /** The offset of the run's first entry: the smallest one comes first. */
  readonly claim: bigint
  /** When the cluster appended it, epoch milliseconds; undefined where the journal keeps the times of its writers (`CreateTime`). */
  readonly appendedMillis: number | undefined
  /** When this reader saw it, in milliseconds of its monotonic clock. */
  readonly seenMillis: number
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

const keyOf = (run: string, groupId: string): Uint8Array => encoder.encode(`lease/${run}/${groupId}`)

export const entry = (topic: string, run: string, groupId: string, holder: ReplayLeaseHolder): ProducerRecord => ({
  ...{ topic, partition, key: keyOf(run, groupId) },
  value: encoder.encode(JSON.stringify(holder))
})

/** Ends the entry of a run. */
export const tombstone = (topic: string, run: string, groupId: string): ProducerRecord => ({
  ...{ topic, partition, key: keyOf(run, groupId) },
  value: null
})

const key = /^lease\/([^/]{1,64})\/(.*)$/s
const digits = /^\d{1,19}$/
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(ReplayLeaseHolder))

/** Applies a record of the journal to the last entries of a group's runs, and answers the entry that it writes or ends. Any other record, and a malformed entry, changes nothing. */
export const apply = (
  entries: Map<string, LeaseEntry>,
  groupId: string,
  record: ConsumerRecord,
  seenMillis: number
): LeaseEntry | undefined => {
  const [, run, group] = key.exec(record.key === null ? "" : decoder.decode(record.key)) ?? []
  if (run === undefined || group !== groupId) return undefined
  if (record.value === null) {
    const ended = entries.get(run)
    entries.delete(run)
    return ended
  }
  const holder = Option.getOrUndefined(decode(decoder.decode(record.value)))
  if (holder === undefined) return undefined
  const claim = holder.claim !== undefined && digits.test(holder.claim) ? BigInt(holder.claim) : record.offset
  const written = { holder, claim, appendedMillis: appendedMillisOf(record), seenMillis }
  entries.set(run, written)
  return written
}

/** When the cluster appended a record; undefined where the journal keeps the times of its writers. */
export const appendedMillisOf = ({ timestampType, timestamp }: ConsumerRecord): number | undefined =>
  timestampType === "LogAppendTime" ? timestamp : undefined
