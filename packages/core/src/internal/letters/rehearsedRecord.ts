/**
 * The record that a rehearsal hands over: the copy that a replay would publish, in the topic that the dead letter came from.
 */
import type { ConsumerRecord, Header } from "../../ConsumerRecord.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import type { Receiver } from "../record/decoding.ts"
import * as ReplayHeaders from "../record/replayHeaders.ts"
import * as ReplayTargets from "../replay/replayTargets.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

/** The parts that all records of a rehearsal have in common. */
export interface Rehearsed {
  readonly definition: BindingDefinition<unknown>
  readonly clusterId: string
  readonly hostname: string
  readonly nowMillis: number
}

/** The record; undefined when no replay publishes to the topic that its dead letter came from. Its offset is the original one, since nobody knows that of the copy. */
export const of = (rehearsed: Rehearsed, letter: DeadLetterRecord): ConsumerRecord | undefined => {
  const { topic: sourceTopic, deadLetterTopic, tiers, deadLetter } = rehearsed.definition
  const { origins } = deadLetter.settings
  const target = ReplayTargets.targetOf({ sourceTopic, deadLetterTopic, tiers, origins }, {}, letter)
  return target === undefined ? undefined : new RehearsedRecord(rehearsed, letter, target)
}

/** Builds its headers when somebody looks at them: most handlers do not. */
class RehearsedRecord implements ConsumerRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  readonly timestamp: number
  readonly compression: ConsumerRecord["compression"]
  readonly transactional = true
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly #letter: DeadLetterRecord
  readonly #of: Rehearsed
  #headers: ReadonlyArray<Header> | undefined

  constructor(of: Rehearsed, letter: DeadLetterRecord, { topic, partition }: ReplayTargets.Target) {
    this.topic = topic
    this.partition = partition ?? letter.originalPartition
    this.offset = letter.originalOffset
    this.timestamp = of.nowMillis
    this.compression = letter.record.compression
    this.key = letter.key
    this.value = letter.value
    this.#letter = letter
    this.#of = of
  }

  get headers(): ReadonlyArray<Header> {
    const { topic, partition, timestamp } = this
    const { clusterId, definition } = this.#of
    const bond = { clusterId, topic, partition, timestamp }
    this.#headers ??= ReplayHeaders.forSource(this.#letter, definition.groupId, bond)
    return this.#headers
  }
}

/** The receiver of a record: it is delivered for the first time, and its origin is that of the dead letter. */
export const receiverOf = (
  { definition, hostname }: Rehearsed,
  { originalTopic, originalPartition, originalOffset, originalTimestamp }: DeadLetterRecord
): Receiver => ({
  bindingName: definition.name,
  cluster: definition.cluster,
  consumerInstance: `${hostname}-rehearsal`,
  enrich: definition.enrich,
  retryPosition: () => ({
    origin: {
      ...{ topic: originalTopic, partition: originalPartition },
      ...{ offset: originalOffset, timestamp: originalTimestamp }
    },
    tier: 0,
    attempt: 1
  })
})
