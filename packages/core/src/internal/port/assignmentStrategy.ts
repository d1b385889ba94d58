/** The assignment protocols that a member can list, by the names on the wire. */

export const own = "eventbus-cooperative-sticky"

/** That of kafkajs, whose leader regards no subscription but its own. */
export const kafkajs = "RoundRobinAssigner"

/** All assignment protocols that a member can list. */
export const names = [own, "cooperative-sticky", "range", "roundrobin", "sticky", kafkajs] as const

/**
 * An assignment protocol, by the name that members list when they join: `eventbus-cooperative-sticky` is the connector's, `RoundRobinAssigner` that of kafkajs, the others
 * are those of Java's clients and of librdkafka.
 */
export type AssignmentStrategy = (typeof names)[number]

const cooperative: ReadonlySet<AssignmentStrategy> = new Set([own, "cooperative-sticky"])

/** Whether a member that lists these protocols gives up all partitions before it joins again: one eager protocol is enough, whichever one the group takes (ruling 80). */
export const isEager = (listed: ReadonlyArray<AssignmentStrategy>): boolean =>
  listed.some((name) => !cooperative.has(name))

/** Whether the leader of a group with this protocol respects `ConsumerOptions.copartitionedTopics`. */
export const honoursUnits = (protocol: string): boolean => protocol === own

/** The protocols of other clients in the list. */
export const foreign = (listed: ReadonlyArray<AssignmentStrategy>): ReadonlyArray<AssignmentStrategy> =>
  listed.filter((name) => name !== own)

/** The protocols of Java's clients, of which one member often lists several: by default `range` and `cooperative-sticky`. */
const java: ReadonlySet<string> = new Set<AssignmentStrategy>(["cooperative-sticky", "range", "roundrobin", "sticky"])

/** Whether a group may take a member with this list although its present protocol is not in it: clients of Java may list a protocol in common (Kafka shows the chosen one alone). */
export const mayShareJava = (listed: ReadonlyArray<AssignmentStrategy>, protocol: string): boolean =>
  java.has(protocol) && listed.some((name) => java.has(name))
