/**
 * Administration requests of an in-memory cluster. Each call is one request and changes the cluster in one step.
 */
import { type Broker, BrokerError, type ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { Cluster } from "./cluster.ts"
import type { Connection } from "./network.ts"
import type { PartitionLog } from "./partitionLog.ts"
import type { Topic } from "./topicRegistry.ts"

type Failure = BrokerError.BrokerError

export const make = (cluster: Cluster, connection: Connection): Broker.Admin => {
  const { topics } = cluster.kernel
  const call = <A>(handle: () => Effect.Effect<A, Failure>): Effect.Effect<A, Failure> =>
    cluster.network.request(connection, { operation: "admin", clientId: connection.clientId }, handle)
  const onTopic = <A>(name: string, handle: (topic: Topic) => Effect.Effect<A, Failure>): Effect.Effect<A, Failure> =>
    call(() => {
      const topic = topics.get(name)
      return topic ? handle(topic) : Effect.fail(new BrokerError.UnknownTopic({ topic: name }))
    })
  return {
    clusterId: cluster.kernel.clusterId,
    describeCluster: call(() => Effect.succeed(describeCluster(cluster))),
    createTopics: (requests) => call(() => settle(requests.map((request) => createTopic(cluster, request)))),
    deleteTopics: (names) => call(() => settle(names.map((name) => deleteTopic(cluster, name)))),
    createPartitions: (name, total) =>
      onTopic(name, (topic) => {
        if (total <= topic.partitions.length) return Effect.fail(tooFew(name, topic.partitions.length, total))
        return Effect.sync(() => topics.grow(topic, total))
      }),
    listTopics: call(() => Effect.succeed(topics.names())),
    describeTopic: (name) =>
      onTopic(name, ({ partitions, replicationFactor }) =>
        Effect.succeed({ topic: name, partitions: partitions.length, replicationFactor })
      ),
    topicConfig: (name) => onTopic(name, (topic) => Effect.succeed(topics.config(topic))),
    alterTopicConfig: (name, config) =>
      onTopic(name, (topic) =>
        Effect.sync(() => {
          for (const [key, value] of config) topic.config.set(key, value)
        })
      ),
    topicOffsets: (name, isolation = "read_uncommitted") =>
      onTopic(name, ({ partitions }) =>
        Effect.succeed(
          partitions.map((log) => ({
            partition: log.partition,
            logStart: log.logStart,
            logEnd: log.readableEnd(isolation)
          }))
        )
      ),
    offsetsForTimestamp: (name, timestamp) =>
      onTopic(name, (topic) =>
        Effect.succeed(topic.partitions.map((log) => ({ partition: log.partition, offset: log.offsetAt(timestamp) })))
      ),
    committedOffsets: (groupId, names) => call(() => Effect.succeed(committedOffsets(cluster, groupId, names))),
    setCommittedOffsets: (groupId, offsets) => call(() => settle([setCommittedOffsets(cluster, groupId, offsets)])),
    listGroups: call(() => Effect.succeed([...cluster.groups.keys()].filter((id) => exists(cluster, id)).sort())),
    describeGroup: (groupId) => call(() => Effect.succeed(describeGroup(cluster, groupId))),
    deleteGroups: (groupIds) => call(() => settle(groupIds.map((groupId) => deleteGroup(cluster, groupId)))),
    authorizedOperations: (names, groupIds) =>
      call(() => Effect.succeed(authorizedOperations(cluster, names, groupIds))),
    tail: (name, records) =>
      onTopic(name, (topic) => Effect.succeed(topic.partitions.flatMap((log) => newest(log, BigInt(records))))),
    deleteRecords: (name, requests) =>
      onTopic(name, (topic) => settle(requests.map((request) => deleteRecords(topic, request))))
  }
}

const unlimited = { maxBytes: Number.POSITIVE_INFINITY, maxRecords: Number.POSITIVE_INFINITY }

const newest = (log: PartitionLog, records: bigint): ReadonlyArray<ConsumerRecord.ConsumerRecord> => {
  const stored = log.readableEnd("read_committed") - log.logStart
  const skipped = stored <= records ? 0n : stored - records
  const read = log.read(log.logStart + skipped, { ...unlimited, isolation: "read_committed" })
  return read?.records ?? []
}

/** Fails with the first problem, after every part of the request was tried. */
const settle = (problems: ReadonlyArray<Failure | undefined>): Effect.Effect<void, Failure> => {
  const problem = problems.find((one) => one !== undefined)
  return problem ? Effect.fail(problem) : Effect.void
}

const refused = (operation: string, code: string, detail: string): BrokerError.UnexpectedBrokerError =>
  new BrokerError.UnexpectedBrokerError({ operation, code, detail, retryable: false })

/** The nodes of the cluster have addresses that nobody listens at. */
const describeCluster = ({ kernel }: Cluster): Broker.ClusterDescription => {
  const { brokerCount } = kernel.settings
  const brokers = Array.from({ length: brokerCount }, (_, id) => ({ id, host: "memory", port: 9_092 + id }))
  return { clusterId: kernel.clusterId, brokers, controller: brokers[0] }
}

const createTopic = (cluster: Cluster, request: Broker.NewTopic): Failure | undefined => {
  const { settings, topics } = cluster.kernel
  const partitions = request.partitions ?? settings.defaultPartitions
  const replicationFactor = request.replicationFactor ?? 1
  if (!Number.isInteger(partitions) || partitions < 1) {
    return refused("createTopics", "INVALID_PARTITIONS", `topic '${request.topic}' with ${partitions} partitions`)
  }
  if (!Number.isInteger(replicationFactor) || replicationFactor < 1 || replicationFactor > settings.brokerCount) {
    const detail = `${replicationFactor} replicas on ${settings.brokerCount} brokers`
    return refused("createTopics", "INVALID_REPLICATION_FACTOR", detail)
  }
  const config = request.config ?? new Map<string, string>()
  return topics.create(request.topic, { partitions, replicationFactor, config, firstOffset: 0n })
}

const deleteTopic = (cluster: Cluster, topic: string): Failure | undefined => {
  if (!cluster.kernel.topics.remove(topic)) return new BrokerError.UnknownTopic({ topic })
  for (const group of cluster.groups.values()) group.offsets.forgetTopic(topic)
  return undefined
}

const tooFew = (topic: string, partitions: number, total: number): Failure =>
  refused("createPartitions", "INVALID_PARTITIONS", `topic '${topic}' has ${partitions} partitions, asked for ${total}`)

const committedOffsets = (
  cluster: Cluster,
  groupId: string,
  topics: ReadonlyArray<string>
): ReadonlyArray<Broker.CommittedOffset> =>
  [...(cluster.groups.get(groupId)?.offsets.entries.values() ?? [])]
    .filter(({ topic, offset }) => topics.includes(topic) && offset !== -1n)
    .sort((a, b) => (a.topic === b.topic ? a.partition - b.partition : a.topic < b.topic ? -1 : 1))

const setCommittedOffsets = (
  cluster: Cluster,
  groupId: string,
  offsets: ReadonlyArray<ConsumerRecord.TopicPartition & { readonly offset: bigint }>
): Failure | undefined => {
  const group = cluster.group(groupId)
  if (group.members.size > 0) return nonEmpty("setCommittedOffsets", groupId, group.members.size)
  const unknown = offsets.find(({ topic, partition }) => !cluster.kernel.topics.log(topic, partition))
  if (unknown) return new BrokerError.UnknownTopic({ topic: unknown.topic, partition: unknown.partition })
  for (const entry of offsets) group.offsets.record({ ...entry, memberId: "admin", generation: -1, metadata: "" })
  return undefined
}

const nonEmpty = (operation: string, groupId: string, members: number): Failure =>
  refused(operation, "NON_EMPTY_GROUP", `group '${groupId}' has ${members} members`)

/** `Cluster.group` makes a group for any request, so a group exists only with a generation or with offsets. */
const exists = (cluster: Cluster, groupId: string): boolean => {
  const group = cluster.groups.get(groupId)
  return group !== undefined && (group.generation > 0 || group.offsets.entries.size > 0)
}

export const describeGroup = (cluster: Cluster, groupId: string): Broker.GroupDescription => {
  const group = cluster.groups.get(groupId)
  const type = "classic" as const
  if (!group || !exists(cluster, groupId)) return { groupId, type, state: "Dead", protocol: "", members: [] }
  const members = [...group.members.values()].map(({ memberId, groupInstanceId, clientId, topics, owned }) => ({
    ...{ memberId, groupInstanceId, clientId },
    topics: [...topics],
    isConnector: true,
    assignment: [...owned.values()].map(({ topic, partition }) => ({ topic, partition }))
  }))
  return { groupId, type, state: group.state, protocol: group.protocol, members }
}

const everything: ReadonlySet<Broker.AclOperation> = new Set([
  ...(["Read", "Write", "Create", "Delete", "Alter", "Describe"] as const),
  ...(["ClusterAction", "DescribeConfigs", "AlterConfigs", "IdempotentWrite"] as const)
])

/** The in-memory cluster has no ACLs: every operation is allowed. */
const authorizedOperations = (
  cluster: Cluster,
  topics: ReadonlyArray<string>,
  groupIds: ReadonlyArray<string>
): Broker.AuthorizedOperations => ({
  cluster: everything,
  topics: new Map(topics.filter((topic) => cluster.kernel.topics.get(topic)).map((topic) => [topic, everything])),
  groups: new Map(groupIds.map((groupId) => [groupId, everything]))
})

const deleteGroup = (cluster: Cluster, groupId: string): Failure | undefined => {
  const members = cluster.groups.get(groupId)?.members.size ?? 0
  if (members > 0) return nonEmpty("deleteGroups", groupId, members)
  if (!exists(cluster, groupId)) return refused("deleteGroups", "GROUP_ID_NOT_FOUND", `there is no group '${groupId}'`)
  cluster.groups.delete(groupId)
  return undefined
}

const deleteRecords = (
  topic: Topic,
  { partition, before }: { readonly partition: number; readonly before: bigint }
): Failure | undefined => {
  const log = topic.partitions[partition]
  if (!log) return new BrokerError.UnknownTopic({ topic: topic.name, partition })
  if (before > log.logEnd || before < -1n) {
    return refused("deleteRecords", "OFFSET_OUT_OF_RANGE", `offset ${before} of a log that ends at ${log.logEnd}`)
  }
  log.deleteBefore(before === -1n ? log.logEnd : before)
  return undefined
}
