/** A batch that cannot be read, in one line. */
import type { HeldBatch } from "../../Snapshot.ts"

/** Where the batch is, and how much it holds. */
export const batchText = ({ topic, partition, offset, lastOffset, records, codec }: HeldBatch): string => {
  const end = lastOffset === offset ? "" : ` to ${lastOffset}`
  const known = [
    records === undefined ? undefined : `${records} records`,
    codec === undefined ? undefined : `codec ${codec}`
  ]
  const facts = known.filter((fact) => fact !== undefined).join(", ")
  return `${topic}-${partition} at offset ${offset}${end}${facts === "" ? "" : ` (${facts})`}`
}

export const unreadableText = (batch: HeldBatch): string =>
  `the batch of ${batchText(batch)} cannot be read: ${batch.detail}. Its partition waits. ${batch.remedy}`
