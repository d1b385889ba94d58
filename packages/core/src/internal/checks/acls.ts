/** Compares the ACLs that a binding requires with those that the cluster grants, before the first record needs them. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AclOperation, Admin, AuthorizedOperations, RequiredAcl } from "../../Broker.ts"
import * as TopicName from "../../TopicName.ts"
import * as ReplayJournal from "../replay/replayJournal.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"
import type { PlannedTopic } from "./planTypes.ts"

/** The access that a binding requires to one topic. */
export interface TopicAccess {
  readonly topic: string
  readonly operations: ReadonlyArray<AclOperation>
  /** Whether the connector creates the topic when it is missing. */
  readonly createIfMissing: boolean
}

/** A binding needs these operations on a topic in a role. The plan and the start both ask here. Some dead letter strategies also read the dead letter topic. */
export const operationsOn = (
  role: PlannedTopic["role"],
  definition: Pick<BindingDefinition<unknown>, "deadLetter">
): ReadonlyArray<AclOperation> => {
  switch (role) {
    case "source":
      return ["Read"]
    case "retry":
    case "replay-journal":
      return ["Read", "Write"]
    case "dead-letter":
      return readsDeadLetters(definition) ? ["Read", "Write"] : ["Write"]
  }
}

/** The ACLs that are missing, in the order of topics and groups. An ACL that the cluster does not report counts as granted. */
export const missing = (
  topics: ReadonlyArray<TopicAccess>,
  groupIds: ReadonlyArray<string>,
  granted: AuthorizedOperations
): ReadonlyArray<RequiredAcl> => {
  const ofTopic = ({ topic, operations, createIfMissing }: TopicAccess): ReadonlyArray<AclOperation> => {
    const allowed = granted.topics.get(topic)
    if (allowed !== undefined) return operations.filter((operation) => !allowed.has(operation))
    // The topic does not exist, so the cluster reports only whether the client may create any topic.
    return createIfMissing && granted.cluster?.has("Create") === false ? ["Create"] : []
  }
  return [
    ...topics.flatMap((each) =>
      ofTopic(each).map((operation) => ({ resource: "topic" as const, name: each.topic, operation }))
    ),
    ...groupIds
      .filter((groupId) => granted.groups.get(groupId)?.has("Read") === false)
      .map((name) => ({ resource: "group" as const, name, operation: "Read" as const }))
  ]
}

/** `Write on topic 'orders.DLT'`. For `Create` it adds that the ACL may be granted for this name, which the cluster does not report. */
export const describe = ({ resource, name, operation }: RequiredAcl): string =>
  `${operation} on ${resource} '${name}'${operation === "Create" ? " (unless it is granted for this name)" : ""}`

/** Asks the cluster for missing ACLs. Empty when the cluster or the adapter does not report them. */
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
          Effect.map((granted) => missing(topics, groupIds, granted)),
          Effect.option,
          Effect.map(Option.getOrElse(() => []))
        )

/** The access that a binding requires to its topics. Some dead letter strategies also read the dead letter topic, and keep a journal of what is dealt with. */
export const topicsOf = (definition: BindingDefinition<unknown>): ReadonlyArray<TopicAccess> => {
  const createIfMissing = definition.missingTopics === "create"
  const access = (name: string, role: PlannedTopic["role"], created: boolean): TopicAccess => ({
    topic: name,
    operations: operationsOn(role, definition),
    createIfMissing: created
  })
  return Sources.of(definition).flatMap(({ topic, tiers, deadLetterTopic }) => [
    access(topic, "source", false),
    ...tiers.topics.map((tier) => access(tier.topic, "retry", createIfMissing)),
    access(deadLetterTopic, "dead-letter", createIfMissing),
    ...(readsDeadLetters(definition) ? [access(ReplayJournal.topicOf(deadLetterTopic), "replay-journal", true)] : [])
  ])
}

/** The groups that a binding joins. */
export const groupsOf = (definition: BindingDefinition<unknown>): ReadonlyArray<string> => {
  const { groupId, tiers, retry } = definition
  return [
    groupId,
    ...(retry.consumer === "separate" && tiers.count > 0 ? [TopicName.retryGroup(groupId)] : []),
    ...(readsDeadLetters(definition) ? [TopicName.deadLetterGroup(groupId)] : [])
  ]
}

const readsDeadLetters = ({ deadLetter }: Pick<BindingDefinition<unknown>, "deadLetter">): boolean =>
  deadLetter._tag === "ScheduledReplay" || deadLetter._tag === "Custom"
