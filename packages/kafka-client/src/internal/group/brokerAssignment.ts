/**
 * The partitions that the broker has assigned to one member (KIP-848), by the names of their topics. The broker names topics by their ids, and a topic that is made again has
 * another one: a partition that is still owned under the former id is released before it is taken under the new one.
 */
import { ConsumerRecord } from "@eventbus/core"
import type { PartitionsOfTopic } from "../protocol/memberApis.ts"
import { byTopicId } from "./consumerGroupRequests.ts"
import type { Ownership } from "./ownership.ts"

type TopicPartition = ConsumerRecord.TopicPartition

const keyOf = ({ topic, partition }: TopicPartition): string => ConsumerRecord.partitionKey(topic, partition)

export class BrokerAssignment {
  readonly #ownership: Ownership
  /** The id of the topic under which a partition was taken, by partition key. */
  readonly #takenAs = new Map<string, string>()
  #target: ReadonlyArray<PartitionsOfTopic> = []
  #isNew = false

  constructor(ownership: Ownership) {
    this.#ownership = ownership
  }

  /**
   * The last assignment is not applied: it is new, or the member does not own a part of it. That part could not be taken yet, or the session has lost it since, because a node said
   * that its topic was deleted. The broker assigns nothing twice, so the member looks again by itself.
   */
  get isPending(): boolean {
    return this.#isNew || this.#target.some(({ topicId, partitions }) => this.#isMissing(topicId, partitions))
  }

  /** The broker has assigned these partitions, and no others. */
  set(target: ReadonlyArray<PartitionsOfTopic>): void {
    this.#target = target
    this.#isNew = true
  }

  /** The member is out of its group. */
  clear(): void {
    this.#target = []
    this.#isNew = false
    this.#takenAs.clear()
  }

  /** The partitions to own now. `ids`: the ids of topics by their names. */
  take(ids: ReadonlyMap<string, string>): ReadonlyArray<TopicPartition> {
    const nameOf = new Map(Array.from(ids, ([topic, id]) => [id, topic]))
    const owned: Array<TopicPartition> = []
    for (const { topicId, partitions } of this.#target) {
      const topic = nameOf.get(topicId)
      // A node may lag behind, or the topic is deleted and the broker has not noticed yet: what is owned stays, and nothing is taken.
      const held = topic === undefined ? this.#heldAs(topicId) : []
      const wanted = topic === undefined ? held : partitions.map((partition) => ({ topic, partition }))
      const taken = wanted.filter((at) => !this.#isHeldAsAnother(at, topicId))
      for (const at of taken) this.#takenAs.set(keyOf(at), topicId)
      owned.push(...taken.filter(({ partition }) => partitions.includes(partition)))
    }
    this.#isNew = false
    return owned
  }

  /** The partitions that the member owns, as heartbeats report them. */
  owned(): ReadonlyArray<PartitionsOfTopic> {
    return byTopicId(this.#ownership.all(), (at) => this.#takenAs.get(keyOf(at)))
  }

  #isMissing(topicId: string, partitions: ReadonlyArray<number>): boolean {
    const held = new Set(this.#heldAs(topicId).map(({ partition }) => partition))
    return !partitions.every((partition) => held.has(partition))
  }

  #heldAs(topicId: string): ReadonlyArray<TopicPartition> {
    return this.#ownership
      .all()
      .flatMap(({ topic, partition }) =>
        this.#takenAs.get(keyOf({ topic, partition })) === topicId ? [{ topic, partition }] : []
      )
  }

  #isHeldAsAnother(at: TopicPartition, topicId: string): boolean {
    return this.#ownership.get(at) !== undefined && this.#takenAs.get(keyOf(at)) !== topicId
  }
}
