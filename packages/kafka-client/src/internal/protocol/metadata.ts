/** Metadata and FindCoordinator. */
import type { Codec } from "./apis.ts"
import type { Reader } from "./reader.ts"
import { Writer } from "./writer.ts"

const readNode = (reader: Reader) => {
  const node = { nodeId: reader.int32(), host: reader.string(), port: reader.int32() }
  reader.nullableString()
  return node
}

const readPartition = (reader: Reader, version: number) => {
  const partition = {
    partitionErrorCode: reader.int16(),
    partitionId: reader.int32(),
    leader: reader.int32(),
    replicas: reader.array(() => reader.int32())
  }
  reader.array(() => reader.int32())
  if (version >= 5) reader.array(() => reader.int32())
  return partition
}

const readTopic = (reader: Reader, version: number) => ({
  topicErrorCode: reader.int16(),
  topic: reader.string(),
  isInternal: reader.int8() !== 0,
  partitionMetadata: reader.array(() => readPartition(reader, version))
})

export const Metadata: Codec<"Metadata"> = {
  ...{ key: 3, name: "Metadata", versions: { min: 4, max: 6 }, throttledFrom: 6 },
  encode: ({ topics }) => {
    const writer = new Writer()
    return (topics === null ? writer.int32(-1) : writer.strings(topics)).boolean(false).body
  },
  decode: (reader, version) => {
    reader.throttle()
    return {
      brokers: reader.array(() => readNode(reader)),
      clusterId: reader.nullableString(),
      controllerId: reader.int32(),
      topicMetadata: reader.array(() => readTopic(reader, version))
    }
  }
}

export const GroupCoordinator: Codec<"GroupCoordinator"> = {
  ...{ key: 10, name: "FindCoordinator", versions: { min: 1, max: 2 }, throttledFrom: 2 },
  encode: ({ groupId, coordinatorType }) => new Writer().string(groupId).int8(coordinatorType).body,
  decode: (reader) => {
    reader.throttle()
    const errorCode = reader.int16()
    reader.nullableString()
    return { errorCode, coordinator: { nodeId: reader.int32(), host: reader.string(), port: reader.int32() } }
  }
}
