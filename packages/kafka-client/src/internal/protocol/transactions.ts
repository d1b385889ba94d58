/** The requests of a producer's identity and of its transactions. */
import type { Codec, ProducerIdentity } from "./apis.ts"
import { type Reader, readPartitionErrors } from "./reader.ts"
import { Writer } from "./writer.ts"

const versions = { min: 0, max: 1 }
const throttledFrom = 1

/** An answer of an error code alone. */
const readErrorCode = (reader: Reader) => {
  reader.throttle()
  return { errorCode: reader.int16() }
}

const identity = ({ transactionalId, producerId, producerEpoch }: ProducerIdentity): Writer =>
  new Writer().string(transactionalId).int64(BigInt(producerId)).int16(producerEpoch)

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

export const TxnOffsetCommit: Codec<"TxnOffsetCommit"> = {
  ...{ key: 28, name: "TxnOffsetCommit", versions, throttledFrom },
  encode: ({ transactionalId, groupId, producerId, producerEpoch, topics }) => {
    const writer = new Writer().string(transactionalId).string(groupId).int64(BigInt(producerId)).int16(producerEpoch)
    return writer.array(topics, ({ topic, partitions }) =>
      writer
        .string(topic)
        .array(partitions, ({ partition, offset, metadata }) =>
          writer.int32(partition).int64(BigInt(offset)).nullableString(metadata)
        )
    ).body
  },
  decode: (reader) => {
    reader.throttle()
    return { topics: readPartitionErrors(reader) }
  }
}

export const EndTxn: Codec<"EndTxn"> = {
  ...{ key: 26, name: "EndTxn", versions, throttledFrom },
  encode: ({ transactionResult, ...producer }) => identity(producer).boolean(transactionResult).body,
  decode: readErrorCode
}
