/**
 * Where the former names of a group (`adopts`) stand in its retry topics: a lock below is done.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { partitionKey, type TopicPartition } from "../../ConsumerRecord.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

/** Undefined where the group has committed nothing. */
export type FormerPositions = (groupId: string, at: TopicPartition) => bigint | undefined

export const read = Effect.fnUntraced(function* (
  { adopts, tiers }: BindingDefinition<unknown>,
  broker: Broker["Service"]
): Effect.fn.Return<FormerPositions, BrokerError, Scope.Scope> {
  if (adopts.length === 0) return () => undefined
  const admin = yield* broker.admin
  const existing = new Set(yield* admin.listTopics)
  const topics = tiers.topics.flatMap(({ topic }) => (existing.has(topic) ? [topic] : []))
  const groups = new Map<string, ReadonlyMap<string, bigint>>()
  for (const group of adopts) {
    const commits = yield* admin.committedOffsets(group, topics)
    groups.set(group, new Map(commits.map((each) => [partitionKey(each.topic, each.partition), each.offset])))
  }
  return (groupId, { topic, partition }) => groups.get(groupId)?.get(partitionKey(topic, partition))
})
