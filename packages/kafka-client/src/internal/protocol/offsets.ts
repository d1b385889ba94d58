/** OffsetCommit, OffsetFetch and ListOffsets. */
import type { Codec } from "./apis.ts"
import { readPartitionErrors } from "./reader.ts"
import { Writer } from "./writer.ts"

/** The broker's own retention of commits, which newer versions always take. */
const brokersRetention = -1n

export const OffsetCommit: Codec<"OffsetCommit"> = {
  ...{ key: 8, name: "OffsetCommit", versions: { min: 2, max: 5 }, throttledFrom: 4 },
  encode: ({ groupId, groupGenerationId, memberId, topics }, version) => {
    const writer = new Writer().string(groupId).int32(groupGenerationId).string(memberId)
    if (version <= 4) writer.int64(brokersRetention)
    return writer.array(topics, ({ topic, partitions }) =>
      writer
        .string(topic)
        .array(partitions, ({ partition, offset, metadata }) =>
          writer.int32(partition).int64(BigInt(offset)).string(metadata)
        )
    ).body
  },
  decode: (reader, version) => {
    if (version >= 3) reader.throttle()
    return { responses: readPartitionErrors(reader) }
  }
}

export const OffsetFetch: Codec<"OffsetFetch"> = {
  ...{ key: 9, name: "OffsetFetch", versions: { min: 2, max: 4 }, throttledFrom: 4 },
  encode: ({ groupId, topics }) => {
    const writer = new Writer().string(groupId)
    return writer.array(topics, ({ topic, partitions }) =>
      writer.string(topic).array(partitions, ({ partition }) => writer.int32(partition))
    ).body
  },
  decode: (reader, version) => {
    if (version >= 3) reader.throttle()
    return {
      responses: reader.array(() => ({
        topic: reader.string(),
        partitions: reader.array(() => ({
          partition: reader.int32(),
          offset: reader.decimal(),
          metadata: reader.nullableString(),
          errorCode: reader.int16()
        }))
      })),
      errorCode: reader.int16()
    }
  }
}

export const ListOffsets: Codec<"ListOffsets"> = {
  ...{ key: 2, name: "ListOffsets", versions: { min: 2, max: 3 }, throttledFrom: 3 },
  encode: ({ isolationLevel, topics }) => {
    const writer = new Writer().int32(-1).int8(isolationLevel)
    return writer.array(topics, ({ topic, partitions }) =>
      writer
        .string(topic)
        .array(partitions, ({ partition, timestamp }) => writer.int32(partition).int64(BigInt(timestamp)))
    ).body
  },
  decode: (reader) => {
    reader.throttle()
    return {
      responses: reader.array(() => ({
        topic: reader.string(),
        partitions: reader.array(() => {
          const partition = { partition: reader.int32(), errorCode: reader.int16() }
          reader.int64()
          return { ...partition, offset: reader.decimal() }
        })
      }))
    }
  }
}
