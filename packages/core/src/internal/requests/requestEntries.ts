/**
 * The entries of requests in the journal: `request/{id}/{claim}/{group}` → JSON, all in partition 0. Each claim has a key of its own, and names the offset of its first entry:
 * so the order of the log decides who came first, and compaction changes nothing about it.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ConsumerRecord, ProducerRecord } from "../../ConsumerRecord.ts"
import { partition } from "../replay/journalTail.ts"

const RequestEntry = Schema.Struct({
  /** The version of this format. A reader takes a newer one as it is, as far as it knows its fields. */
  v: Schema.Int,
  host: Schema.String,
  pid: Schema.Int,
  fingerprint: Schema.String,
  /** The offset of the claim's first entry; absent in that one. */
  claim: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\d{1,19}$/))),
  /** Absent until the work is over. */
  answer: Schema.optionalKey(
    Schema.Struct({ status: Schema.Int.check(Schema.isBetween({ minimum: 200, maximum: 599 })), body: Schema.String })
  )
})
export type RequestEntry = typeof RequestEntry.Type

/** A claim of the journal. */
export interface Claim {
  /** The id of the request. */
  readonly id: string
  /** The id of the claim. */
  readonly claim: string
  readonly entry: RequestEntry
  /** The offset of its first entry. */
  readonly offset: bigint
  /** The time of its last entry, epoch milliseconds. */
  readonly millis: number
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** An entry of a claim, or its tombstone (null). */
export const record = (
  topic: string,
  groupId: string,
  { id, claim }: Pick<Claim, "id" | "claim">,
  entry: RequestEntry | null
): ProducerRecord => ({
  ...{ topic, partition, key: encoder.encode(`request/${id}/${claim}/${groupId}`) },
  value: entry === null ? null : encoder.encode(JSON.stringify(entry))
})

const key = /^request\/([0-9a-f]{64})\/([0-9a-f-]{36})\/(.*)$/s
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(RequestEntry))

/** Applies a record of the journal to the claims of a group, by id of the claim. Any other record, and a malformed entry, changes nothing. */
export const apply = (claims: Map<string, Claim>, groupId: string, found: ConsumerRecord): void => {
  const [, id, claim, group] = key.exec(found.key === null ? "" : decoder.decode(found.key)) ?? []
  if (id === undefined || claim === undefined || group !== groupId) return
  if (found.value === null) {
    claims.delete(claim)
    return
  }
  const entry = Option.getOrUndefined(decode(decoder.decode(found.value)))
  if (entry === undefined) return
  const offset = entry.claim === undefined ? found.offset : BigInt(entry.claim)
  claims.set(claim, { id, claim, entry, offset, millis: found.timestamp })
}
