/** Administration of the port, one request (or a few) per function. */
import { type Broker, ConsumerRecord } from "@eventbus/core"
import { Effect, Schedule } from "effect"
import type { TopicMetadata } from "./apis.ts"
import type { Cluster } from "./cluster.ts"
import { fetchCommitted, sendCommit } from "./committedOffsets.ts"
import { type ClientFailure, check, failureOfCode, isCoordinatorFailure, type Subject } from "./errors.ts"
import { byLeader, byTopic, earliest, latest, listOffsets } from "./logBounds.ts"
import type { PortErrors } from "./portErrors.ts"
import { describeGroup, incrementalAlterTopicConfig } from "./rawRequests.ts"
import { call } from "./wire.ts"

const timeout = 15_000
const topicResource = 2

const transient = new Set(["NOT_CONTROLLER", "LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION", "REQUEST_TIMED_OUT"])

/** Repeats for some seconds what a moving controller, leader or coordinator cures. */
const settled = <A, R>(effect: Effect.Effect<A, ClientFailure, R>): Effect.Effect<A, ClientFailure, R> =>
  Effect.retry(effect, {
    schedule: Schedule.max([Schedule.spaced("100 millis"), Schedule.recurs(50)]),
    while: ({ type }) => transient.has(type) || isCoordinatorFailure(type)
  })

interface TopicError {
  readonly topic: string
  readonly errorCode: number
  readonly errorMessage?: string | null
}

