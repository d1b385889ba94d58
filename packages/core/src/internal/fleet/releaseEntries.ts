/**
 * The last release of each target in the control topic: `released/{cluster}/{group}/{binding}`, for a retry tier with `/{tier}` behind it, → JSON `{by, reason, held: {by, reason, since}}`.
 *
 * The hold itself ends with a tombstone, which compaction deletes in the end. The release has a key of its own, so it stays until the next one of its target.
 */
import * as Schema from "effect/Schema"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { Hold, Release } from "../../FleetView.ts"
import * as Format from "../base/entryFormat.ts"
import * as HoldKeys from "./holdKeys.ts"

const ReleaseEntry = Schema.Struct({
  by: Schema.String,
  reason: Schema.String,
  /** The hold that ended; `since`: epoch milliseconds by the cluster's clock. */
  held: Schema.Struct({ by: Schema.String, reason: Schema.String, since: Schema.Number })
})

const decode = Format.decoder(ReleaseEntry)

const keys = HoldKeys.make("released")

/** The key and the value for the release of this hold. */
export const entryOf = (
  hold: Hold,
  { by, reason }: { readonly by: string; readonly reason: string }
): readonly [key: string, value: Uint8Array] => {
  const held = { by: hold.by, reason: hold.reason, since: hold.sinceMillis }
  return [keys.keyOf(hold), Format.encode({ by, reason, held } satisfies typeof ReleaseEntry.Type)]
}

/** Applies a record to the last releases by their keys. One that this version cannot read is left out: it holds nothing. */
export const apply = (releases: Map<string, Release>, key: string, { value, timestamp }: ConsumerRecord): void => {
  const address = keys.addressOf(key)
  if (address === undefined) return
  releases.delete(key)
  const decoded = value === null ? undefined : decode(value)
  if (decoded?._tag !== "Entry") return
  const { by, reason, held } = decoded.entry
  releases.set(key, {
    ...{ ...address, by, reason, atMillis: timestamp },
    held: { by: held.by, reason: held.reason, sinceMillis: held.since }
  })
}
