/**
 * Names that a binding derives from its topic and its group: retry topics, dead letter topic, further groups (rulings "Names").
 */

/** The parts that a strategy may build a name of. */
export interface Source {
  /** The main topic of the binding. */
  readonly topic: string
  /** Its consumer group. */
  readonly groupId: string
}

/** How retry and dead letter topics are called. Built in are `standard`, `dotted`, `dashed` and `perGroup`; any two functions will do. */
export interface NamingStrategy {
  /** Shown in messages. */
  readonly name: string
  /** Name of retry topic `tier` (from 1). */
  readonly retry: (source: Source, tier: number) => string
  /** Name of the dead letter topic. */
  readonly deadLetter: (source: Source) => string
}

/** `{topic}.retry-{n}` and `{topic}.DLT`: the default. */
export const standard: NamingStrategy = {
  name: "standard",
  retry: ({ topic }, tier) => `${topic}.retry-${tier}`,
  deadLetter: ({ topic }) => `${topic}.DLT`
}

/** `{topic}.retry.{n}` and `{topic}.error`. */
export const dotted: NamingStrategy = {
  name: "dotted",
  retry: ({ topic }, tier) => `${topic}.retry.${tier}`,
  deadLetter: ({ topic }) => `${topic}.error`
}

/** `{topic}-retry` and `{topic}-dlq`: one tier at most. */
export const dashed: NamingStrategy = {
  name: "dashed",
  retry: ({ topic }) => `${topic}-retry`,
  deadLetter: ({ topic }) => `${topic}-dlq`
}

/** `{topic}.{group}.retry-{n}` and `{topic}.{group}.DLT`: what separates the bindings of different groups on one topic. */
export const perGroup: NamingStrategy = {
  name: "perGroup",
  retry: ({ topic, groupId }, tier) => `${topic}.${groupId}.retry-${tier}`,
  deadLetter: ({ topic, groupId }) => `${topic}.${groupId}.DLT`
}

/** The longest name of a topic, in characters. */
export const maxLength = 249

/** Why a name is not a legal Kafka topic name (or `group.instance.id`, which follows the same rules); undefined when it is. */
export const illegal = (name: string): string | undefined => {
  if (name === "") return "it is empty"
  if (name === "." || name === "..") return "it is '.' or '..'"
  if (name.length > maxLength) return `it has ${name.length} characters; at most ${maxLength} are allowed`
  const bad = /[^a-zA-Z0-9._-]/u.exec(name)
  return bad === null ? undefined : `it contains ${JSON.stringify(bad[0])}; allowed are a-z A-Z 0-9 . _ -`
}

/** The consumer group that reads the dead letter topic, for strategies that do: `{groupId}.dlt`. */
export const deadLetterGroup = (groupId: string): string => `${groupId}.dlt`

/** The consumer group of the retry tiers with `consumer: "separate"`: `{groupId}.retry`. */
export const retryGroup = (groupId: string): string => `${groupId}.retry`
