/**
 * The entries of plans and runs in the journal of replays, all in partition 0 and all written in transactions:
 * - `plan/{id}/{group}` → JSON: a plan, with the digest of the letters that it takes.
 * - `run/{id}/{group}` → JSON: the state of the run of that plan, written with each batch.
 * - `batch/{id}/{n}/{group}` → JSON: the copies of transaction `n`, from 0, and how many letters it deals with.
 * - `halt/{id}/{group}` → JSON: an operator pauses or cancels the run. It counts until the run's state names its offset as obeyed.
 * - `rate/{id}/{group}` → JSON: an operator sets the rate.
 * - `closed/{id}/{group}` → JSON: the final counts of the receipt.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ConsumerRecord, ProducerRecord } from "../../ConsumerRecord.ts"
import { RunState } from "../../ReplayRun.ts"
import { partition } from "../replay/journalTail.ts"
import * as Entries from "../replay/leaseEntries.ts"

const version = { v: Schema.Int }
const optional = Schema.optionalKey

export const PlanEntry = Schema.Struct({
  ...version,
  action: Schema.Literals(["replay", "toTier", "discard", "restore"]),
  tier: optional(Schema.Int),
  transform: optional(Schema.String),
  rate: Schema.Number,
  canary: Schema.Number,
  canaryWait: Schema.Number,
  stopAbove: Schema.Number,
  ignoreMaxReplays: Schema.Boolean,
  reason: Schema.String,
  by: Schema.String,
  /** The selection; positions as `{partition}@{offset}`. */
  select: Schema.Struct({
    fingerprints: optional(Schema.Array(Schema.String)),
    fromMillis: optional(Schema.Number),
    toMillis: optional(Schema.Number),
    keys: optional(Schema.Array(Schema.String)),
    records: optional(Schema.Array(Schema.String)),
    all: optional(Schema.Literal(true)),
    except: optional(Schema.Array(Schema.String))
  }),
  count: Schema.Int,
  /** SHA-256 over the positions of all letters that it takes. */
  digest: Schema.String,
  sample: Schema.Array(Schema.String),
  targets: Schema.Record(Schema.String, Schema.Int),
  refusals: Schema.Record(Schema.String, Schema.Int),
  passedOver: Schema.Int,
  unreadable: Schema.Int,
  ends: Schema.Array(Schema.String),
  /** The id of the dead letter topic. */
  topicId: optional(Schema.String),
  /** The last letter that it takes of each partition, as `{partition}@{offset} {timestamp}`. Entries of older versions have none. */
  anchors: optional(Schema.Array(Schema.String)),
  /** The topics that the binding's replays could write to. */
  mayWriteTo: Schema.Array(Schema.String),
  createdAt: Schema.Number
})
export type PlanEntry = typeof PlanEntry.Type

const RunEntry = Schema.Struct({
  ...version,
  state: RunState,
  stateReason: optional(Schema.String),
  refused: Schema.Int,
  refusals: Schema.Record(Schema.String, Schema.Int),
  /** Whether the canary is decided. */
  canaryOver: Schema.Boolean,
  /** The offset of the last `halt` entry that the run has obeyed. */
  obeyed: optional(Schema.String.check(Schema.isPattern(/^\d{1,19}$/))),
  startedAt: Schema.Number,
  host: Schema.String,
  pid: Schema.Int
})
export type RunEntry = typeof RunEntry.Type

const CopyEntry = Schema.Struct({
  /** The dead letter, as `{partition}@{offset}`. */
  letter: Schema.String,
  /** Its copy, as `{topic}-{partition}@{offset}`. */
  copy: Schema.String,
  /** SHA-256 of the value of the letter, and of that of the copy, where a function has made it. */
  was: optional(Schema.String),
  is: optional(Schema.String)
})

const BatchEntry = Schema.Struct({ ...version, taken: Schema.Int, copies: Schema.Array(CopyEntry) })
export type BatchEntry = typeof BatchEntry.Type

const HaltEntry = Schema.Struct({
  ...version,
  verb: Schema.Literals(["pause", "cancel"]),
  reason: Schema.String,
  by: Schema.String
})
export type HaltEntry = typeof HaltEntry.Type

const RateEntry = Schema.Struct({ ...version, rate: Schema.Number, by: Schema.String })
export type RateEntry = typeof RateEntry.Type

const ClosedEntry = Schema.Struct({
  ...version,
  passed: Schema.Int,
  cameBack: Schema.Int,
  elsewhere: Schema.Int,
  /** Absent when there are none, and in entries of older versions. */
  unknown: optional(Schema.Int)
})
export type ClosedEntry = typeof ClosedEntry.Type

/** An entry, with the offset of its record and the time that the journal has of it. */
export interface At<A> {
  readonly entry: A
  readonly offset: bigint
  /** When the cluster appended it; undefined where the journal keeps the times of its writers. */
  readonly appendedMillis: number | undefined
  readonly millis: number
}

