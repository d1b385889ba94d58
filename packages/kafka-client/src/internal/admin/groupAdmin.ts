/** Administration of consumer groups. */
import { type Broker, ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { describeGroup } from "../group/groupDescription.ts"
import { fetchCommitted, sendCommit } from "../offsets/committedOffsets.ts"
import { check } from "../wire/failures.ts"
import { call } from "../wire/requests.ts"
import { type AdminContext, partitionsOf } from "./adminContext.ts"

const committedOffsets =
  ({ cluster, port }: AdminContext): Broker.Admin["committedOffsets"] =>
  (groupId, topics) =>
    port(
      Effect.gen(function* () {
        const metadata = yield* cluster.metadata(topics)
        const partitions = topics.flatMap((topic) => partitionsOf(metadata, topic))
        const committed = yield* cluster.askCoordinator("group", groupId, (broker) =>
          fetchCommitted(broker, groupId, partitions)
        )
        return partitions.flatMap(
          ({ topic, partition }) => committed.get(ConsumerRecord.partitionKey(topic, partition)) ?? []
        )
      }),
      { operation: "describe", groupId, topic: topics.join(", ") }
    )

const listGroups = ({ cluster, port }: AdminContext): Broker.Admin["listGroups"] =>
  port(
    Effect.gen(function* () {
      const nodes = (yield* cluster.describe).brokers
      const answers = yield* Effect.forEach(
        nodes,
        (node) =>
          Effect.gen(function* () {
            const answer = yield* call(yield* cluster.node(node.id), "ListGroups", undefined)
            yield* check(answer.errorCode)
            return answer.groups.filter(({ protocolType }) => protocolType === "consumer" || protocolType === "")
          }),
        { concurrency: "unbounded" }
      )
      return [...new Set(answers.flat().map(({ groupId }) => groupId))].sort()
    }),
    { operation: "list groups" }
  )

const deleteGroups =
  ({ cluster, port }: AdminContext): Broker.Admin["deleteGroups"] =>
  (groupIds) =>
    Effect.forEach(
      groupIds,
      (groupId) =>
        port(
          Effect.gen(function* () {
            const answer = yield* cluster.askCoordinator("group", groupId, (broker) =>
              call(broker, "DeleteGroups", [groupId])
            )
            yield* check(...answer.results.map(({ errorCode }) => errorCode))
          }),
          { operation: "delete", groupId }
        ),
      { discard: true }
    )

export type GroupAdmin = Pick<
  Broker.Admin,
  "committedOffsets" | "setCommittedOffsets" | "listGroups" | "describeGroup" | "deleteGroups"
>

export const groupAdmin = (context: AdminContext): GroupAdmin => {
  const { cluster, port } = context
  return {
    committedOffsets: committedOffsets(context),
    listGroups: listGroups(context),
    deleteGroups: deleteGroups(context),
    setCommittedOffsets: (groupId, offsets) =>
      port(
        cluster.askCoordinator("group", groupId, (broker) =>
          sendCommit(broker, groupId, { memberId: "", generation: -1 }, offsets)
        ),
        { operation: "commit", groupId }
      ),
    describeGroup: (groupId) =>
      port(
        cluster.askCoordinator("group", groupId, (broker) => describeGroup(broker, groupId)),
        { operation: "describe", groupId }
      )
  }
}
