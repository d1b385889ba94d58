/**
 * Names that are derived from a binding: retry topics, dead letter topic, containers, group members (rulings "Names").
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

/** `{topic}.{suffix}`: what an explicit `topicSuffix` of a tier or of the dead letter topic makes. */
export const withSuffix = (topic: string, suffix: string): string => `${topic}.${suffix}`

/** The topics that a binding adds to its main topic. */
export interface DerivedTopics {
  /** Retry topics in the order of their tiers. */
  readonly retry: ReadonlyArray<string>
  /** The dead letter topic. */
  readonly deadLetter: string
}

/**
 * The topics of a binding. `tierSuffixes` has one entry for each tier: the tier's `topicSuffix`, or undefined for what the
 * strategy says. `deadLetterSuffix` does the same for the dead letter topic. The default strategy is `standard`.
 */
export const derive = (
  source: Source,
  options: {
    readonly tierSuffixes: ReadonlyArray<string | undefined>
    readonly deadLetterSuffix?: string | undefined
    readonly strategy?: NamingStrategy | undefined
  }
): DerivedTopics => {
  const strategy = options.strategy ?? standard
  return {
    retry: options.tierSuffixes.map((suffix, index) =>
      suffix === undefined ? strategy.retry(source, index + 1) : withSuffix(source.topic, suffix)
    ),
    deadLetter:
      options.deadLetterSuffix === undefined
        ? strategy.deadLetter(source)
        : withSuffix(source.topic, options.deadLetterSuffix)
  }
}

/** A name that cannot be used, and why. */
export interface NameProblem {
  /** The name. */
  readonly name: string
  /** Why it cannot be used. */
  readonly reason: string
}

const maxLength = 249

/** Why a name is not a legal Kafka topic name (or `group.instance.id`, which follows the same rules); undefined when it is. */
export const illegal = (name: string): string | undefined => {
  if (name === "") return "it is empty"
  if (name === "." || name === "..") return "it is '.' or '..'"
  if (name.length > maxLength) return `it has ${name.length} characters; at most ${maxLength} are allowed`
  const bad = /[^a-zA-Z0-9._-]/u.exec(name)
  return bad === null ? undefined : `it contains ${JSON.stringify(bad[0])}; allowed are a-z A-Z 0-9 . _ -`
}

/** Two different names that Kafka's metrics cannot tell apart, since they write '.' as '_'; the broker refuses the second one. */
export const collide = (a: string, b: string): boolean => a !== b && metricName(a) === metricName(b)

/**
 * Everything that is wrong with derived names, at once: illegal names, two tiers (or a tier and the dead letter topic) of the
 * same name, a name that is a source topic, and `.`/`_` collisions with another derived name or a source topic. `sources` are the
 * source topics of all bindings on the cluster.
 */
export const problems = (derived: DerivedTopics, sources: Iterable<string>): ReadonlyArray<NameProblem> => {
  const sourceTopics = new Set(sources)
  const seen = new Map([...sourceTopics].map((topic) => [metricName(topic), topic]))
  const found: Array<NameProblem> = []
  for (const name of [...derived.retry, derived.deadLetter]) {
    const reason = illegal(name) ?? clash(name, seen.get(metricName(name)), sourceTopics)
    if (reason !== undefined) found.push({ name, reason })
    seen.set(metricName(name), name)
  }
  return found
}

const clash = (name: string, other: string | undefined, sources: ReadonlySet<string>): string | undefined => {
  if (sources.has(name)) return "it is the name of a source topic"
  if (other === undefined) return undefined
  return other === name
    ? "it occurs twice: each tier and the dead letter topic needs a name of its own"
    : `it collides with '${other}': Kafka does not tell '.' and '_' apart`
}

const metricName = (name: string): string => name.replaceAll(".", "_")

/** Name of a binding's container: `eventbus-{binding}`, or `eventbus-{binding}-retry-{n}` for tier n (0 is the main topic). */
export const container = (binding: string, tier = 0): string =>
  tier === 0 ? `eventbus-${binding}` : `eventbus-${binding}-retry-${tier}`

/** `group.instance.id` of a consumer: `{binding}-{hostname}-{index}`. `index` counts the consumers of the binding in this process, those of tiers included. */
export const groupInstanceId = (binding: string, hostname: string, index: number): string =>
  `${binding}-${hostname}-${index}`

/** Group of whatever consumes the dead letter topic. */
export const deadLetterGroup = (groupId: string): string => `${groupId}.dlt`

/** Group of tiers that have a consumer session of their own. */
export const retryGroup = (groupId: string): string => `${groupId}.retry`
