/**
 * Checks names that a binding derives (rulings "Names"), and makes those that no strategy decides about.
 */
import { deadLetterGroup, illegal } from "../../TopicName.ts"

/** `{topic}.{suffix}`: the topic of an explicit `topicSuffix` of a tier or of the dead letter topic. */
export const withSuffix = (topic: string, suffix: string): string => `${topic}.${suffix}`

/** The journal of replays of a dead letter topic: `{dead letter topic}.replays`. */
export const journal = (deadLetterTopic: string): string => `${deadLetterTopic}.replays`

/** The dead letter topic that a topic is the journal of, by the names of the built-in strategies; undefined for every other topic. */
export const journalOf = (topic: string): string | undefined => /^(.+(?:\.DLT|\.error|-dlq))\.replays$/.exec(topic)?.[1]

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

/**
 * `group.instance.id` of a consumer: `{binding}__{hostname}__{index}`. `index` counts the consumers of the binding in this process, those of tiers included. Everything but
 * letters, digits, `.` and `-` is escaped as `_` and four hexadecimal digits, so that `__` only separates, and no two consumers share a name (ruling 81).
 */
export const groupInstanceId = (binding: string, hostname: string, index: number): string =>
  `${memberPart(binding)}__${memberPart(hostname)}__${index}`

/** The name that the first version gave the same consumer. Other consumers may have had it, too: `a-b` on host `c`, and `a` on host `b-c`. */
export const formerGroupInstanceId = (binding: string, hostname: string, index: number): string =>
  `${binding}-${hostname}-${index}`

const memberPart = (text: string): string =>
  text.replace(/[^a-zA-Z0-9.-]/g, (found) => `_${found.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** The longest escaped name of a binding with static members: a host name of 64 characters and the index have to fit as well. */
export const longestMemberPart = 170

export const memberPartLength = (binding: string): number => memberPart(binding).length

/** `transactional.id` of an input partition: `{group}/{topic}/{partition}`. No topic has a `/` in its name, and in the group it is escaped, so that no two share a name (ruling 81). */
export const transactionalId = (groupId: string, topic: string, partition: number): string =>
  `${escaped(groupId)}/${topic}/${partition}`

/** The name that the first version gave the same producer: that of group `a` and topic `b-c` is that of group `a-b` and topic `c`. */
export const formerTransactionalId = (groupId: string, topic: string, partition: number): string =>
  `${groupId}-${topic}-${partition}`

/** `transactional.id` of replays of a dead letter topic: `{group}/{dead letter topic}/replay`. */
export const replayTransactionalId = (groupId: string, deadLetterTopic: string): string =>
  `${escaped(groupId)}/${deadLetterTopic}/replay`

/** The name that the first version gave the same replays. */
export const formerReplayTransactionalId = (groupId: string, deadLetterTopic: string): string =>
  `${deadLetterGroup(groupId)}.replay.${deadLetterTopic}`

/** `transactional.id` of plans, and of what operators ask of runs: `{group}/{dead letter topic}/runs`. It fences no replay. */
export const runsTransactionalId = (groupId: string, deadLetterTopic: string): string =>
  `${escaped(groupId)}/${deadLetterTopic}/runs`

/** Whether no other group and topic have the same former name: only a name that has the separator in it can make one (ruling 81). */
export const isFormerReplayIdUnique = (groupId: string, deadLetterTopic: string): boolean =>
  [groupId, deadLetterTopic].every((name) => !`.${name}.`.includes(".dlt.replay."))

/** The text without the characters that separate the parts of a name. Most names have none, and stay as they are. */
export const escaped = (text: string): string =>
  text.replace(/[%/:]/g, (found) => `%${found.charCodeAt(0).toString(16).toUpperCase()}`)

/** The text that was escaped. */
export const unescaped = (text: string): string =>
  text.replace(/%(25|2F|3A)/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
