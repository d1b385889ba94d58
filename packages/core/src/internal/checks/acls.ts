/** What a binding has to be allowed to do, against what the cluster says that it is (ACLs): told before the first record needs it. */
import { Effect, Option } from "effect"
import type { AclOperation, Admin, AuthorizedOperations } from "../../Broker.ts"
import * as TopicName from "../../TopicName.ts"
import * as ReplayJournal from "../deadLetters/replayJournal.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import type { PlannedTopic } from "./planTypes.ts"

export interface RequiredAcl {
  readonly resource: "topic" | "group"
  readonly name: string
  readonly operation: AclOperation
}

/** What is done with a topic. */
export interface TopicAccess {
  readonly topic: string
  readonly operations: ReadonlyArray<AclOperation>
  /** Whether it is made when it is missing. */
  readonly isMade: boolean
}

const byRole: Readonly<Record<PlannedTopic["role"], ReadonlyArray<AclOperation>>> = {
  source: ["Read"],
  retry: ["Read", "Write"],
  "dead-letter": ["Write"],
  "replay-journal": ["Read", "Write"]
}

export const ofPlanned = ({ topic, role, isMade }: PlannedTopic): TopicAccess => ({
  topic,
  operations: byRole[role],
  isMade
})

/** In the order of topics and groups. */
export const missing = (
  topics: ReadonlyArray<TopicAccess>,
  groupIds: ReadonlyArray<string>,
  told: AuthorizedOperations
): ReadonlyArray<RequiredAcl> => {
  const ofTopic = ({ topic, operations, isMade }: TopicAccess): ReadonlyArray<AclOperation> => {
    const allowed = told.topics.get(topic)
    if (allowed !== undefined) return operations.filter((operation) => !allowed.has(operation))
    // It does not exist, so only the right to make any topic can be seen.
    return isMade && told.cluster?.has("Create") === false ? ["Create"] : []
  }
  return [
    ...topics.flatMap((each) =>
      ofTopic(each).map((operation) => ({ resource: "topic" as const, name: each.topic, operation }))
    ),
    ...groupIds
      .filter((groupId) => told.groups.get(groupId)?.has("Read") === false)
      .map((name) => ({ resource: "group" as const, name, operation: "Read" as const }))
  ]
}

/** `Write on topic 'orders.DLT'`; a right that could be there unseen says so. */
export const describe = ({ resource, name, operation }: RequiredAcl): string =>
  `${operation} on ${resource} '${name}'${operation === "Create" ? " (unless it is granted for this name)" : ""}`

/** None when the cluster, or the adapter, does not say. */
export const findMissing = (
  admin: Admin,
  topics: ReadonlyArray<TopicAccess>,
  groupIds: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<RequiredAcl>> =>
  admin.authorizedOperations === undefined
    ? Effect.succeed([])
    : admin
        .authorizedOperations(
          topics.map(({ topic }) => topic),
          groupIds
        )
        .pipe(
          Effect.map((told) => missing(topics, groupIds, told)),
          Effect.option,
          Effect.map(Option.getOrElse(() => []))
        )

/** What a binding does with its topics; the dead letter topic is read by some strategies. */
export const topicsOf = (definition: BindingDefinition<unknown>): ReadonlyArray<TopicAccess> => {
  const { topic, tiers, deadLetter, deadLetterTopic } = definition
  const isMade = definition.missingTopics === "create"
  const ofDeadLetters = readsDeadLetters(definition) ? (["Read", "Write"] as const) : byRole["dead-letter"]
  return [
    { topic, operations: byRole.source, isMade: false },
    ...tiers.topics.map((tier) => ({ topic: tier.topic, operations: byRole.retry, isMade })),
    { topic: deadLetterTopic, operations: ofDeadLetters, isMade },
    ...(deadLetter._tag === "ScheduledReplay"
      ? [{ topic: ReplayJournal.topicOf(deadLetterTopic), operations: byRole["replay-journal"], isMade: true }]
      : [])
  ]
}

export const groupsOf = (definition: BindingDefinition<unknown>): ReadonlyArray<string> => {
  const { groupId, tiers, retry } = definition
  return [
    groupId,
    ...(retry.consumer === "separate" && tiers.count > 0 ? [TopicName.retryGroup(groupId)] : []),
    ...(readsDeadLetters(definition) ? [TopicName.deadLetterGroup(groupId)] : [])
  ]
}

const readsDeadLetters = ({ deadLetter }: BindingDefinition<unknown>): boolean =>
  deadLetter._tag === "ScheduledReplay" || deadLetter._tag === "Custom"
