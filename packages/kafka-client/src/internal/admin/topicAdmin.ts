/** Administration of topics. */
import type { Broker } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { BrokerErrors } from "../connection/brokerErrors.ts"
import type { Cluster } from "../connection/cluster.ts"
import { byLeader, earliest, latest } from "../offsets/logOffsets.ts"
import { byTopic } from "../wire/byTopic.ts"
import { check, failureOfCode } from "../wire/failures.ts"
import { call } from "../wire/requests.ts"
import { type AdminContext, controllerTimeout, existingTopics, offsetsOf } from "./adminContext.ts"

const topicResource = 2

interface TopicError {
  readonly topic: string
  readonly errorCode: number
  readonly errorMessage?: string | null
}

/** Fails with the error of the first requested topic that has one. */
const firstTopicError = (
  errors: BrokerErrors,
  operation: string,
  requested: ReadonlyArray<string>,
  answers: ReadonlyArray<TopicError>
) => {
  const byName = new Map(answers.map((answer) => [answer.topic, answer]))
  for (const topic of requested) {
    const answer = byName.get(topic)
    const failed = answer === undefined ? undefined : failureOfCode(answer.errorCode, answer.errorMessage)
    if (failed !== undefined) return Effect.fail(errors.of(failed, { operation, topic }))
  }
  return Effect.void
}

const notControllerCode = 41

/** Fails when the node was not the controller, so that another node is asked. */
const notController = (answers: ReadonlyArray<TopicError>) =>
  check(...answers.map(({ errorCode }) => errorCode).filter((code) => code === notControllerCode))

/** Backoff while a cluster creates topics: 50 ms, growing to a second, for about ten seconds. */
const newTopicBackoff = Schedule.max([
  Schedule.min([Schedule.exponential("50 millis", 1.5), Schedule.spaced("1 second")]),
  Schedule.recurs(15)
])

/** Waits until the nodes know new topics and every partition has a leader. */
const awaitUsable = (cluster: Cluster, topics: ReadonlyArray<string>) =>
  Effect.retry(existingTopics(cluster, topics), {
    schedule: newTopicBackoff,
    while: ({ type }) => type === "UNKNOWN_TOPIC_OR_PARTITION" || type === "LEADER_NOT_AVAILABLE"
  })

const createTopics =
  ({ cluster, errors, port }: AdminContext): Broker.Admin["createTopics"] =>
  (topics) =>
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
          timeout: controllerTimeout
        })
        yield* notController(answer.topicErrors)
        return answer.topicErrors
      })
      const names = topics.map(({ topic }) => topic)
      const answers = yield* port(create, { operation: "create", topic: names.join(", ") })
      const failed = new Set(answers.filter(({ errorCode }) => errorCode !== 0).map(({ topic }) => topic))
      const created = names.filter((name) => !failed.has(name))
      if (created.length > 0) {
        yield* Effect.ignore(port(awaitUsable(cluster, created), { operation: "describe", topic: created.join(", ") }))
      }
      yield* firstTopicError(errors, "create", names, answers)
    })

const deleteTopics =
  ({ cluster, errors, port }: AdminContext): Broker.Admin["deleteTopics"] =>
  (topics) =>
    Effect.gen(function* () {
      const remove = Effect.gen(function* () {
        const answer = yield* call(yield* cluster.anyNode, "DeleteTopics", { topics, timeout: controllerTimeout })
        yield* notController(answer.topicErrors)
        return answer.topicErrors
      })
      const answers = yield* port(remove, { operation: "delete", topic: topics.join(", ") })
      yield* firstTopicError(errors, "delete", topics, answers)
    })

const createPartitions =
  ({ cluster, port }: AdminContext): Broker.Admin["createPartitions"] =>
  (topic, total) =>
    port(
      Effect.gen(function* () {
        const answer = yield* call(yield* cluster.anyNode, "CreatePartitions", {
          topicPartitions: [{ topic, count: total }],
          timeout: controllerTimeout
        })
        for (const { errorCode, errorMessage } of answer.topicErrors) {
          const failed = failureOfCode(errorCode, errorMessage)
          if (failed !== undefined) return yield* Effect.fail(failed)
        }
      }),
      { operation: "add partitions to", topic }
    )

const topicConfig =
  ({ cluster, port }: AdminContext): Broker.Admin["topicConfig"] =>
  (topic) =>
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

const deleteRecords =
  ({ cluster, port }: AdminContext): Broker.Admin["deleteRecords"] =>
  (topic, partitions) =>
    port(
      Effect.gen(function* () {
        const metadata = yield* existingTopics(cluster, [topic])
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
                timeout: controllerTimeout
              })
              yield* check(...answer.topics.flatMap(({ partitions }) => partitions.map(({ errorCode }) => errorCode)))
            }),
          { concurrency: "unbounded", discard: true }
        )
      }),
      { operation: "delete records of", topic }
    )

export type TopicAdmin = Pick<
  Broker.Admin,
  | "describeCluster"
  | "createTopics"
  | "deleteTopics"
  | "createPartitions"
  | "listTopics"
  | "describeTopic"
  | "topicConfig"
  | "alterTopicConfig"
  | "topicOffsets"
  | "offsetsForTimestamp"
  | "deleteRecords"
>

export const topicAdmin = (context: AdminContext): TopicAdmin => {
  const { cluster, port } = context
  return {
    describeCluster: port(cluster.describe, { operation: "describe cluster" }),
    createTopics: createTopics(context),
    deleteTopics: deleteTopics(context),
    createPartitions: createPartitions(context),
    topicConfig: topicConfig(context),
    deleteRecords: deleteRecords(context),
    listTopics: port(
      Effect.map(cluster.allTopics, (names) => [...names].sort()),
      { operation: "list topics" }
    ),
    describeTopic: (topic) =>
      port(
        Effect.map(existingTopics(cluster, [topic]), (metadata) => {
          const partitions = metadata.get(topic)?.partitionMetadata ?? []
          return { topic, partitions: partitions.length, replicationFactor: partitions[0]?.replicas.length ?? 0 }
        }),
        { operation: "describe", topic }
      ),
    alterTopicConfig: (topic, config) =>
      port(
        Effect.gen(function* () {
          const resource = { type: topicResource, name: topic, config }
          const answer = yield* call(yield* cluster.anyNode, "IncrementalAlterConfigs", resource)
          for (const { errorCode, errorMessage } of answer.resources) {
            const failed = failureOfCode(errorCode, errorMessage)
            if (failed !== undefined) return yield* Effect.fail(failed)
          }
        }),
        { operation: "alter", topic }
      ),
    topicOffsets: (topic, isolation) =>
      Effect.map(
        port(offsetsOf(cluster, topic, [earliest, latest], isolation), { operation: "describe", topic }),
        (partitions) =>
          partitions.map(({ partition, offsets: [logStart, logEnd] }) => ({
            partition,
            logStart: logStart ?? 0n,
            logEnd: logEnd ?? 0n
          }))
      ),
    offsetsForTimestamp: (topic, timestamp) =>
      Effect.map(port(offsetsOf(cluster, topic, [timestamp, latest]), { operation: "describe", topic }), (partitions) =>
        partitions.map(({ partition, offsets: [found, logEnd] }) => ({
          partition,
          offset: found !== undefined && found >= 0n ? found : (logEnd ?? 0n)
        }))
      )
  }
}
