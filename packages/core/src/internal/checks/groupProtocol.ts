/**
 * The clients of a group: whether a binding can share it with them, and the next step of moving it from one client to another (ruling 80). Errors of adapters and the
 * findings of a plan use the same words.
 */

import { pluralize } from "../base/pluralize.ts"
import type { GroupDescription } from "../port/admin.ts"
import * as AssignmentStrategy from "../port/assignmentStrategy.ts"
import type { Finding } from "./planTypes.ts"

type Strategies = ReadonlyArray<AssignmentStrategy.AssignmentStrategy>

const guide = "docs/guide/move-from-kafkajs.md"

/**
 * The members of a group by their clients, the most frequent first, such as `2 members of client 'kafkajs', 1 member of client 'eventbus' (the connector)`. Old and new processes
 * may have one client id. For the text of an error.
 */
export const clients = ({ members }: Pick<GroupDescription, "members">): string => {
  const nameOf = ({ clientId, isConnector }: GroupDescription["members"][number]) =>
    `client '${clientId}'${isConnector === true ? " (the connector)" : ""}`
  const byClient = Array.from(Map.groupBy(members, nameOf), ([name, of]) => ({ name, count: of.length }))
  const sorted = byClient.sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1))
  return sorted.map(({ name, count }) => `${pluralize(count, "member")} of ${name}`).join(", ")
}

/** How far step 1 is, such as `; 1 of 3 members is of the connector`. Empty where the members do not say what they are. */
const progress = ({ members }: GroupDescription): string => {
  if (members.some(({ isConnector }) => isConnector === undefined)) return ""
  const count = members.filter(({ isConnector }) => isConnector === true).length
  return `; ${count} of ${pluralize(members.length, "member")} ${count === 1 ? "is" : "are"} of the connector`
}

/** Why a group refuses a member that lists these protocols: its clients, their protocol, and what to do. For the text of an error. */
export const refusal = (listed: Strategies, group: GroupDescription): string => {
  const { groupId, members, protocol } = group
  const lists = `this member lists ${quoted(listed)}`
  if (members.length === 0) return `group '${groupId}' had members that list none of its assignment protocols; ${lists}`
  const theirs = protocol === "" ? "" : `, whose assignment protocol is '${protocol}'`
  return `group '${groupId}' has ${clients(group)}${theirs}; ${lists}. ${remedy(listed, protocol)}`
}

const remedy = (listed: Strategies, protocol: string): string => {
  if (protocol === "") return "Let all members list one protocol"
  const known = AssignmentStrategy.names.find((name) => name === protocol)
  if (known === undefined) {
    return `The connector has no protocol '${protocol}': let the other client list one of ${quoted(AssignmentStrategy.names)}, or give the binding a group of its own`
  }
  if (listed.includes(known)) return `Another member does not list '${protocol}': let all members list it`
  const both = [...listed, known]
  return `Step 1 of moving the group: set partitionAssignmentStrategy to [${both.join(", ")}] (${guide})`
}

/** Kafka tells the protocol that a group has chosen, and not what else its members list. */
const perhapsShared = (listed: Strategies, group: GroupDescription): string => {
  const { protocol } = group
  const java = listed.filter((name) => name !== AssignmentStrategy.own)
  return (
    `Group '${group.groupId}' has ${clients(group)}, on '${protocol}', and the binding lists ${quoted(listed)}. It can join when the other clients list ${quoted(java)}, too, ` +
    `as Java clients with the default partition.assignment.strategy do ('range' and 'cooperative-sticky'); Kafka does not show what they list. To be sure, look there, or set ` +
    `partitionAssignmentStrategy to [${[...listed, protocol].join(", ")}]: that always fits (${guide}).`
  )
}

/** The state of the group beside the binding's setting. Nothing where no other client is concerned. */
export const findings = (listed: Strategies, group: GroupDescription): ReadonlyArray<Finding> => {
  const { groupId, members, protocol, type } = group
  const found = (severity: Finding["severity"], message: string): ReadonlyArray<Finding> => [
    { severity, code: "group-protocol", subject: groupId, message }
  ]
  const others = AssignmentStrategy.foreign(listed)
  if (members.length === 0) return []
  const has = `Group '${groupId}' has ${clients(group)}`
  if (type === "consumer")
    return found("info", `${has}; the broker assigns (group.protocol=consumer), and the binding uses what it is given.`)
  if (protocol === "") return found("info", `${has}, and is rebalancing: its assignment protocol is not known now.`)
  if (!listed.some((name) => name === protocol)) {
    return AssignmentStrategy.mayShareJava(listed, protocol)
      ? found("warning", perhapsShared(listed, group))
      : found("error", `${capitalized(refusal(listed, group))}.`)
  }
  if (!listed.includes(AssignmentStrategy.own) || others.length === 0) return []
  return protocol === AssignmentStrategy.own
    ? found(
        "info",
        `${has}, and all of them list '${protocol}': step 1 of moving the group is complete. Step 2: remove ${quoted(others)} from partitionAssignmentStrategy. On the way back: replace the pods by old ones (${guide}).`
      )
    : found(
        "info",
        `${has}, on '${protocol}', since not all of them list '${AssignmentStrategy.own}'. Step 1 of moving the group goes on until the last member of the other client is replaced${progress(group)} (${guide}).`
      )
}

/** The state of the group beside a binding with `groupProtocol: "consumer"`. */
export const findingsOfBroker = (group: GroupDescription): ReadonlyArray<Finding> =>
  group.type === "consumer" || group.members.length === 0
    ? []
    : [
        {
          ...{ severity: "info", code: "group-protocol", subject: group.groupId },
          message: `Group '${group.groupId}' has ${clients(group)} in the classic protocol. The broker moves the group to the consumer protocol when the first member of this binding joins, unless group.consumer.migration.policy forbids it; the others stay in it (docs/guide/group-protocol.md).`
        }
      ]

const quoted = (names: ReadonlyArray<string>): string => names.map((name) => `'${name}'`).join(", ")

const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`
