/** A batch that cannot be read, in one line. */
import type { UnreadableBatch } from "../../Broker.ts"
import type { HeldBatch } from "../../Snapshot.ts"

const pass = "or pass the batch with `skip`"

/** The remedy that an operator has, by problem. */
export const remedies: Readonly<Record<UnreadableBatch["problem"], string>> = {
  codec: `Run a version that reads the codec, ${pass}.`,
  broken: `Restore the partition from a replica or a backup, ${pass}.`,
  tooLarge: `Raise maxBufferedBytes of the binding, ${pass}.`,
  format: `Have the broker rewrite the records (topic setting message.format.version), ${pass}.`
}

/** Where the batch is, and how much it holds. */
export const batchText = ({ topic, partition, offset, lastOffset, records, codec }: UnreadableBatch): string => {
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
