/**
 * The topics of a binding one by one. A binding of several topics is looked at as one definition for each: the same settings, handler and group, with the names that are derived
 * from that topic.
 */
import * as TopicName from "../../TopicName.ts"
import type { TierTopic } from "../retry/tiers.ts"
import type { BindingDefinition } from "./bindingDefinition.ts"

const made = new WeakMap<object, ReadonlyArray<unknown>>()

/** The binding once for each of its topics. The first one is the given definition itself. */
export const of = <R>(definition: BindingDefinition<R>): ReadonlyArray<BindingDefinition<R>> => {
  const known = made.get(definition) as ReadonlyArray<BindingDefinition<R>> | undefined
  if (known !== undefined) return known
  const { topic, tiers, deadLetterTopic, otherSources } = definition
  const all = [{ topic, tiers, deadLetterTopic }, ...otherSources]
  const views = all.map((source, index) =>
    index === 0 ? definition : { ...definition, ...source, otherSources: all.toSpliced(index, 1) }
  )
  made.set(definition, views)
  return views
}

/** The topics that it reads, without retry topics. */
export const topicsOf = (definition: BindingDefinition<unknown>): ReadonlyArray<string> =>
  of(definition).map(({ topic }) => topic)

/** Every retry topic, topic by topic. */
export const retryTopicsOf = (definition: BindingDefinition<unknown>): ReadonlyArray<string> =>
  of(definition).flatMap(({ tiers }) => tiers.topics.map(({ topic }) => topic))

/** Every retry topic and dead letter topic, topic by topic. */
export const derivedOf = (definition: BindingDefinition<unknown>): ReadonlyArray<string> =>
  of(definition).flatMap(({ tiers, deadLetterTopic }) => [...tiers.topics.map(({ topic }) => topic), deadLetterTopic])

/** The binding as it reads this topic or retry topic, or publishes to this dead letter topic; as it was given for every other one. */
export const ofTopic = <R>(definition: BindingDefinition<R>, topic: string): BindingDefinition<R> =>
  of(definition).find(
    (source) => source.topic === topic || source.tiers.ofTopic(topic) !== undefined || source.deadLetterTopic === topic
  ) ?? definition

/** Undefined for a topic that is no retry topic of the binding. */
export const tierOf = (definition: BindingDefinition<unknown>, topic: string): TierTopic | undefined =>
  ofTopic(definition, topic).tiers.ofTopic(topic)

/** The group that reads a topic of the binding: retry topics may have one of their own (`consumer: "separate"`). */
export const groupOf = (definition: BindingDefinition<unknown>, topic: string): string =>
  definition.retry.consumer === "separate" && tierOf(definition, topic) !== undefined
    ? TopicName.retryGroup(definition.groupId)
    : definition.groupId
