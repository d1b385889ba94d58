/**
 * Commands in the control topic: `command/{id}` → JSON `{verb, binding, tier, target, by, reason, expiresAfter}`. Operators end them with tombstones after seven days.
 *
 * The verb is any text: a process answers one that it does not know, and never ignores it.
 */
import * as Schema from "effect/Schema"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as Format from "../base/entryFormat.ts"
import { appendedMillisOf } from "../replay/leaseEntries.ts"

const optional = Schema.optionalKey

const CommandEntry = Schema.Struct({
  verb: Schema.String,
  binding: optional(Schema.String),
  tier: optional(Schema.Int),
  /** All absent: every process, and every binding. */
  target: Schema.Struct({
    group: optional(Schema.String),
    host: optional(Schema.String),
    process: optional(Schema.String)
  }),
  by: Schema.String,
  reason: Schema.String,
  /** Milliseconds after the time at which the cluster appended the entry. */
  expiresAfter: Schema.Number
})
export type CommandEntry = typeof CommandEntry.Type

/** Whether the command is for this process. `host` is undefined where nobody can tell. */
export const isFor = (
  { target }: CommandEntry,
  { id, host }: { readonly id: string; readonly host: string | undefined }
): boolean =>
  (target.process === undefined || target.process === id) &&
  (target.host === undefined || host === undefined || target.host === host)

/** A command as it was read. */
export interface ReadCommand {
  readonly id: string
  readonly decoded: Format.Decoded<CommandEntry>
  /** When the cluster appended it, epoch milliseconds; undefined in a topic that keeps the times of its writers. */
  readonly appendedMillis: number | undefined
}

const decode = Format.decoder(CommandEntry)

export const keyOf = (id: string): string => `command/${id}`

const form = /^command\/(.{1,128})$/

/** The command of a record; undefined when it is none, and for the end of one. */
export const read = (key: string, record: ConsumerRecord): ReadCommand | undefined => {
  const [, id] = form.exec(key) ?? []
  if (id === undefined || record.value === null) return undefined
  return { id, decoded: decode(record.value), appendedMillis: appendedMillisOf(record) }
}

/** The id of the command that a tombstone ends. */
export const endedId = (key: string, { value }: ConsumerRecord): string | undefined =>
  value === null ? form.exec(key)?.[1] : undefined
