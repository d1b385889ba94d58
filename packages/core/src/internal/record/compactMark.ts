/**
 * Owner, tier and delivery number of a copy in one short header, for a copy that its topic has refused as too large with every longer form (rulings 22 and 71).
 *
 * Hashes stand for topic and group, so the header is shorter than the names of the headers that it replaces. A hash for another topic says nothing, as with the
 * owner mark itself.
 */
import type { Header } from "../../ConsumerRecord.ts"
import { murmur2 } from "../port/murmur2.ts"
import * as Names from "./headerNames.ts"
import * as HeaderValues from "./headerValues.ts"

export interface CompactMark {
  /** `#` and the hash of the group. */
  readonly owner: string
  /** Undefined in the dead letter topic. */
  readonly delivery: Delivery | undefined
}

/** Decimal text, as in the headers that it stands for. */
interface Delivery {
  readonly tier: Uint8Array
  readonly attempt: Uint8Array
}

const encoder = new TextEncoder()

const hash = (name: string): string => (murmur2(encoder.encode(name)) >>> 0).toString(16).padStart(8, "0")

/** Stands for a group whose name a copy has no room for. */
export const ownerOf = (groupId: string): string => `#${hash(groupId)}`

const form = /^([0-9a-f]{8})(#[0-9a-f]{8})(?:\/(\d{1,10})\/(\d{1,10}))?$/

/** The header for a copy of a group in a topic. */
export const header = (topic: string, groupId: string, delivery: CompactMark["delivery"]): Header => {
  const suffix =
    delivery === undefined ? "" : `/${HeaderValues.text(delivery.tier)}/${HeaderValues.text(delivery.attempt)}`
  return { key: Names.compactMark, value: encoder.encode(`${hash(topic)}${ownerOf(groupId)}${suffix}`) }
}

/** Undefined where there is no such header, or one for another topic. */
export const read = (topic: string, headers: ReadonlyArray<Header>): CompactMark | undefined => {
  const mark = HeaderValues.text(HeaderValues.last(headers, Names.compactMark))
  // Hardly any copy has one, and every record of a retry topic without an owner mark is asked: nothing to match, nothing to hash.
  if (mark === undefined) return undefined
  const found = form.exec(mark)
  if (found === null || found[1] !== hash(topic)) return undefined
  const [, , owner, tier, attempt] = found
  if (tier === undefined || attempt === undefined) return { owner: owner!, delivery: undefined }
  return { owner: owner!, delivery: { tier: encoder.encode(tier), attempt: encoder.encode(attempt) } }
}
