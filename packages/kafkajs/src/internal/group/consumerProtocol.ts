/**
 * Kafka's consumer protocol: the bytes that the members of a group exchange through its coordinator, whichever client wrote them. Versions 0 to 3 are read; a newer one is
 * read as version 3, since versions only add fields at the end. Bytes that are not of the protocol are undefined.
 */
import type { ConsumerRecord } from "@eventbus/core"
import { Encoder } from "../wire/kafkajsInternals.ts"

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
  new Encoder()
    .writeInt16(2)
    .writeArray(topics)
    .writeBytes(userData)
    .writeArray(encodeByTopic(owned))
    .writeInt32(generation).buffer

/** Version 0: nothing was added to it until now. */
export const encodeGivenPartitions = ({ partitions, userData, behind }: GivenPartitions): Buffer =>
  Buffer.concat([new Encoder().writeInt16(0).writeArray(encodeByTopic(partitions)).writeBytes(userData).buffer, behind])

export const decodeSubscription = (bytes: Buffer): ReadSubscription | undefined =>
  decoded(bytes, (reader) => {
    const version = reader.version()
    const topics = reader.array(() => reader.string())
    const userData = reader.bytes()
    const owned = version >= 1 ? reader.partitions() : []
    const generation = version >= 2 ? reader.int32() : generationInUserData(version, userData)
    return { version, topics, userData, owned, generation }
  })

/** No bytes at all mean no partitions. */
export const decodeGivenPartitions = (bytes: Buffer): GivenPartitions | undefined =>
  bytes.length === 0
    ? { partitions: [], userData: bytes, behind: bytes }
    : decoded(bytes, (reader) => {
        reader.version()
        return { partitions: reader.partitions(), userData: reader.bytes(), behind: reader.rest() }
      })

/** Partitions by topic, as pairs and not as an object: `__proto__` is a legal topic name. */
export const groupedByTopic = (
  partitions: ReadonlyArray<ConsumerRecord.TopicPartition>
): ReadonlyArray<readonly [topic: string, partitions: ReadonlyArray<number>]> =>
  Array.from(
    Map.groupBy(partitions, ({ topic }) => topic),
    ([topic, of]) => [topic, of.map(({ partition }) => partition)]
  )

const encodeByTopic = (partitions: ReadonlyArray<ConsumerRecord.TopicPartition>) =>
  groupedByTopic(partitions).map(([topic, numbers]) =>
    new Encoder().writeString(topic).writeArray(numbers.map((partition) => new Encoder().writeInt32(partition)))
  )

/** Kafka's Java client before 3.2 has no field for it: its cooperative-sticky assignor writes nothing but the generation there. */
const generationInUserData = (version: number, userData: Buffer): number =>
  version === 1 && userData.length === 4 ? userData.readInt32BE(0) : -1

/** Reads the types of Kafka's first, inflexible encoding. Throws a RangeError where the bytes end too early or say an impossible length. */
class ProtocolReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  version(): number {
    const version = this.#take(2).readInt16BE(0)
    if (version < 0) throw new RangeError(`version ${version}`)
    return version
  }

  int32(): number {
    return this.#take(4).readInt32BE(0)
  }

  string(): string {
    return this.#take(this.#take(2).readInt16BE(0)).toString()
  }

  /** Null reads as no bytes. */
  bytes(): Buffer {
    const length = this.int32()
    return this.#take(length === -1 ? 0 : length)
  }

  /** Null reads as an empty array. */
  array<A>(element: () => A): ReadonlyArray<A> {
    const length = this.int32()
    if (length < -1) throw new RangeError(`array of ${length}`)
    const elements: Array<A> = []
    for (let left = length; left > 0; left--) elements.push(element())
    return elements
  }

  partitions(): ReadonlyArray<ConsumerRecord.TopicPartition> {
    return this.array(() => {
      const topic = this.string()
      return this.array(() => ({ topic, partition: this.int32() }))
    }).flat()
  }

  rest(): Buffer {
    return this.#take(this.#bytes.length - this.#at)
  }

  #take(length: number): Buffer {
    const from = this.#at
    if (length < 0 || from + length > this.#bytes.length) throw new RangeError(`${length} bytes from ${from}`)
    this.#at += length
    return this.#bytes.subarray(from, this.#at)
  }
}

const decoded = <A>(bytes: Buffer, decode: (reader: ProtocolReader) => A): A | undefined => {
  try {
    return decode(new ProtocolReader(bytes))
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
