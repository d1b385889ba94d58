/**
 * What has to be there before a test begins: topics, and the partitions of the bindings that are to run.
 */
import type { Binding } from "@eventbus/core"
import { Effect } from "effect"
import type { TestCluster } from "../target/testCluster.ts"
import type { Chronicle } from "../trail/chronicle.ts"
import * as Stuck from "../trail/stuck.ts"

type Bindings = ReadonlyArray<Binding.Binding<unknown>>

export interface TopicOptions {
  readonly partitions?: number
  readonly topics?: Readonly<Record<string, number>>
}

/** Retry and dead letter topics are made by the connector, unless it is told to wait for them. */
export const createTopics = Effect.fnUntraced(function* (
  cluster: TestCluster,
  bindings: Bindings,
  { partitions = 1, topics = {} }: TopicOptions
): Effect.fn.Return<void> {
  for (const [topic, count] of Object.entries(topics)) yield* cluster.createTopic(topic, count)
  for (const { definition } of bindings) {
    yield* cluster.createTopic(definition.topic, partitions)
    if (definition.missingTopics === "create") continue
    for (const { topic } of definition.tiers.topics) yield* cluster.createTopic(topic, partitions)
    yield* cluster.createTopic(definition.deadLetterTopic, partitions)
  }
})

/** Whether every partition that the bindings read has been assigned to one of their consumers. */
export const areAssigned = (cluster: TestCluster, chronicle: Chronicle, bindings: Bindings): Effect.Effect<boolean> =>
  Effect.map(
    Effect.forEach(
      bindings.filter(({ definition }) => definition.autoStartup),
      Effect.fnUntraced(function* ({ name, definition }) {
        for (const { topic } of Stuck.sources(definition)) {
          for (const partition of (yield* cluster.ends(topic)).keys()) {
            if (!isOwned(chronicle, name, topic, partition)) return false
          }
        }
        return true
      })
    ),
    (each) => each.every((isAssigned) => isAssigned)
  )

const isOwned = (chronicle: Chronicle, binding: string, topic: string, partition: number): boolean =>
  chronicle.owner(binding, { topic, partition })?._tag === "PartitionAssigned"
