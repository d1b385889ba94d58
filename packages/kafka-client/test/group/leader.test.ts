/** The decisions of a group's leader that depend on what the cluster tells it. */
import { assert, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import type { Cluster } from "../../src/internal/connection/cluster.ts"
import { decideAssignments } from "../../src/internal/group/leader.ts"
import { decodeAssignment, encodeMember } from "../../src/internal/group/memberProtocol.ts"
import type { TopicMetadata } from "../../src/internal/protocol/apis.ts"

const topicOf = (topic: string, topicErrorCode: number, partitions: number): TopicMetadata => ({
  topic,
  topicErrorCode,
  isInternal: false,
  partitionMetadata: Array.from({ length: partitions }, (_, partitionId) => ({
    ...{ partitionId, partitionErrorCode: 0, leader: 1, replicas: [1], isr: [1], offlineReplicas: [] }
  }))
})

const member = (memberId: string, ...topics: ReadonlyArray<string>) => ({
  memberId,
  memberMetadata: encodeMember({ topics, owned: [], generation: -1, copartitionedTopics: [] }, false)
})

it.effect("CLN-07 a leader that may not describe another member's topic says that nobody gets it, and why", () =>
  Effect.gen(function* () {
    const log: Array<string> = []
    const metadata = new Map([topicOf("open", 0, 2), topicOf("hidden", 29, 0)].map((each) => [each.topic, each]))
    const cluster = { metadata: () => Effect.succeed(metadata) } as unknown as Cluster
    const decided = yield* decideAssignments(cluster, "bills", {
      groupProtocol: "eventbus-cooperative-sticky",
      members: [member("a", "open"), member("b", "open", "hidden"), member("c", "hidden", "absent")]
    }).pipe(Effect.provide(Logger.layer([Logger.make(({ message }) => void log.push(String(message)))])))

    const given = decided.flatMap(({ memberAssignment }) => decodeAssignment(memberAssignment)?.partitions ?? [])
    assert.deepStrictEqual(given.map(({ topic, partition }) => `${topic}/${partition}`).sort(), ["open/0", "open/1"])
    assert.deepStrictEqual(log, [
      "Nobody gets the partitions of topic 'hidden' in group 'bills': this member leads the group and may not describe the topic, which 'b', 'c' read. Grant its user Describe on the topic."
    ])
  })
)

it.effect(
  "PKO-04 the leader says that it respects units, and respects them under the connector's own protocol only",
  () =>
    Effect.gen(function* () {
      const metadata = new Map([topicOf("a", 0, 1), topicOf("b", 0, 1)].map((each) => [each.topic, each]))
      const cluster = { metadata: () => Effect.succeed(metadata) } as unknown as Cluster
      const topics = ["a", "b"]
      const members = ["x", "y"].map((memberId) => ({
        memberId,
        memberMetadata: encodeMember({ topics, owned: [], generation: -1, copartitionedTopics: [topics] }, false)
      }))
      const decide = Effect.fnUntraced(function* (groupProtocol: string) {
        const decided = yield* decideAssignments(cluster, "bills", { groupProtocol, members })
        return decided.map(({ memberAssignment }) => {
          const { byUnits, partitions } = decodeAssignment(memberAssignment)!
          return { byUnits, count: partitions.length }
        })
      })
      assert.deepStrictEqual(yield* decide("eventbus-cooperative-sticky"), [
        { byUnits: true, count: 2 },
        { byUnits: true, count: 0 }
      ])
      assert.deepStrictEqual(yield* decide("cooperative-sticky"), [
        { byUnits: false, count: 1 },
        { byUnits: false, count: 1 }
      ])
    })
)
