/** Asks a cluster how far the groups of a binding are, and how many members they have. */
import * as Effect from "effect/Effect"
import type { Admin, PartitionOffsets } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { BindingView, CommittedPartition } from "../../OutsideView.ts"
import { subscriptions } from "../group/consumer.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"

/** Topics of one group that are asked for at the same time. */
const topicsAtOnce = 4

/** Fails with `UnknownTopic` where one of its topics does not exist. A retry topic may be missing: the first copy makes it. */
export const look = Effect.fnUntraced(function* (
  definition: BindingDefinition<unknown>,
  admin: Admin
): Effect.fn.Return<Pick<BindingView, "partitions" | "members">, BrokerError> {
  const groups = new Map(subscriptions(definition).map(({ groupId, topics }) => [groupId, topics]))
  const found = yield* Effect.forEach(groups, ([groupId, topics]) => ofGroup(definition, admin, groupId, topics))
  return {
    partitions: found.flatMap(({ partitions }) => partitions),
    members: found.reduce((sum, { members }) => sum + members, 0)
  }
})

const ofGroup = Effect.fnUntraced(function* (
  definition: BindingDefinition<unknown>,
  admin: Admin,
  groupId: string,
  topics: ReadonlyArray<string>
) {
  const logsOf = (topic: string) =>
    Sources.topicsOf(definition).includes(topic) ? admin.topicOffsets(topic) : ReplayProgress.logOffsetsOf(admin, topic)
  const logs = yield* Effect.forEach(topics, (topic) => Effect.map(logsOf(topic), (all) => [topic, all] as const), {
    concurrency: topicsAtOnce
  })
  const existing = logs.flatMap(([topic, all]) => (all.length === 0 ? [] : [topic]))
  const committed = yield* admin.committedOffsets(groupId, existing)
  const { members } = yield* admin.describeGroup(groupId)
  const partitions = logs.flatMap(([topic, all]) => {
    const commits = new Map(
      committed.flatMap((each) => (each.topic === topic ? [[each.partition, each.offset] as const] : []))
    )
    return all.map((log) => partitionOf(definition, topic, log, commits))
  })
  return { partitions, members: members.length }
})

/** A group that has read a topic never jumps to the end of one of its partitions, and no group does so in a retry topic. */
const partitionOf = (
  definition: BindingDefinition<unknown>,
  topic: string,
  { partition, logStart, logEnd }: PartitionOffsets,
  commits: ReadonlyMap<number, bigint>
): CommittedPartition => {
  const tier = Sources.tierOf(definition, topic)?.first ?? 0
  const committed = commits.get(partition)
  const beginsAtStart = tier > 0 || definition.autoOffsetReset === "earliest" || commits.size > 0
  const position = committed ?? (beginsAtStart ? logStart : logEnd)
  const from = position < logStart ? logStart : position
  return { topic, partition, tier, committed, logEnd, lag: from < logEnd ? logEnd - from : 0n }
}
