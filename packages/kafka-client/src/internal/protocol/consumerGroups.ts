/** The requests of members in Kafka's consumer protocol (KIP-848): the heartbeat, which joins, stays and leaves, and the first OffsetCommit that takes a member epoch. */
import { only } from "./api.ts"
import type { Codec } from "./apis.ts"
import type { PartitionsOfTopic } from "./memberApis.ts"
import { type Reader, readFlexiblePartitionErrors } from "./reader.ts"
import { Writer, writeOffsets } from "./writer.ts"

/** The first version with a field for a regular expression of topics, which this client leaves out. */
const regexFrom = 1

/** Kafka 4.0; version 0 is that of earlier releases that try the protocol. */
export const ConsumerGroupHeartbeat: Codec<"ConsumerGroupHeartbeat"> = {
  ...{ key: 68, name: "ConsumerGroupHeartbeat", versions: { min: 0, max: 1 }, throttledFrom: 0, isFlexible: true },
  encode: ({ groupId, memberId, memberEpoch, groupInstanceId, ...payload }, version) => {
    const { rebalanceTimeout, topics, assignor, owned } = payload
    const writer = new Writer().compactString(groupId).compactString(memberId).int32(memberEpoch)
    // No rack.
    writer.compactNullableString(groupInstanceId).compactNullableString(null).int32(rebalanceTimeout)
    writer.nullableCompactArray(topics, (topic) => writer.compactString(topic))
    if (version >= regexFrom) writer.compactNullableString(null)
    return writer
      .compactNullableString(assignor)
      .nullableCompactArray(owned, ({ topicId, partitions }) =>
        writer
          .uuid(topicId)
          .compactArray(partitions, (partition) => writer.int32(partition))
          .noTags()
      )
      .noTags().body
  },
  decode: (reader) => {
    reader.throttle()
    const errorCode = reader.int16()
    const errorMessage = reader.compactString()
    reader.compactString()
    return {
      ...{ errorCode, errorMessage, memberEpoch: reader.int32(), heartbeatInterval: reader.int32() },
      assignment: reader.optional(() => readAssignment(reader))
    }
  }
}

const readAssignment = (reader: Reader): ReadonlyArray<PartitionsOfTopic> => {
  const assignment = reader.compactArray(() => {
    const topicId = reader.uuid() ?? ""
    const partitions = reader.compactArray(() => reader.int32())
    reader.tags()
    return { topicId, partitions }
  })
  reader.tags()
  return assignment
}

/** OffsetCommit v9 (Kafka 3.6): a group of the consumer protocol refuses older ones. */
export const ConsumerGroupOffsetCommit: Codec<"ConsumerGroupOffsetCommit"> = {
  ...{ key: 8, name: "OffsetCommit", versions: only(9), throttledFrom: 4, isFlexible: true },
  encode: ({ groupId, groupGenerationId, memberId, groupInstanceId, topics }) => {
    const writer = new Writer().compactString(groupId).int32(groupGenerationId).compactString(memberId)
    writer.compactNullableString(groupInstanceId)
    return writeOffsets(writer, topics).noTags().body
  },
  decode: (reader) => {
    reader.throttle()
    return { responses: readFlexiblePartitionErrors(reader) }
  }
}
