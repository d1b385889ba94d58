/**
 * The preparation of a test: topics, and the assignment of the bindings' partitions.
 */
import type { Binding } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { TestCluster } from "../target/testCluster.ts"
import type { EventRecorder } from "../trail/eventRecorder.ts"
import * as Sources from "../trail/sources.ts"
import * as Stuck from "../trail/stuck.ts"

type Bindings = ReadonlyArray<Binding.Binding<unknown>>

interface TopicOptions {
  readonly partitions?: number
  readonly topics?: Readonly<Record<string, number>>
}

/** The connector creates retry and dead letter topics itself, unless it is configured to wait for them. */
export const createTopics = Effect.fnUntraced(function* (
  cluster: TestCluster,
  bindings: Bindings,
  { partitions = 1, topics = {} }: TopicOptions
): Effect.fn.Return<void> {
  for (const [topic, count] of Object.entries(topics)) yield* cluster.createTopic(topic, count)
  for (const { definition } of bindings) {
    for (const { topic, tiers, deadLetterTopic } of Sources.of(definition)) {
      yield* cluster.createTopic(topic, partitions)
      if (definition.missingTopics === "create") continue
      for (const tier of tiers.topics) yield* cluster.createTopic(tier.topic, partitions)
      yield* cluster.createTopic(deadLetterTopic, partitions)
    }
  }
})

/** Whether every partition that the bindings read is assigned to one of their consumers. */
export const areAssigned = (
  cluster: TestCluster,
  recorder: EventRecorder,
  bindings: Bindings
): Effect.Effect<boolean> =>
  Effect.map(
    Effect.forEach(
      bindings.filter(({ definition }) => definition.autoStartup),
      Effect.fnUntraced(function* ({ name, definition }) {
        for (const { topic } of Stuck.subscriptions(definition)) {
          for (const partition of (yield* cluster.ends(topic)).keys()) {
            if (!isOwned(recorder, name, topic, partition)) return false
          }
        }
        return true
      })
    ),
    (each) => each.every((isAssigned) => isAssigned)
  )

const isOwned = (recorder: EventRecorder, binding: string, topic: string, partition: number): boolean =>
  recorder.owner(binding, { topic, partition })?._tag === "PartitionAssigned"
