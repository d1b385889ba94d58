/** The body of a Produce request: in one layout in v3 to v7, and in another one in v9 to v12. */

import { type Body, headerRoom } from "../../Transport.ts"
import { headerBytes, writeBatch, writeHeader } from "../batch/recordBatch.ts"
import { unsignedVarintSize, writeUnsignedVarint } from "../batch/varint.ts"
import { plainBatch, type SizedBatch } from "./compressedBatches.ts"
import type { Batch, PartitionLog } from "./partitionLog.ts"

/** A batch that was taken from its log. */
export interface TakenBatch {
  readonly log: PartitionLog
  readonly batch: Batch
}

export interface ProduceSettings {
  readonly acks: -1 | 1
  readonly timeoutMillis: number
  readonly transactionalId: string | undefined
}

/** How the versions of a layout write lengths. */
interface Layout {
  /** Bytes of the length of a text, of an array or of records. */
  readonly textSize: (length: number) => number
  readonly size: (length: number) => number
  /** Writes a length, and returns the position after it. `undefined`: that of null. */
  readonly writeText: (target: Buffer, at: number, length: number | undefined) => number
  readonly write: (target: Buffer, at: number, length: number) => number
  /** Bytes of an empty list of tagged fields, which ends every structure of a flexible version. */
  readonly tags: 0 | 1
}

const classic: Layout = {
  textSize: () => 2,
  size: () => 4,
  writeText: (target, at, length) => target.writeInt16BE(length ?? -1, at),
  write: (target, at, length) => target.writeInt32BE(length, at),
  tags: 0
}

const compactSize = (length: number): number => unsignedVarintSize(length + 1)

const writeCompact = (target: Buffer, at: number, length: number | undefined): number =>
  writeUnsignedVarint(target, at, (length ?? -1) + 1)

/** KIP-482. */
const flexible: Layout = {
  textSize: compactSize,
  size: compactSize,
  writeText: writeCompact,
  write: writeCompact,
  tags: 1
}

/** The first version of Produce that is flexible. */
const flexibleFrom = 9

const writeSized = (
  target: Buffer,
  { measured, codec, body }: SizedBatch,
  log: PartitionLog,
  isTransactional: boolean
) => {
  const identity = {
    producerId: log.identity?.producerId ?? -1n,
    producerEpoch: log.identity?.producerEpoch ?? -1,
    baseSequence: log.identity === undefined ? -1 : log.sequence,
    transactional: isTransactional
  }
  if (body === undefined) return writeBatch(target, measured, identity)
  body.copy(target, headerBytes)
  writeHeader(target, measured, identity, codec)
}

/** Writes an empty list of tagged fields, where there is one. */
const endStructure = (target: Buffer, at: number, tags: Layout["tags"]): number =>
  tags === 0 ? at : target.writeUInt8(0, at)

/**
 * Encodes batches into the bytes that go to the socket; each record is copied once. `compressed`: the same batches, where their records are to be
 * compressed.
 */
export const encodeProduce = (
  settings: ProduceSettings,
  version: number,
  taken: ReadonlyArray<TakenBatch>,
  compressed?: ReadonlyArray<SizedBatch>
): Body => {
  const { acks, timeoutMillis, transactionalId } = settings
  const { textSize, size: sizeOf, writeText, write, tags } = version < flexibleFrom ? classic : flexible
  const sized = taken.map(({ log, batch }, index) => ({ log, batch: compressed?.[index] ?? plainBatch(batch) }))
  const topics = [...Map.groupBy(sized, ({ log }) => log.topic)].map(([topic, batches]) => ({
    name: Buffer.from(topic),
    batches
  }))
  const id = transactionalId === undefined ? undefined : Buffer.from(transactionalId)
  let size = textSize(id?.length ?? 0) + (id?.length ?? 0) + 2 + 4 + sizeOf(topics.length) + tags
  for (const { name, batches } of topics) {
    size += textSize(name.length) + name.length + sizeOf(batches.length) + tags
    for (const { batch } of batches) size += 4 + sizeOf(batch.total) + batch.total + tags
  }
  const whole = Buffer.allocUnsafe(headerRoom + size)
  const bytes = whole.subarray(headerRoom)
  let at = writeText(bytes, 0, id?.length)
  if (id !== undefined) at += id.copy(bytes, at)
  at = bytes.writeInt16BE(acks, at)
  at = bytes.writeInt32BE(timeoutMillis, at)
  at = write(bytes, at, topics.length)
  for (const { name, batches } of topics) {
    at = writeText(bytes, at, name.length)
    at += name.copy(bytes, at)
    at = write(bytes, at, batches.length)
    for (const { log, batch } of batches) {
      at = bytes.writeInt32BE(log.partition, at)
      at = write(bytes, at, batch.total)
      writeSized(bytes.subarray(at, at + batch.total), batch, log, transactionalId !== undefined)
      at = endStructure(bytes, at + batch.total, tags)
    }
    at = endStructure(bytes, at, tags)
  }
  endStructure(bytes, at, tags)
  return { bytes, whole }
}
