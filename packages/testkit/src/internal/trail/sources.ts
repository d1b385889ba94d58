/**
 * The topics that a binding reads, with the retry topics and the dead letter topic of each.
 */
import type { Binding } from "@eventbus/core"

export type Definition = Binding.Binding<unknown>["definition"]

type Tier = ReturnType<Definition["tiers"]["ofTopic"]>

type Source = Pick<Definition, "topic" | "tiers" | "deadLetterTopic">

export const of = (definition: Definition): ReadonlyArray<Source> => [definition, ...definition.otherSources]

/** Whether the binding reads the topic, not as a retry topic. */
export const reads = (definition: Definition, topic: string): boolean =>
  of(definition).some((source) => source.topic === topic)

/** The tier of a retry topic; undefined for every other topic. */
export const tierOf = (definition: Definition, topic: string): Tier =>
  of(definition)
    .map(({ tiers }) => tiers.ofTopic(topic))
    .find((tier) => tier !== undefined)
