/**
 * Checks the settings of a binding, all at once and before anything starts (connector seed §7).
 */
import type { ConfigurationIssue, UnknownCluster } from "../../EventBusError.ts"
import * as Kinds from "../../Kinds.ts"
import * as TopicName from "../../TopicName.ts"
import * as DerivedNames from "../base/derivedNames.ts"
import { shown } from "../base/shown.ts"
import * as ExceptionLists from "../failure/exceptionLists.ts"
import * as AssignmentStrategy from "../port/assignmentStrategy.ts"
import * as Backoff from "../retry/backoff.ts"
import { type BindingDefinition, budgetMillis } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as GivenOptions from "../settings/givenOptions.ts"
import * as Ids from "../settings/ids.ts"
import * as Origins from "../settings/origins.ts"
import * as Sources from "../settings/sources.ts"
import * as GroupSettings from "./groupSettings.ts"
import * as PerKeyOrder from "./perKeyOrder.ts"
import * as SourceTopics from "./sourceTopics.ts"

/** Every problem of the settings. Empty when the binding can be started. */
export const problems = (definition: BindingDefinition<unknown>): ReadonlyArray<ConfigurationIssue> => {
  const refused = new Set(definition.refused.map(({ path }) => GivenOptions.optionOf(path)))
  // A refused option was replaced: what a rule would say about it is not about what the user wrote.
  return [...definition.refused, ...broken(definition).filter(({ path }) => !refused.has(GivenOptions.optionOf(path)))]
}

/** The rules that the settings break. Each setting by itself is of its kind. */
const broken = (definition: BindingDefinition<unknown>): ReadonlyArray<ConfigurationIssue> => [
  ...SourceTopics.problems(definition),
  ...Origins.among(definition, derivedTopics(definition), "of this binding"),
  ...staticMembers(definition),
  ...adopted(definition),
  ...assignmentStrategies(definition),
  ...clusterAlias(definition.cluster),
  ...heartbeats(definition),
  ...GroupSettings.problems(definition),
  ...retryBudget(definition),
  ...ordering(definition),
  ...PerKeyOrder.problems(definition),
  ...ExceptionLists.problems(definition.retry, definition.tiers.count).map((found) => ({
    ...found,
    path: `retry.${found.path}`
  }))
]

/** Kafka takes 249 characters as `group.instance.id`, and the host's name and a number follow the binding's. */
const staticMembers = ({ name, staticMembership }: BindingDefinition<unknown>) =>
  staticMembership && DerivedNames.memberPartLength(name) > DerivedNames.longestMemberPart
    ? [
        issue(
          "name",
          name,
          `a text of at most ${DerivedNames.longestMemberPart} characters with staticMembership, where each one but a-z A-Z 0-9 . - counts as five`
        )
      ]
    : []

/** More consumers than a process can have. */
const mostConsumers = 99_999

/** The name of a static member on this host, which is known where the binding is registered. A name of the binding that is too long for every host is told by `problems`. */
export const memberOnHost = (
  definition: BindingDefinition<unknown>,
  hostname: string
): ReadonlyArray<ConfigurationIssue> => {
  const { name, staticMembership } = definition
  const memberId = DerivedNames.groupInstanceId(name, hostname, mostConsumers)
  return staticMembership && staticMembers(definition).length === 0 && memberId.length > TopicName.maxLength
    ? [
        issue(
          "staticMembership",
          `true on host '${hostname.slice(0, TopicName.maxLength)}'`,
          `names of binding and host that together make a group.instance.id of at most ${TopicName.maxLength} characters, where each one but a-z A-Z 0-9 . - counts as five; it would have ${memberId.length}`
        )
      ]
    : []
}

/**
 * Finds topics that two bindings of a cluster must not share (ruling 1): a retry or dead letter topic of both, or one that the other reads as its source. Two bindings
 * must not read one topic in one group either, because Kafka would divide its records between their handlers. Names that differ only in '.' and '_' collide in Kafka's
 * metrics, so the broker refuses the second. Each problem names both bindings and how to separate them.
 */