/** Everything that the journal tells about one plan. */
export interface Told {
  readonly id: string
  plan?: At<PlanEntry> | undefined
  run?: At<RunEntry> | undefined
  halt?: At<HaltEntry> | undefined
  rate?: At<RateEntry> | undefined
  closed?: At<ClosedEntry> | undefined
  /** By number. */
  readonly batches: Map<number, At<BatchEntry>>
}

const schemas = {
  plan: PlanEntry,
  run: RunEntry,
  halt: HaltEntry,
  rate: RateEntry,
  closed: ClosedEntry
} as const

type Kind = keyof typeof schemas
type EntryOf<K extends Kind> = (typeof schemas)[K]["Type"]

const encoder = new TextEncoder()
const decoder = new TextDecoder()

const written = (topic: string, key: string, entry: object | null): ProducerRecord => ({
  ...{ topic, partition, key: encoder.encode(key) },
  value: entry === null ? null : encoder.encode(JSON.stringify(entry))
})

/** An entry, or its tombstone (null). */
export const record = <K extends Kind>(
  kind: K,
  topic: string,
  id: string,
  groupId: string,
  entry: EntryOf<K> | null
): ProducerRecord => written(topic, `${kind}/${id}/${groupId}`, entry)

/** The entry of a transaction, or its tombstone (null). */
export const batchRecord = (
  topic: string,
  { id, number }: { readonly id: string; readonly number: number },
  groupId: string,
  entry: BatchEntry | null
): ProducerRecord => written(topic, `batch/${id}/${number}/${groupId}`, entry)

/** Only a batch has a number: the name of a group may begin with one, and a slash. */
const form = /^(?:(plan|run|halt|rate|closed)\/([0-9a-f-]{36})|batch\/([0-9a-f-]{36})\/(\d{1,9}))\/(.*)$/s

const decoders = {
  plan: Schema.decodeUnknownOption(Schema.fromJsonString(PlanEntry)),
  run: Schema.decodeUnknownOption(Schema.fromJsonString(RunEntry)),
  halt: Schema.decodeUnknownOption(Schema.fromJsonString(HaltEntry)),
  rate: Schema.decodeUnknownOption(Schema.fromJsonString(RateEntry)),
  closed: Schema.decodeUnknownOption(Schema.fromJsonString(ClosedEntry)),
  batch: Schema.decodeUnknownOption(Schema.fromJsonString(BatchEntry))
} as const

/** Applies a record of the journal. One that is malformed, of another group, or written outside of a transaction changes nothing. */
export const apply = (all: Map<string, Told>, groupId: string, found: ConsumerRecord): void => {
  if (found.transactional === false || found.key === null) return
  const [, kind, ofKind, ofBatch, number, group] = form.exec(decoder.decode(found.key)) ?? []
  const id = ofKind ?? ofBatch
  if (id === undefined || group !== groupId) return
  const told = all.get(id) ?? { id, batches: new Map<number, At<BatchEntry>>() }
  const text = found.value === null ? undefined : decoder.decode(found.value)
  const at = { offset: found.offset, appendedMillis: Entries.appendedMillisOf(found), millis: found.timestamp }
  if (number !== undefined) applyBatch(told, Number(number), text, at)
  else applyEntry(told, kind as Kind, text, at)
  all.set(id, told)
}

type Where = Omit<At<unknown>, "entry">

const applyBatch = (told: Told, number: number, text: string | undefined, at: Where): void => {
  if (text === undefined) told.batches.delete(number)
  else Option.map(decoders.batch(text), (entry) => told.batches.set(number, { entry, ...at }))
}

const applyEntry = (told: Told, kind: Kind, text: string | undefined, at: Where): void => {
  const put = <A>(decoded: Option.Option<A>, keep: (entry: At<A> | undefined) => void) => {
    if (text === undefined) keep(undefined)
    else if (Option.isSome(decoded)) keep({ entry: decoded.value, ...at })
  }
  if (kind === "plan") put(decoders.plan(text), (entry) => (told.plan = entry))
  else if (kind === "run") put(decoders.run(text), (entry) => (told.run = entry))
  else if (kind === "halt") put(decoders.halt(text), (entry) => (told.halt = entry))
  else if (kind === "rate") put(decoders.rate(text), (entry) => (told.rate = entry))
  else put(decoders.closed(text), (entry) => (told.closed = entry))
}

/** How many letters the transactions of a run deal with. */
export const takenOf = ({ batches }: Told): number =>
  Array.from(batches.values()).reduce((sum, { entry }) => sum + entry.taken, 0)

/** A `halt` entry that the run has not obeyed yet. */
export const pendingHalt = ({ halt, run }: Told): HaltEntry | undefined =>
  halt !== undefined && halt.offset > BigInt(run?.entry.obeyed ?? -1) ? halt.entry : undefined
