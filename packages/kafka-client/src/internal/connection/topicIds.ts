/** The ids of topics (KIP-516), by Metadata v11 (Kafka 2.8). A topic that is deleted and made again has another id. */
import * as Effect from "effect/Effect"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { NodeClient } from "../../Transport.ts"
import { type Api, only } from "../protocol/api.ts"
import type { Reader } from "../protocol/reader.ts"
import { Writer } from "../protocol/writer.ts"
import { callApi } from "../wire/requests.ts"

const noId = Buffer.alloc(16)

const skipNode = (reader: Reader): void => {
  reader.int32()
  reader.compactString()
  reader.int32()
  reader.compactString()
  reader.tags()
}

const skipPartition = (reader: Reader): void => {
  reader.skip(2 + 4 + 4 + 4)
  for (let list = 0; list < 3; list++) reader.compactArray(() => reader.int32())
  reader.tags()
}

const readTopic = (reader: Reader): ReadonlyArray<readonly [string, string]> => {
  const errorCode = reader.int16()
  const topic = reader.compactString()
  const id = reader.uuid()
  reader.int8()
  reader.compactArray(() => skipPartition(reader))
  reader.int32()
  reader.tags()
  return errorCode !== 0 || id === undefined ? [] : [[topic, id]]
}

const metadata: Api<ReadonlyArray<string>, ReadonlyMap<string, string>> = {
  ...{ key: 3, name: "Metadata", versions: only(11), throttledFrom: 6, isFlexible: true },
  encode: (topics) => {
    const writer = new Writer()
    return (
      writer
        .compactArray(topics, (topic) => writer.raw(noId).compactString(topic).noTags())
        // No topic is created, and no authorized operations are included.
        .boolean(false)
        .boolean(false)
        .noTags().body
    )
  },
  decode: (reader) => {
    reader.throttle()
    reader.compactArray(() => skipNode(reader))
    reader.compactString()
    reader.int32()
    return new Map(reader.compactArray(() => readTopic(reader)).flat())
  }
}

/** Ids by topic as this node knows them, as Kafka's own tools print them. A topic without one is left out: it does not exist, or the brokers are older than 2.8. */
export const fetchTopicIds = (
  node: NodeClient,
  topics: ReadonlyArray<string>
): Effect.Effect<ReadonlyMap<string, string>, ClientFailure> =>
  (node.versionsOf(metadata.key)?.max ?? 0) < metadata.versions.min
    ? Effect.succeed(new Map())
    : callApi(node, metadata, topics)