export const conflicts = (
  definition: BindingDefinition<unknown>,
  others: Iterable<BindingDefinition<unknown>>
): ReadonlyArray<ConfigurationIssue> => {
  const own = derivedTopics(definition)
  return Array.from(others).flatMap((other) => {
    const sameContainers = containersApart(definition, other)
    if (other.cluster !== definition.cluster) return sameContainers
    const [topics, theirTopics] = [Sources.topicsOf(definition), Sources.topicsOf(other)]
    const both = topics.find((topic) => theirTopics.includes(topic))
    if (other.groupId === definition.groupId && both !== undefined) {
      const apart = `another group: binding '${other.name}' reads '${both}' in this one, so each record would reach only one of the two bindings`
      return [issue("groupId", definition.groupId, apart)]
    }
    const theirs = derivedTopics(other)
    const shared = own.filter((topic) => theirs.some(SourceTopics.isSame(topic)))
    const separate = `another name: binding '${other.name}' uses this topic too; naming: TopicName.perGroup separates groups`
    return [
      ...sameContainers,
      ...groupsApart(definition, other),
      ...groupsApart(other, definition),
      ...shared.map((topic) => issue("naming", topic, separate)),
      ...Origins.among(definition, theirs, `of binding '${other.name}'`),
      ...Origins.among(other, own, `of binding '${definition.name}'`),
      ...theirTopics.flatMap((source) =>
        own
          .filter(SourceTopics.isSame(source))
          .map((topic) =>
            issue("naming", topic, `a name other than the source topic '${source}' of binding '${other.name}'`)
          )
      ),
      ...topics.flatMap((source, at) =>
        theirs
          .filter(SourceTopics.isSame(source))
          .map((topic) =>
            issue(
              SourceTopics.pathOf(definition, at),
              source,
              `a topic other than '${topic}', which binding '${other.name}' publishes its failed records to`
            )
          )
      )
    ]
  })
}

/** The names of the containers of main topic and tiers. */
export const containersOf = (definition: BindingDefinition<unknown>): ReadonlyArray<string> =>
  Array.from({ length: definition.tiers.count + 1 }, (_, tier) =>
    DerivedNames.container(BindingKey.label(definition), tier)
  )

/** No two containers of a program share a name, on whatever clusters. */
const containersApart = (definition: BindingDefinition<unknown>, other: BindingDefinition<unknown>) => {
  const [label, otherLabel] = [BindingKey.label(definition), BindingKey.label(other)]
  if (BindingKey.of(definition) === BindingKey.of(other)) return []
  // Comparing all names of a thousand bindings would be slow.
  if (!label.startsWith(otherLabel) && !otherLabel.startsWith(label)) return []
  const names = containersOf(other)
  return containersOf(definition)
    .filter((container) => names.includes(container))
    .map((container) =>
      issue(
        "name",
        definition.name,
        `another name: container '${container}' of binding '${other.name}' is called like one of this`
      )
    )
}

/** The groups that a binding derives from its own. */
export const derivedGroups = ({ groupId, retry, tiers }: BindingDefinition<unknown>): ReadonlyArray<string> => [
  TopicName.deadLetterGroup(groupId),
  ...(retry.consumer === "separate" && tiers.count > 0 ? [TopicName.retryGroup(groupId)] : [])
]

/** A group that one binding derives must not be the group of another: the commits of the two would get in each other's way. */
const groupsApart = (deriving: BindingDefinition<unknown>, other: BindingDefinition<unknown>) =>
  derivedGroups(deriving).includes(other.groupId)
    ? [
        issue(
          "groupId",
          other.groupId,
          `another group: binding '${deriving.name}' of group '${deriving.groupId}' derives this one`
        )
      ]
    : []

/** The topics that the binding publishes to by itself. */
export const derivedTopics = (definition: BindingDefinition<unknown>): ReadonlyArray<string> =>
  Sources.of(definition).flatMap(SourceTopics.derivedOf)

const issue = (path: string, found: unknown, allowed: string): ConfigurationIssue => ({
  path,
  found: shown(found),
  allowed
})

const adopted = ({ adopts, groupId }: BindingDefinition<unknown>) =>
  adopts.flatMap((former, index) =>
    former === groupId
      ? [issue(`adopts[${index}]`, former, "a former name of the group, not its own name")]
      : Ids.ofBinding(`adopts[${index}]`, former)
  )

