/**
 * Holds in the control topic: `hold/{cluster}/{group}/{binding}`, for a retry tier with `/{tier}` behind it, → JSON `{by, reason, until}`. A tombstone releases.
 *
 * The key alone says what is held. So an entry that this version cannot read holds, too: only a newer operator, or a tombstone, ends it.
 */
import * as Schema from "effect/Schema"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Hold } from "../../FleetView.ts"
import * as Format from "../base/entryFormat.ts"
import * as HoldKeys from "./holdKeys.ts"

const HoldEntry = Schema.Struct({
  by: Schema.String,
  reason: Schema.String,
  until: Schema.optionalKey(Schema.Number)
})
export type HoldEntry = typeof HoldEntry.Type

const decode = Format.decoder(HoldEntry)

const keys = HoldKeys.make("hold")
export const keyOf = keys.keyOf

/** A hold as it was read, with the fields of its entry. */
export interface ReadHold {
  readonly hold: Hold
  readonly fields: Format.Fields
}

/** Applies a record to the holds by their keys. Answers whether it is one about a hold. */
export const apply = (holds: Map<string, ReadHold>, key: string, { value, timestamp }: ConsumerRecord): boolean => {
  const address = keys.addressOf(key)
  if (address === undefined) return false
  if (value === null) return holds.delete(key) || true
  const decoded = decode(value)
  const entry = decoded._tag === "Entry" ? decoded.entry : { by: "unknown", reason: unreadable(decoded) }
  const { by, reason, until } = entry as HoldEntry
  const fields = decoded._tag === "Entry" ? decoded.fields : {}
  holds.set(key, { hold: { ...address, by, reason, sinceMillis: timestamp, untilMillis: until }, fields })
  return true
}

const unreadable = (decoded: Exclude<Format.Decoded<HoldEntry>, { readonly _tag: "Entry" }>): string =>
  decoded._tag === "Newer"
    ? `an operator of a newer version holds it (format ${decoded.v}, this version reads ${Format.version})`
    : "the control topic has an entry for it that cannot be read"
