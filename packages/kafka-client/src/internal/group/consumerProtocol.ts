/**
 * Kafka's consumer protocol: the bytes that the members of a group exchange through its coordinator, whichever client wrote them. Versions 0 to 3 are read; a newer one is
 * read as version 3, since versions only add fields at the end. Bytes that are not of the protocol are undefined.
 */
import type { ConsumerRecord } from "@eventbus/core"
import { Reader } from "../protocol/reader.ts"
import { Writer } from "../protocol/writer.ts"

/** A member's part of a JoinGroup. */
export interface Subscription {
  readonly topics: ReadonlyArray<string>
  readonly userData: Buffer
  /** The partitions that it keeps through the rebalance (version 1 and later). */
  readonly owned: ReadonlyArray<ConsumerRecord.TopicPartition>
  /** The generation in which it got them: a field from version 2 on, Java's `userData` in version 1; -1 when it says none. */
  readonly generation: number
}

/** A subscription as it was read. */
export interface ReadSubscription extends Subscription {
  readonly version: number
}

/** The partitions that the leader, or the broker, gives to a member. */
export interface GivenPartitions {
  readonly partitions: ReadonlyArray<ConsumerRecord.TopicPartition>
  readonly userData: Buffer
  /** Bytes behind the last field. Other clients and brokers do not read them, while `userData` keeps a broker from moving the group to KIP-848. */
  readonly behind: Buffer
}

/** Version 2, which clients and brokers of every age read: the older ones leave out its last fields. */
export const encodeSubscription = ({ topics, userData, owned, generation }: Subscription): Buffer =>
  writeByTopic(new Writer().int16(2).strings(topics).bytes(userData), owned).int32(generation).body.bytes

/** Version 0: nothing was added to it until now. */
export const encodeGivenPartitions = ({ partitions, userData, behind }: GivenPartitions): Buffer =>
  writeByTopic(new Writer().int16(0), partitions).bytes(userData).raw(behind).body.bytes

export const decodeSubscription = (bytes: Buffer): ReadSubscription | undefined =>
  decoded(bytes, (reader) => {
    const version = readVersion(reader)
    const topics = reader.array(() => reader.string())
    const userData = reader.bytes()
    const owned = version >= 1 ? readPartitions(reader) : []
    const generation = version >= 2 ? reader.int32() : generationInUserData(version, userData)
    return { version, topics, userData, owned, generation }
  })

/** No bytes at all mean no partitions. */
export const decodeGivenPartitions = (bytes: Buffer): GivenPartitions | undefined =>
  bytes.length === 0
    ? { partitions: [], userData: bytes, behind: bytes }
    : decoded(bytes, (reader) => {
        readVersion(reader)
        return { partitions: readPartitions(reader), userData: reader.bytes(), behind: reader.rest() }
      })

/** Partitions by topic, as pairs and not as an object: `__proto__` is a legal topic name. */
export const groupedByTopic = (
  partitions: ReadonlyArray<ConsumerRecord.TopicPartition>
): ReadonlyArray<readonly [topic: string, partitions: ReadonlyArray<number>]> =>
  Array.from(
    Map.groupBy(partitions, ({ topic }) => topic),
    ([topic, of]) => [topic, of.map(({ partition }) => partition)]
  )

const writeByTopic = (writer: Writer, partitions: ReadonlyArray<ConsumerRecord.TopicPartition>): Writer =>
  writer.array(groupedByTopic(partitions), ([topic, numbers]) => writer.string(topic).int32s(numbers))

/** Kafka's Java client before 3.2 has no field for it: its cooperative-sticky assignor writes nothing but the generation there. */
const generationInUserData = (version: number, userData: Buffer): number =>
  version === 1 && userData.length === 4 ? userData.readInt32BE(0) : -1

/** Refuses a version that no client writes. */
const readVersion = (reader: Reader): number => {
  const version = reader.int16()
  if (version < 0) throw new RangeError(`version ${version}`)
  return version
}

const readPartitions = (reader: Reader): ReadonlyArray<ConsumerRecord.TopicPartition> =>
  reader
    .array(() => {
      const topic = reader.string()
      return reader.array(() => ({ topic, partition: reader.int32() }))
    })
    .flat()

const decoded = <A>(bytes: Buffer, decode: (reader: Reader) => A): A | undefined => {
  try {
    return decode(new Reader(bytes))
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
