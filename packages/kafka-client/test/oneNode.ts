/** A cluster that is a script of answers: one node that accepts no request, unless a test says otherwise. */
import { Effect } from "effect"
import { failure, Local } from "../src/ClientFailure.ts"
import type { Cluster } from "../src/internal/connection/cluster.ts"
import type { TopicMetadata } from "../src/internal/protocol/apis.ts"

const away = failure(Local.connection, "not here")

/** `has` sets the number and the leader of the partitions of topic `t`. `node`: what happens where a request wants the node. */
export const cluster = (node: Effect.Effect<never, typeof away> = Effect.fail(away)) => {
  let partitions = 0
  let leader = 1
  let looks = 0
  const topic = (): TopicMetadata => ({
    ...{ topic: "t", topicErrorCode: 0, isInternal: false },
    partitionMetadata: Array.from({ length: partitions }, (_, partitionId) => ({
      ...{ partitionId, partitionErrorCode: 0, leader, replicas: [1], isr: [1], offlineReplicas: [] }
    }))
  })
  const self: Cluster = {
    id: "test",
    node: () => node,
    askAny: () => Effect.fail(away),
    anyNode: Effect.fail(away),
    metadata: () =>
      Effect.sync(() => {
        looks++
        return new Map([["t", topic()]])
      }),
    allTopics: Effect.succeed(["t"]),
    describe: Effect.succeed({
      clusterId: "c",
      brokers: [{ id: 1, host: "localhost", port: 9092 }],
      controller: undefined
    }),
    coordinator: () => Effect.fail(away),
    whileCoordinator: () => Effect.fail(away),
    askCoordinator: () => Effect.fail(away),
    isSilent: () => false,
    watch: (_, request) => request
  }
  return {
    self,
    looks: () => looks,
    has: (count: number, leaderId = 1) => {
      partitions = count
      leader = leaderId
    }
  }
}
