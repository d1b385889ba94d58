/**
 * The record that a copy is published as, and the partition that it goes to. A topic that is missing is created first.
 */
import * as Effect from "effect/Effect"
import { type BrokerError, RecordTooLarge } from "../../BrokerError.ts"
import type { ProducerRecord } from "../../ConsumerRecord.ts"
import type { Copy } from "../record/copy.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import type { TargetTopics } from "./targetTopics.ts"

export interface CopyAddress {
  /** The source's partition for a copy without key, so that neighbours stay together; undefined where the target has no such partition. */
  readonly samePartition: (copy: Copy) => Effect.Effect<number | undefined>
  /** The record to publish. A copy that names its partition goes there, one without a key to `partition`, one with a key where that leads. */
  readonly producerRecord: (copy: Copy, partition: number | undefined) => ProducerRecord
  /** The record to publish, with its partition. */
  readonly recordOf: (copy: Copy) => Effect.Effect<ProducerRecord>
  /** True when the cause of a refusal is removed, so that the next attempt need not wait. */
  readonly heal: (error: BrokerError, topic: string) => Effect.Effect<boolean>
  /** The error with the limit that a copy exceeds. A broker that refuses a copy as too large does not name it. */
  readonly withLimit: (error: BrokerError) => Effect.Effect<BrokerError>
}

export const make = (definition: BindingDefinition<unknown>, topics: TargetTopics): CopyAddress => {
  const { missingTopics, copyCompression } = definition
  const producerRecord: CopyAddress["producerRecord"] = ({ record, topic, headers, ...copy }, partition) => {
    const { key, value } = record
    const compression = copy.compression ?? (copyCompression === "source" ? record.compression : copyCompression)
    const compressed = compression === undefined ? undefined : { compression }
    const chosen = copy.toPartition ?? (key === null ? partition : undefined)
    return chosen === undefined
      ? { topic, key, value, headers, ...compressed }
      : { topic, key, value, headers, partition: chosen, ...compressed }
  }
  const partitionsOf = (topic: string) =>
    Effect.flatMap(topics.partitionsOf(topic), (partitions) =>
      partitions !== undefined || missingTopics !== "create"
        ? Effect.succeed(partitions)
        : Effect.andThen(Effect.ignore(topics.create(topic)), topics.partitionsOf(topic))
    )
  const samePartition = ({ record, topic }: Copy) =>
    Effect.map(partitionsOf(topic), (partitions) =>
      partitions !== undefined && record.partition < partitions ? record.partition : undefined
    )
  return {
    samePartition,
    producerRecord,
    recordOf: (copy) =>
      copy.record.key === null && copy.toPartition === undefined
        ? Effect.map(samePartition(copy), (partition) => producerRecord(copy, partition))
        : Effect.succeed(producerRecord(copy, undefined)),
    heal: (error, topic) => {
      if (error._tag === "RecordRejected") return Effect.as(topics.doubt(topic), false)
      if (error._tag !== "UnknownTopic" || missingTopics !== "create") return Effect.succeed(false)
      return Effect.match(topics.create(topic), { onSuccess: () => true, onFailure: () => false })
    },
    withLimit: (error) => {
      if (error._tag !== "RecordTooLarge") return Effect.succeed(error)
      const { topic, bytes } = error
      return Effect.map(topics.maxMessageBytes(topic), (maxBytes) =>
        maxBytes === undefined ? error : new RecordTooLarge({ topic, bytes, maxBytes })
      )
    }
  }
}
