/**
 * Checks names that a binding derives (rulings "Names"), and makes those that no strategy decides about.
 */
import { illegal } from "../../TopicName.ts"

/** `{topic}.{suffix}`: the topic of an explicit `topicSuffix` of a tier or of the dead letter topic. */
export const withSuffix = (topic: string, suffix: string): string => `${topic}.${suffix}`

/** The topics that a binding adds to its main topic. */
interface DerivedTopics {
  /** Retry topics in the order of their tiers. */
  readonly retry: ReadonlyArray<string>
  /** The dead letter topic. */
  readonly deadLetter: string
}

/** A name that cannot be used, and why. */
interface NameProblem {
  /** The name. */
  readonly name: string
  /** Why it cannot be used. */
  readonly reason: string
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