/**
 * A leader of kafkajs assigns the topics that it reads itself and no others: nobody would get the retry topics. A leader of Java balances all topics together: the members of
 * the connector would get the retry topics, and the other client the main topic.
 */
const assignmentStrategies = ({
  partitionAssignmentStrategy: listed,
  orderingMode,
  retry,
  tiers
}: BindingDefinition<unknown>) => {
  // With PER_KEY, "separate" is refused as well: `PerKeyOrder` names what is left.
  const others = orderingMode === "PER_KEY" ? [] : AssignmentStrategy.foreign(listed)
  return others.length > 0 && retry.consumer === "shared" && tiers.count > 0
    ? [
        issue(
          "retry.consumer",
          retry.consumer,
          `"separate" with ${others.join(", ")}: a leader of another client does not share out retry topics evenly, or at all`
        )
      ]
    : []
}

/** Registering the binding checks whether a cluster with this alias exists. */
const clusterAlias = (alias: string) =>
  Kinds.nameProblem(alias) === undefined && !alias.includes(":")
    ? []
    : [issue("cluster", alias, "the alias of a cluster: a text that is not empty and has no ':' in it")]

/** The problem of an unknown cluster alias. */
export const unknownCluster = ({ cluster, known }: UnknownCluster): ConfigurationIssue =>
  issue("cluster", cluster, `one of the clusters that are known: ${known.join(", ")}`)

/** Two heartbeats may get lost before the session expires (Kafka's rule of thumb, connector seed §4.9). */
const heartbeats = ({ sessionTimeoutMillis, heartbeatIntervalMillis }: BindingDefinition<unknown>) =>
  // A value that is no duration has a problem of its own.
  !(sessionTimeoutMillis < 3 * heartbeatIntervalMillis)
    ? []
    : [
        issue(
          "sessionTimeout",
          `${sessionTimeoutMillis} ms`,
          `at least 3 x heartbeatInterval (${heartbeatIntervalMillis} ms)`
        )
      ]

/** totalRetryTime x maxPollRecords < maxPollInterval x 0.7, strictly, with the exact sum of the waits (ruling 18). */
const retryBudget = (definition: BindingDefinition<unknown>) => {
  const waits = Backoff.worstCaseTotalMillis(definition.retry.blocking)
  const total = waits * definition.maxPollRecords
  const budget = budgetMillis(definition)
  // Values that are out of range have problems of their own.
  if (!(total >= budget)) return []
  const allowed = `less than 70 % of maxPollInterval, which is ${budget} ms: fewer attempts, shorter waits, fewer maxPollRecords, or a longer maxPollInterval`
  return [
    issue("retry.blocking", `${waits} ms of waits x ${definition.maxPollRecords} maxPollRecords = ${total} ms`, allowed)
  ]
}

const ordering = ({
  orderingMode,
  onExhausted,
  processingOrder,
  listenerType,
  tiers,
  handler
}: BindingDefinition<unknown>) => [
  ...(handler._tag === "Transactional" && tiers.topics.some(({ delaysMillis }) => delaysMillis.length > 1)
    ? [
        issue(
          "retry.tiers",
          "waits that differ within a tier",
          "one delay for each tier of a transactional binding: its offsets move in order, in the transactions of its records"
        )
      ]
    : []),
  ...(orderingMode === "STRICT" && tiers.count > 0
    ? [
        issue(
          "retry",
          `${tiers.count} tiers`,
          'RetryPolicy.blocking with orderingMode "STRICT": a record in a tier is overtaken'
        )
      ]
    : []),
  ...(listenerType === "BATCH" && processingOrder !== "partition"
    ? [issue("processingOrder", processingOrder, '"partition" for batches')]
    : []),
  ...(onExhausted === "halt" && orderingMode === "RELAXED_IN_RETRY"
    ? [issue("onExhausted", "halt", '"dead-letter", or orderingMode "STRICT" beside "halt"')]
    : []),
  ...(orderingMode === "STRICT" && processingOrder !== "partition"
    ? [issue("processingOrder", processingOrder, '"partition" with orderingMode "STRICT"')]
    : [])
]
