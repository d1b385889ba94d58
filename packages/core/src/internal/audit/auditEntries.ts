/**
 * The entries of the audit log: key `entry/{id}`, value JSON. An action that changes something has two, with one id: `begun` before it, and how it ended.
 */
import * as Schema from "effect/Schema"
import type { Action, AuditEntry, Ending } from "../../AuditView.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import * as Format from "../base/entryFormat.ts"

const optional = Schema.optionalKey

const StoredEntry = Schema.Struct({
  id: Schema.String,
  by: optional(Schema.String),
  from: Schema.String,
  host: Schema.String,
  permissions: Schema.Array(Schema.String),
  action: Schema.String,
  binding: optional(Schema.String),
  target: optional(
    Schema.Record(
      Schema.String,
      Schema.Union([Schema.String, Schema.Number, Schema.Boolean, Schema.Array(Schema.String)])
    )
  ),
  reason: optional(Schema.String),
  outcome: Schema.Literals(["begun", "done", "refused", "failed"]),
  error: optional(Schema.String),
  run: optional(Schema.String),
  repeats: optional(Schema.Int)
})

const decode = Format.decoder(StoredEntry)

/** An entry to write. */
export interface NewEntry {
  readonly id: string
  readonly host: string
  readonly action: Action
  /** Undefined when the action begins. */
  readonly ending: Ending | undefined
  /** How many like it were not written since the last one. */
  readonly repeats: number
}

const longestReason = 1_000
const longestText = 512
/** Most texts of a list: a selection may name thousands of records. */
const mostTexts = 50

const cut = (text: string, most = longestText): string => text.slice(0, most)

const fitting = (target: Action["target"]): Action["target"] =>
  target &&
  Object.fromEntries(
    Object.entries(target).flatMap(([name, value]): ReadonlyArray<readonly [string, typeof value]> => {
      if (typeof value === "string") return [[name, cut(value)]]
      if (typeof value !== "object") return [[name, value]]
      const texts = value.slice(0, mostTexts).map((text) => cut(text))
      return value.length > mostTexts
        ? [
            [name, texts],
            [`${name}Count`, value.length]
          ]
        : [[name, texts]]
    })
  )

/** The value of an entry. Long texts are cut, so that an entry has some KiB at most. */
export const encode = ({ id, host, action, ending, repeats }: NewEntry): Uint8Array => {
  const { by, from, permissions, binding, reason, run } = action
  return Format.encode({
    ...{ id, by: by && cut(by), from, host, permissions, action: action.action },
    ...{
      binding: binding && cut(binding),
      target: fitting(action.target),
      reason: reason && cut(reason, longestReason)
    },
    ...{ outcome: ending?.outcome ?? "begun", error: ending?.error, run },
    ...(repeats === 0 ? {} : { repeats })
  })
}

export const keyOf = (id: string): Uint8Array => Format.bytesOf(`entry/${id}`)

/** Undefined for a record that is no entry, or that needs a newer reader. */
export const read = ({ value, timestamp }: ConsumerRecord): AuditEntry | undefined => {
  const decoded = value === null ? undefined : decode(value)
  return decoded?._tag === "Entry" ? { repeats: 0, ...decoded.entry, atMillis: timestamp } : undefined
}
