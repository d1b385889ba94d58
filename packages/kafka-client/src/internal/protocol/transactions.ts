/** The requests of a producer's identity and of its transactions. */
import type { Body } from "../../Transport.ts"
import { only } from "./api.ts"
import type { Apis, Codec, ProducerIdentity } from "./apis.ts"
import { type Reader, readFlexiblePartitionErrors, readPartitionErrors } from "./reader.ts"
import { unknownLeaderEpoch, Writer, writeOffsets } from "./writer.ts"

const versions = { min: 0, max: 1 }
const throttledFrom = 1

/** An answer of an error code alone. */
const readErrorCode = (reader: Reader) => {
  reader.throttle()
  return { errorCode: reader.int16() }
}

const identity = ({ transactionalId, producerId, producerEpoch }: ProducerIdentity): Writer =>
  new Writer().string(transactionalId).int64(BigInt(producerId)).int16(producerEpoch)

const flexibleIdentity = ({ transactionalId, producerId, producerEpoch }: ProducerIdentity): Writer =>
  new Writer().compactString(transactionalId).int64(BigInt(producerId)).int16(producerEpoch)

export const InitProducerId: Codec<"InitProducerId"> = {
  ...{ key: 22, name: "InitProducerId", versions, throttledFrom },
  encode: ({ transactionalId, transactionTimeout }) =>
    new Writer().nullableString(transactionalId).int32(transactionTimeout).body,
  decode: (reader) => ({
    ...readErrorCode(reader),
    producerId: reader.decimal(),
    producerEpoch: reader.int16()
  })
}

export const AddPartitionsToTxn: Codec<"AddPartitionsToTxn"> = {
  ...{ key: 24, name: "AddPartitionsToTxn", versions, throttledFrom },
  encode: ({ topics, ...producer }) => {
    const writer = identity(producer)
    return writer.array(topics, ({ topic, partitions }) => writer.string(topic).int32s(partitions)).body
  },
  decode: (reader) => {
    reader.throttle()
    return {
      errors: reader.array(() => ({
        topic: reader.string(),
        partitionErrors: reader.array(() => ({ partition: reader.int32(), errorCode: reader.int16() }))
      }))
    }
  }
}

export const AddOffsetsToTxn: Codec<"AddOffsetsToTxn"> = {
  ...{ key: 25, name: "AddOffsetsToTxn", versions, throttledFrom },
  encode: ({ groupId, ...producer }) => identity(producer).string(groupId).body,
  decode: readErrorCode
}

/** The first version with the member whose offsets these are (KIP-447, Kafka 2.5). It is flexible. */
const memberFrom = 3

const encodeMembersOffsets = (payload: Apis["TxnOffsetCommit"]["payload"]): Body => {
  const { transactionalId, groupId, producerId, producerEpoch, generationId, memberId, groupInstanceId } = payload
  const writer = new Writer()
    .compactString(transactionalId)
    .compactString(groupId)
    .int64(BigInt(producerId))
    .int16(producerEpoch)
    .int32(generationId)
    .compactString(memberId)
    .compactNullableString(groupInstanceId)
  return writeOffsets(writer, payload.topics).noTags().body
}

export const TxnOffsetCommit: Codec<"TxnOffsetCommit"> = {
  ...{ key: 28, name: "TxnOffsetCommit", versions: { min: 0, max: 3 }, throttledFrom },
  isFlexible: (version) => version >= memberFrom,
  encode: (payload, version) => {
    if (version >= memberFrom) return encodeMembersOffsets(payload)
    const { transactionalId, groupId, producerId, producerEpoch, topics } = payload
    const writer = new Writer().string(transactionalId).string(groupId).int64(BigInt(producerId)).int16(producerEpoch)
    return writer.array(topics, ({ topic, partitions }) =>
      writer.string(topic).array(partitions, ({ partition, offset, metadata }) => {
        writer.int32(partition).int64(BigInt(offset))
        if (version >= 2) writer.int32(unknownLeaderEpoch)
        writer.nullableString(metadata)
      })
    ).body
  },
  decode: (reader, version) => {
    reader.throttle()
    return { topics: version >= memberFrom ? readFlexiblePartitionErrors(reader) : readPartitionErrors(reader) }
  }
}

/** TxnOffsetCommit by which the group's coordinator adds the offsets to the transaction (KIP-890, Kafka 4.0). */
export const TxnOffsetCommitAdding: Codec<"TxnOffsetCommitAdding"> = { ...TxnOffsetCommit, versions: only(5) }

export const EndTxn: Codec<"EndTxn"> = {
  ...{ key: 26, name: "EndTxn", versions, throttledFrom },
  encode: ({ transactionResult, ...producer }) => identity(producer).boolean(transactionResult).body,
  decode: readErrorCode
}

/** EndTxn that ends the epoch, too: a late request of the transaction is refused (KIP-890, Kafka 4.0). */
export const EndTxnBumping: Codec<"EndTxnBumping"> = {
  ...{ key: 26, name: "EndTxn", versions: only(5), throttledFrom, isFlexible: true },
  encode: ({ transactionResult, ...producer }) => flexibleIdentity(producer).boolean(transactionResult).noTags().body,
  decode: (reader) => {
    const answer = { ...readErrorCode(reader), producerId: reader.decimal(), producerEpoch: reader.int16() }
    reader.tags()
    return answer
  }
}
