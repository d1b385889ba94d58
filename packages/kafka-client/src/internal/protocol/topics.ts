/** Administration of topics: creating, deleting, more partitions, deleting records, configuration. */
import { only } from "./api.ts"
import type { Codec } from "./apis.ts"
import type { Reader } from "./reader.ts"
import { Writer } from "./writer.ts"

const readTopicErrors = (reader: Reader) => {
  reader.throttle()
  return {
    topicErrors: reader.array(() => ({
      topic: reader.string(),
      errorCode: reader.int16(),
      errorMessage: reader.nullableString()
    }))
  }
}

export const CreateTopics: Codec<"CreateTopics"> = {
  ...{ key: 19, name: "CreateTopics", versions: { min: 2, max: 3 }, throttledFrom: 3 },
  encode: ({ topics, timeout }) => {
    const writer = new Writer()
    return writer
      .array(topics, ({ topic, numPartitions, replicationFactor, configEntries }) =>
        writer
          .string(topic)
          .int32(numPartitions)
          .int16(replicationFactor)
          // The broker assigns the replicas.
          .int32(0)
          .array(configEntries, ({ name, value }) => writer.string(name).string(value))
      )
      .int32(timeout)
      .boolean(false).body
  },
  decode: readTopicErrors
}

export const DeleteTopics: Codec<"DeleteTopics"> = {
  ...{ key: 20, name: "DeleteTopics", versions: only(1) },
  encode: ({ topics, timeout }) => new Writer().strings(topics).int32(timeout).body,
  decode: (reader) => {
    reader.throttle()
    return { topicErrors: reader.array(() => ({ topic: reader.string(), errorCode: reader.int16() })) }
  }
}

export const CreatePartitions: Codec<"CreatePartitions"> = {
  ...{ key: 37, name: "CreatePartitions", versions: { min: 0, max: 1 }, throttledFrom: 1 },
  encode: ({ topicPartitions, timeout }) => {
    const writer = new Writer()
    return (
      writer
        // The broker assigns the replicas.
        .array(topicPartitions, ({ topic, count }) => writer.string(topic).int32(count).int32(-1))
        .int32(timeout)
        .boolean(false).body
    )
  },
  decode: readTopicErrors
}

export const DeleteRecords: Codec<"DeleteRecords"> = {
  ...{ key: 21, name: "DeleteRecords", versions: { min: 0, max: 1 }, throttledFrom: 1 },
  encode: ({ topics, timeout }) => {
    const writer = new Writer()
    return writer
      .array(topics, ({ topic, partitions }) =>
        writer.string(topic).array(partitions, ({ partition, offset }) => writer.int32(partition).int64(BigInt(offset)))
      )
      .int32(timeout).body
  },
  decode: (reader) => {
    reader.throttle()
    return {
      topics: reader.array(() => ({
        topic: reader.string(),
        partitions: reader.array(() => {
          const partition = reader.int32()
          reader.int64()
          return { partition, errorCode: reader.int16() }
        })
      }))
    }
  }
}

/** The outcome for a resource, and its type and name behind it. */
const readResource = (reader: Reader) => {
  const answer = { errorCode: reader.int16(), errorMessage: reader.nullableString() }
  reader.int8()
  reader.string()
  return answer
}

const readConfig = (reader: Reader) => {
  const config = { configName: reader.string(), configValue: reader.nullableString() }
  // Whether it is read-only, where it comes from, and whether it is sensitive.
  reader.skip(3)
  reader.array(() => {
    reader.string()
    reader.nullableString()
    reader.int8()
  })
  return config
}

export const DescribeConfigs: Codec<"DescribeConfigs"> = {
  ...{ key: 32, name: "DescribeConfigs", versions: { min: 1, max: 2 }, throttledFrom: 2 },
  encode: ({ resources }) => {
    const writer = new Writer()
    return (
      writer
        // All keys.
        .array(resources, ({ type, name }) => writer.int8(type).string(name).int32(-1))
        .boolean(false).body
    )
  },
  decode: (reader) => {
    reader.throttle()
    return {
      resources: reader.array(() => {
        const answer = readResource(reader)
        return { ...answer, configEntries: reader.array(() => readConfig(reader)) }
      })
    }
  }
}

const setOperation = 0

/** KIP-339, Kafka 2.3. The older AlterConfigs resets every key that it does not name. */
export const IncrementalAlterConfigs: Codec<"IncrementalAlterConfigs"> = {
  ...{ key: 44, name: "IncrementalAlterConfigs", versions: only(0), throttledFrom: 0 },
  encode: ({ type, name, config }) => {
    const writer = new Writer().int32(1).int8(type).string(name)
    return writer
      .array([...config], ([name, value]) => writer.string(name).int8(setOperation).string(value))
      .boolean(false).body
  },
  decode: (reader) => {
    reader.throttle()
    return { resources: reader.array(() => readResource(reader)) }
  }
}