export const makeAdmin = (cluster: Cluster, errors: PortErrors): Broker.Admin => {
  const port = <A>(effect: Effect.Effect<A, ClientFailure>, subject: Subject) => errors.map(settled(effect), subject)
  const group = (groupId: string) => cluster.coordinator("group", groupId)

  /** Fails with the first topic that failed, in the order in which they were asked for. */
  const firstTopicError = (operation: string, asked: ReadonlyArray<string>, answers: ReadonlyArray<TopicError>) => {
    const byName = new Map(answers.map((answer) => [answer.topic, answer]))
    for (const topic of asked) {
      const answer = byName.get(topic)
      const failed = answer === undefined ? undefined : failureOfCode(answer.errorCode, answer.errorMessage)
      if (failed !== undefined) return Effect.fail(errors.of(failed, { operation, topic }))
    }
    return Effect.void
  }

  const notController = (answers: ReadonlyArray<TopicError>) =>
    check(...answers.map(({ errorCode }) => errorCode).filter((code) => code === 41))

  /** The topic's metadata, with a leader for each partition. */
  const existing = (topic: string): Effect.Effect<ReadonlyMap<string, TopicMetadata>, ClientFailure> =>
    Effect.gen(function* () {
      const metadata = yield* cluster.metadata([topic])
      const found = metadata.get(topic)
      yield* check(
        found?.topicErrorCode,
        ...(found?.partitionMetadata ?? []).map(({ leader, partitionErrorCode }) =>
          leader < 0 ? partitionErrorCode || 5 : 0
        )
      )
      return metadata
    })

  const partitionsOf = (metadata: ReadonlyMap<string, TopicMetadata>, topic: string) =>
    (metadata.get(topic)?.partitionMetadata ?? [])
      .map(({ partitionId }) => ({ topic, partition: partitionId }))
      .sort((a, b) => a.partition - b.partition)

  const bounds = Effect.fnUntraced(function* (topic: string, timestamps: ReadonlyArray<number>) {
    const metadata = yield* existing(topic)
    const partitions = partitionsOf(metadata, topic)
    const found = yield* Effect.all(
      timestamps.map((at) => listOffsets(cluster, metadata, partitions, at, "read_uncommitted")),
      { concurrency: "unbounded" }
    )
    return partitions.map(({ partition }) => ({
      partition,
      offsets: found.map((offsets) => offsets.get(ConsumerRecord.partitionKey(topic, partition)) ?? -1n)
    }))
  })

  const createTopics: Broker.Admin["createTopics"] = (topics) =>
    Effect.gen(function* () {
      const create = Effect.gen(function* () {
        const broker = yield* cluster.anyNode
        const answer = yield* call(broker, "CreateTopics", {
          topics: topics.map(({ topic, partitions, replicationFactor, config }) => ({
            topic,
            numPartitions: partitions ?? -1,
            replicationFactor: replicationFactor ?? -1,
            configEntries: [...(config ?? [])].map(([name, value]) => ({ name, value }))
          })),
          timeout
        })
        yield* notController(answer.topicErrors)
        return answer.topicErrors
      })
      const names = topics.map(({ topic }) => topic)
      const answers = yield* port(create, { operation: "create", topic: names.join(", ") })
      const failed = new Set(answers.filter(({ errorCode }) => errorCode !== 0).map(({ topic }) => topic))
      // usable when this returns: known to the nodes, and led
      yield* Effect.forEach(
        names.filter((name) => !failed.has(name)),
        (topic) => Effect.ignore(port(visible(topic), { operation: "describe", topic })),
        { discard: true }
      )
      yield* firstTopicError("create", names, answers)
    })

  const visible = (topic: string) =>
    Effect.retry(existing(topic), {
      schedule: Schedule.max([Schedule.spaced("50 millis"), Schedule.recurs(100)]),
      while: ({ type }) => type === "UNKNOWN_TOPIC_OR_PARTITION" || type === "LEADER_NOT_AVAILABLE"
    })

  const deleteTopics: Broker.Admin["deleteTopics"] = (topics) =>
    Effect.gen(function* () {
      const remove = Effect.gen(function* () {
        const answer = yield* call(yield* cluster.anyNode, "DeleteTopics", { topics, timeout })
        yield* notController(answer.topicErrors)
        return answer.topicErrors
      })
      const answers = yield* port(remove, { operation: "delete", topic: topics.join(", ") })
      yield* firstTopicError("delete", topics, answers)
    })

  const createPartitions: Broker.Admin["createPartitions"] = (topic, total) =>
    port(
      Effect.gen(function* () {
        const answer = yield* call(yield* cluster.anyNode, "CreatePartitions", {
          topicPartitions: [{ topic, count: total }],
          timeout
        })
        for (const { errorCode, errorMessage } of answer.topicErrors) {
          const failed = failureOfCode(errorCode, errorMessage)
          if (failed !== undefined) yield* Effect.fail(failed)
        }
      }),
      { operation: "add partitions to", topic }
    )

  const topicConfig: Broker.Admin["topicConfig"] = (topic) =>
    port(
      Effect.gen(function* () {
        const answer = yield* call(yield* cluster.anyNode, "DescribeConfigs", {
          resources: [{ type: topicResource, name: topic }]
        })
        yield* check(...answer.resources.map(({ errorCode }) => errorCode))
        return new Map(
          answer.resources.flatMap(({ configEntries }) =>
            configEntries.flatMap(
              ({ configName, configValue }): ReadonlyArray<readonly [string, string]> =>
                configValue === null ? [] : [[configName, configValue]]
            )
          )
        )
      }),
      { operation: "describe the configuration of", topic }
    )

  const committedOffsets: Broker.Admin["committedOffsets"] = (groupId, topics) =>
    port(
      Effect.gen(function* () {
        const metadata = yield* cluster.metadata(topics)
        const partitions = topics.flatMap((topic) => partitionsOf(metadata, topic))
        const committed = yield* fetchCommitted(yield* group(groupId), groupId, partitions)
        return partitions.flatMap((target) => {
          const offset = committed.get(ConsumerRecord.partitionKey(target.topic, target.partition))
          return offset === undefined ? [] : [{ ...target, offset }]
        })
      }),
      { operation: "describe", groupId, topic: topics.join(", ") }
    )

  const listGroups: Broker.Admin["listGroups"] = port(
    Effect.gen(function* () {
      const nodes = yield* cluster.nodes
      const answers = yield* Effect.forEach(
        nodes,
        (node) =>
          Effect.gen(function* () {
            const answer = yield* call(yield* cluster.node(node), "ListGroups", undefined)
            yield* check(answer.errorCode)
            return answer.groups.filter(({ protocolType }) => protocolType === "consumer" || protocolType === "")
          }),
        { concurrency: "unbounded" }
      )
      return [...new Set(answers.flat().map(({ groupId }) => groupId))].sort()
    }),
    { operation: "list groups" }
  )

  const deleteGroups: Broker.Admin["deleteGroups"] = (groupIds) =>
    Effect.forEach(
      groupIds,
      (groupId) =>
        port(
          Effect.gen(function* () {
            const answer = yield* call(yield* group(groupId), "DeleteGroups", [groupId])
            yield* check(...answer.results.map(({ errorCode }) => errorCode))
          }),
          { operation: "delete", groupId }
        ),
      { discard: true }
    )

  const deleteRecords: Broker.Admin["deleteRecords"] = (topic, partitions) =>
    port(
      Effect.gen(function* () {
        const metadata = yield* existing(topic)
        const before = new Map(partitions.map(({ partition, before }) => [partition, String(before)]))
        yield* Effect.forEach(
          byLeader(
            partitions.map(({ partition }) => ({ topic, partition })),
            metadata
          ),
          ([node, led]) =>
            Effect.gen(function* () {
              const answer = yield* call(yield* cluster.node(node), "DeleteRecords", {
                topics: byTopic(led, ({ partition }) => ({ partition, offset: before.get(partition)! })),
                timeout
              })
              yield* check(...answer.topics.flatMap(({ partitions }) => partitions.map(({ errorCode }) => errorCode)))
            }),
          { concurrency: "unbounded", discard: true }
        )
      }),
      { operation: "delete records of", topic }
    )

  return {
    createTopics,
    deleteTopics,
    createPartitions,
    listTopics: port(
      Effect.map(cluster.allTopics, (names) => [...names].sort()),
      { operation: "list topics" }
    ),
    describeTopic: (topic) =>
      port(
        Effect.map(existing(topic), (metadata) => {
          const partitions = metadata.get(topic)?.partitionMetadata ?? []
          return { topic, partitions: partitions.length, replicationFactor: partitions[0]?.replicas.length ?? 0 }
        }),
        { operation: "describe", topic }
      ),
    topicConfig,
    alterTopicConfig: (topic, config) =>
      port(
        Effect.flatMap(cluster.anyNode, (broker) => incrementalAlterTopicConfig(broker, topic, config)),
        {
          operation: "alter",
          topic
        }
      ),
    topicOffsets: (topic) =>
      Effect.map(port(bounds(topic, [earliest, latest]), { operation: "describe", topic }), (partitions) =>
        partitions.map(({ partition, offsets: [logStart, logEnd] }) => ({
          partition,
          logStart: logStart ?? 0n,
          logEnd: logEnd ?? 0n
        }))
      ),
    offsetsForTimestamp: (topic, timestamp) =>
      Effect.map(port(bounds(topic, [timestamp, latest]), { operation: "describe", topic }), (partitions) =>
        partitions.map(({ partition, offsets: [found, logEnd] }) => ({
          partition,
          offset: found !== undefined && found >= 0n ? found : (logEnd ?? 0n)
        }))
      ),
    committedOffsets,
    setCommittedOffsets: (groupId, offsets) =>
      port(
        Effect.flatMap(group(groupId), (broker) =>
          sendCommit(broker, groupId, { memberId: "", generation: -1 }, offsets)
        ),
        { operation: "commit", groupId }
      ),
    listGroups,
    describeGroup: (groupId) =>
      port(
        Effect.flatMap(group(groupId), (broker) => describeGroup(broker, groupId)),
        { operation: "describe", groupId }
      ),
    deleteGroups,
    deleteRecords
  }
}
