/** The operations that ACLs allow this user (KIP-430), by Metadata v8 and DescribeGroups v4. */
import type { Broker } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { Cluster } from "../connection/cluster.ts"
import { type Api, only } from "../protocol/api.ts"
import type { Reader } from "../protocol/reader.ts"
import { Writer } from "../protocol/writer.ts"
import { failureOfCode } from "../wire/failures.ts"
import { callApi } from "../wire/requests.ts"
import type { AdminContext } from "./adminContext.ts"

const names = new Map<number, Broker.AclOperation>([
  [3, "Read"],
  [4, "Write"],
  [5, "Create"],
  [6, "Delete"],
  [7, "Alter"],
  [8, "Describe"],
  [9, "ClusterAction"],
  [10, "DescribeConfigs"],
  [11, "AlterConfigs"],
  [12, "IdempotentWrite"]
])

type Operations = ReadonlySet<Broker.AclOperation>

const noOperations: Operations = new Set()

/** The broker's value for "not included". */
const notIncluded = -2_147_483_648

/** The set bits are the codes of the operations. */
const operationsOf = (bits: number): Operations =>
  new Set([...names].filter(([code]) => (bits & (1 << code)) !== 0).map(([, name]) => name))

const groupAuthorizationFailed = 30
const deniedTypes = new Set(["TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"])

interface Answer {
  readonly name: string
  readonly errorCode: number
  readonly bits: number
}

/** undefined when the topic does not exist, or when the broker does not include its operations. */
const allowed = ({ errorCode, bits }: Answer): Effect.Effect<Operations | undefined, ClientFailure> => {
  const failed = failureOfCode(errorCode)
  if (failed === undefined) return Effect.succeed(bits === notIncluded ? undefined : operationsOf(bits))
  if (deniedTypes.has(failed.type)) return Effect.succeed(noOperations)
  return failed.type === "UNKNOWN_TOPIC_OR_PARTITION" ? Effect.undefined : Effect.fail(failed)
}

const skipPartition = (reader: Reader): void => {
  reader.skip(2 + 4 + 4 + 4)
  for (let list = 0; list < 3; list++) reader.array(() => reader.int32())
}

const readTopic = (reader: Reader): Answer => {
  const errorCode = reader.int16()
  const name = reader.string()
  reader.int8()
  reader.array(() => skipPartition(reader))
  return { name, errorCode, bits: reader.int32() }
}

const skipNode = (reader: Reader): void => {
  reader.int32()
  reader.string()
  reader.int32()
  reader.nullableString()
}

const metadata: Api<ReadonlyArray<string>, { readonly topics: ReadonlyArray<Answer>; readonly clusterBits: number }> = {
  ...{ key: 3, name: "Metadata", versions: only(8), throttledFrom: 6 },
  // No topic is created; the operations of the cluster and of the topics are included.
  encode: (topics) => new Writer().strings(topics).boolean(false).boolean(true).boolean(true).body,
  decode: (reader) => {
    reader.throttle()
    reader.array(() => skipNode(reader))
    reader.nullableString()
    reader.int32()
    return { topics: reader.array(() => readTopic(reader)), clusterBits: reader.int32() }
  }
}

const describeGroups: Api<string, ReadonlyArray<Answer>> = {
  ...{ key: 15, name: "DescribeGroups", versions: only(4), throttledFrom: 2 },
  encode: (groupId) => new Writer().strings([groupId]).boolean(true).body,
  decode: (reader) => {
    reader.throttle()
    return reader.array(() => {
      const errorCode = reader.int16()
      const name = reader.string()
      for (let field = 0; field < 3; field++) reader.string()
      reader.array(() => {
        for (let field = 0; field < 4; field++) reader.nullableString()
        for (let field = 0; field < 2; field++) reader.bytes()
      })
      return { name, errorCode, bits: reader.int32() }
    })
  }
}

const operationsByName = Effect.fnUntraced(function* (answers: ReadonlyArray<Answer>) {
  const answered = yield* Effect.forEach(answers, (answer) =>
    Effect.map(allowed(answer), (found) => [answer.name, found] as const)
  )
  return new Map(answered.flatMap(([name, found]) => (found === undefined ? [] : [[name, found] as const])))
})

const authorizedOperations = Effect.fnUntraced(function* (
  cluster: Cluster,
  topics: ReadonlyArray<string>,
  groupIds: ReadonlyArray<string>
): Effect.fn.Return<Broker.AuthorizedOperations, ClientFailure> {
  const ofTopics = yield* callApi(yield* cluster.anyNode, metadata, topics)
  const groups = yield* Effect.forEach(groupIds, (groupId) =>
    Effect.matchEffect(cluster.coordinator("group", groupId), {
      onSuccess: (broker) =>
        cluster.whileCoordinator("group", groupId, broker, callApi(broker, describeGroups, groupId)),
      // A user who may not describe the group is not told its coordinator.
      onFailure: (failed) =>
        deniedTypes.has(failed.type)
          ? Effect.succeed([{ name: groupId, errorCode: groupAuthorizationFailed, bits: 0 }])
          : Effect.fail(failed)
    })
  )
  return {
    cluster: ofTopics.clusterBits === notIncluded ? undefined : operationsOf(ofTopics.clusterBits),
    topics: yield* operationsByName(ofTopics.topics),
    groups: yield* operationsByName(groups.flat())
  }
})

export const aclAdmin = ({ cluster, port }: AdminContext): Required<Pick<Broker.Admin, "authorizedOperations">> => ({
  authorizedOperations: (topics, groupIds) =>
    port(authorizedOperations(cluster, topics, groupIds), { operation: "describe what ACLs allow" })
})
