/**
 * The plan of a binding before it runs: its topics, consumers, the times of its retries, how much it holds in memory, and what is missing on the cluster.
 *
 * ```ts
 * import { Binding, Plan, Serde } from "@eventbus/core"
 * import { Effect } from "effect"
 *
 * const orders = Binding.make("orders", { topic: "orders", groupId: "billing", value: Serde.string, handler: () => Effect.void })
 *
 * export const findings = Plan.check(Plan.make(orders))
 * ```
 */
import * as Effect from "effect/Effect"
import type { Binding } from "./Binding.ts"
import type { Broker } from "./Broker.ts"
import type { BrokerError } from "./BrokerError.ts"
import * as Clusters from "./Clusters.ts"
import type { UnknownCluster } from "./EventBusError.ts"
import * as Acls from "./internal/checks/acls.ts"
import { inspect } from "./internal/checks/planInspection.ts"
import { retryTimes } from "./internal/checks/planTimes.ts"
import type {
  Finding,
  Plan,
  PlannedConsumers,
  PlannedDelivery,
  PlannedOrder,
  PlannedTopic,
  RetryTimes,
  TimeRange
} from "./internal/checks/planTypes.ts"
import { subscriptions } from "./internal/group/consumer.ts"
import * as Units from "./internal/group/units.ts"
import * as ReplayJournal from "./internal/replay/replayJournal.ts"
import { type BindingDefinition, budgetMillis } from "./internal/settings/bindingDefinition.ts"
import * as Sources from "./internal/settings/sources.ts"

export type { Finding, Plan, PlannedConsumers, PlannedDelivery, PlannedOrder, PlannedTopic, RetryTimes, TimeRange }

/** Computes the plan from the settings alone: no cluster is asked. */
export const make = (binding: Binding<unknown>): Plan => {
  const definition: BindingDefinition<unknown> = binding.definition
  const consumers = plannedConsumers(definition)
  const members = consumers.reduce((sum, each) => sum + each.members, 0)
  const retries = retryTimes(definition.topic, definition.retry, definition.tiers, budgetMillis(definition))
  return {
    binding: binding.name,
    cluster: definition.cluster,
    groupId: definition.groupId,
    adopts: definition.adopts,
    groupProtocol: definition.groupProtocol,
    partitionAssignmentStrategy: definition.partitionAssignmentStrategy,
    topics: Sources.of(definition).flatMap(plannedTopics),
    consumers,
    groups: Acls.groupsOf(definition),
    clients: members + 1 + extraClients(definition),
    ...{ retries, onExhausted: definition.onExhausted, orderPerKey: plannedOrder(definition, retries) },
    memory: { records: members * definition.maxBufferedRecords, bytes: members * definition.maxBufferedBytes }
  }
}

/** Looks at the cluster, changes nothing, and says what is missing or will not fit. Empty: all is there. */
export const check = (plan: Plan): Effect.Effect<ReadonlyArray<Finding>, BrokerError | UnknownCluster, Broker> =>
  Effect.gen(function* () {
    const broker = yield* Clusters.get(plan.cluster)
    return yield* inspect(plan, yield* broker.admin)
  }).pipe(Effect.scoped)

/** The topics of a binding that reads this one topic. */
const plannedTopics = (definition: BindingDefinition<unknown>): ReadonlyArray<PlannedTopic> => {
  const { topic: source, tiers, retry, deadLetter, deadLetterTopic } = definition
  const createIfMissing = definition.missingTopics === "create"
  const planned = (role: PlannedTopic["role"], of: Partial<PlannedTopic> & Pick<PlannedTopic, "topic">) => ({
    ...{ role, source, operations: Acls.operationsOn(role, definition), createIfMissing },
    ...{ delayMillis: undefined, delaysMillis: undefined, partitions: undefined, replicationFactor: undefined },
    ...of
  })
  return [
    planned("source", { topic: source, createIfMissing: false }),
    ...tiers.topics.map(({ topic: name, delaysMillis, longestMillis }) =>
      planned("retry", {
        ...{ topic: name, delayMillis: longestMillis },
        ...{ delaysMillis: delaysMillis.length === 1 ? undefined : delaysMillis },
        ...{ partitions: retry.partitions, replicationFactor: retry.replicationFactor }
      })
    ),
    planned("dead-letter", { topic: deadLetterTopic }),
    ...(deadLetter._tag === "ScheduledReplay" || deadLetter._tag === "Custom"
      ? [
          planned("replay-journal", {
            topic: ReplayJournal.topicOf(deadLetterTopic),
            partitions: 1,
            createIfMissing: true
          })
        ]
      : [])
  ]
}

const plannedOrder = (definition: BindingDefinition<unknown>, { exhausted }: RetryTimes): PlannedOrder => {
  const { orderingMode, perKey } = definition
  const isKept = orderingMode === "PER_KEY"
  return {
    ...{ isKept, servesParkedKeys: Units.areKept(definition), delaysMillis: exhausted.latestMillis },
    holdForMillis: isKept && perKey.onDeadLetter === "hold" ? perKey.holdForMillis : undefined
  }
}

const plannedConsumers = (definition: BindingDefinition<unknown>): ReadonlyArray<PlannedConsumers> => {
  const groups = new Map<string, PlannedConsumers>()
  for (const { groupId, topics } of subscriptions(definition)) {
    groups.set(groupId, { groupId, topics, members: (groups.get(groupId)?.members ?? 0) + 1 })
  }
  return Array.from(groups.values())
}

/** A reader of each dead letter topic, where the strategy has one. Transactional producers come with the partitions that are assigned. */
const extraClients = ({ deadLetter, otherSources }: BindingDefinition<unknown>): number =>
  deadLetter._tag === "Custom" || deadLetter._tag === "ScheduledReplay" ? 1 + otherSources.length : 0
