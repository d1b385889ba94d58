/** Produce and Fetch. The bytes of records are written and read elsewhere. */
import { only } from "./api.ts"
import type { Codec, FetchedPartition } from "./apis.ts"
import type { Reader } from "./reader.ts"
import { Writer } from "./writer.ts"

export const Produce: Codec<"Produce"> = {
  ...{ key: 0, name: "Produce", versions: { min: 3, max: 7 }, throttledFrom: 6 },
  encode: (write, version) => write(version),
  decode: (reader, version) => {
    const topics = reader.array(() => ({
      topicName: reader.string(),
      partitions: reader.array(() => {
        const result = { partition: reader.int32(), errorCode: reader.int16(), baseOffset: reader.decimal() }
        // The time of the log, and from version 5 on the first offset of the log.
        reader.skip(version >= 5 ? 16 : 8)
        return result
      })
    }))
    reader.throttle()
    return { topics }
  }
}

/** Produce by which a leader adds its partitions to the transaction (KIP-890, Kafka 4.0). */
export const ProduceAdding: Codec<"ProduceAdding"> = {
  ...{ key: 0, name: "Produce", versions: only(12), throttledFrom: 6, isFlexible: true },
  encode: (write, version) => write(version),
  decode: (reader) => {
    const topics = reader.compactArray(() => {
      const topicName = reader.compactString()
      const partitions = reader.compactArray(() => {
        const result = { partition: reader.int32(), errorCode: reader.int16(), baseOffset: reader.decimal() }
        // The time and the first offset of the log.
        reader.skip(16)
        reader.compactArray(() => {
          reader.int32()
          reader.compactString()
          reader.tags()
        })
        reader.compactString()
        reader.tags()
        return result
      })
      reader.tags()
      return { topicName, partitions }
    })
    reader.throttle()
    reader.tags()
    return { topics }
  }
}

/** No fetch session (KIP-227). */
const noSession = { id: 0, epoch: -1 }

export const Fetch: Codec<"Fetch"> = {
  ...{ key: 1, name: "Fetch", versions: { min: 4, max: 11 }, throttledFrom: 8 },
  heldMillis: ({ maxWaitTime }) => maxWaitTime,
  encode: ({ maxWaitTime, minBytes, maxBytes, isolationLevel, topics }, version) => {
    const writer = new Writer().int32(-1).int32(maxWaitTime).int32(minBytes).int32(maxBytes).int8(isolationLevel)
    if (version >= 7) writer.int32(noSession.id).int32(noSession.epoch)
    writer.array(topics, ({ topic, partitions }) =>
      writer.string(topic).array(partitions, ({ partition, fetchOffset, maxBytes }) => {
        writer.int32(partition)
        if (version >= 9) writer.int32(-1)
        writer.int64(fetchOffset)
        if (version >= 5) writer.int64(-1n)
        writer.int32(maxBytes)
      })
    )
    if (version >= 7) writer.int32(0)
    return (version >= 11 ? writer.string("") : writer).body
  },
  decode: (reader, version) => {
    reader.throttle()
    const errorCode = version >= 7 ? reader.int16() : 0
    if (version >= 7) reader.int32()
    const partitions: Array<FetchedPartition> = []
    for (let topics = reader.int32(); topics > 0; topics--) {
      const topic = reader.string()
      for (let left = reader.int32(); left > 0; left--) partitions.push(readPartition(reader, version, topic))
    }
    return { errorCode, partitions }
  }
}

/**
 * Fetch by the ids of topics (KIP-516, Kafka 3.1), in a session (KIP-227). A node that has another topic of the same name refuses the id, so no record of it is taken for one of
 * the former topic.
 */
export const FetchById: Codec<"FetchById"> = {
  ...{ key: 1, name: "Fetch", versions: only(13), throttledFrom: 8, isFlexible: true },
  heldMillis: ({ maxWaitTime }) => maxWaitTime,
  encode: ({ maxWaitTime, minBytes, maxBytes, isolationLevel, session, topics, forgotten }) => {
    const writer = new Writer().int32(-1).int32(maxWaitTime).int32(minBytes).int32(maxBytes).int8(isolationLevel)
    writer.int32(session.id).int32(session.epoch)
    writer.compactArray(topics, ({ topic, partitions }) =>
      writer
        .uuid(topic)
        .compactArray(partitions, ({ partition, fetchOffset, maxBytes }) =>
          // Unknown are the leader's epoch, that of the last record, and, to a consumer, the start of the log.
          writer.int32(partition).int32(-1).int64(fetchOffset).int32(-1).int64(-1n).int32(maxBytes).noTags()
        )
        .noTags()
    )
    writer.compactArray(forgotten, ({ topic, partitions }) =>
      writer
        .uuid(topic)
        .compactArray(partitions, (partition) => writer.int32(partition))
        .noTags()
    )
    return writer.compactString("").noTags().body
  },
  decode: (reader) => {
    reader.throttle()
    const [errorCode, sessionId] = [reader.int16(), reader.int32()]
    const topics = reader.compactArray(() => {
      const topic = reader.uuid() ?? ""
      const partitions = reader.compactArray(() => readFlexiblePartition(reader, topic))
      reader.tags()
      return partitions
    })
    reader.tags()
    return { errorCode, sessionId, partitions: topics.flat() }
  }
}

const readFlexiblePartition = (reader: Reader, topic: string): FetchedPartition => {
  const partition = reader.int32()
  const errorCode = reader.int16()
  const highWatermark = reader.int64()
  const lastStableOffset = reader.int64()
  reader.int64()
  const abortedTransactions = reader.compactArray(() => {
    const aborted = { producerId: reader.int64(), firstOffset: reader.int64() }
    reader.tags()
    return aborted
  })
  reader.int32()
  const bytes = reader.compactBytes()
  reader.tags()
  return { topic, partition, errorCode, highWatermark, lastStableOffset, abortedTransactions, bytes }
}

const readPartition = (reader: Reader, version: number, topic: string): FetchedPartition => {
  const partition = reader.int32()
  const errorCode = reader.int16()
  const highWatermark = reader.int64()
  const lastStableOffset = reader.int64()
  if (version >= 5) reader.int64()
  const abortedTransactions = reader.array(() => ({ producerId: reader.int64(), firstOffset: reader.int64() }))
  if (version >= 11) reader.int32()
  return { topic, partition, errorCode, highWatermark, lastStableOffset, abortedTransactions, bytes: reader.bytes() }
}
