/** The ids of topics (KIP-516), by Metadata v11, which kafkajs does not encode. A topic that is deleted and made again has another id. */
import * as Effect from "effect/Effect"
import type { ClientFailure } from "../wire/clientFailure.ts"
import { type FlexibleReader, FlexibleWriter } from "../wire/flexible.ts"
import type { KafkaBroker } from "../wire/kafkajsInternals.ts"
import { callFlexible } from "../wire/requests.ts"

const metadata = { key: 3, version: 11, name: "Metadata" }

const noId = Buffer.alloc(16)

const request = (topics: ReadonlyArray<string>) => {
  const writer = new FlexibleWriter().size(topics.length)
  for (const topic of topics) writer.bytes(noId).string(topic).noTags()
  // No topic is created, and no authorized operations are included.
  return writer.boolean(false).boolean(false).noTags()
}

const skipNode = (reader: FlexibleReader): void => {
  reader.skip(4)
  reader.string()
  reader.skip(4)
  reader.string()
  reader.tags()
}

const skipPartition = (reader: FlexibleReader): void => {
  reader.skip(2 + 4 + 4 + 4)
  for (let list = 0; list < 3; list++) reader.int32s()
  reader.tags()
}

const readTopic = (reader: FlexibleReader): ReadonlyArray<readonly [string, string]> => {
  const errorCode = reader.int16()
  const topic = reader.string()
  const id = reader.take(noId.length)
  reader.skip(1)
  reader.array(() => skipPartition(reader))
  reader.skip(4)
  reader.tags()
  return errorCode !== 0 || id.equals(noId) ? [] : [[topic, id.toString("base64url")]]
}

const decode = (reader: FlexibleReader): ReadonlyMap<string, string> => {
  reader.skip(4)
  reader.array(() => skipNode(reader))
  reader.string()
  reader.skip(4)
  return new Map(reader.array(() => readTopic(reader)).flat())
}

/** Ids by topic as this node knows them, as Kafka's own tools print them. A topic without one is left out: it does not exist, or the brokers are older than 2.8. */
export const fetchTopicIds = Effect.fnUntraced(function* (
  broker: KafkaBroker,
  topics: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyMap<string, string>, ClientFailure> {
  const newest = broker.versions?.[metadata.key]?.maxVersion ?? 0
  if (newest < metadata.version) return new Map()
  return yield* callFlexible(broker, metadata, () => request(topics), decode)
})
