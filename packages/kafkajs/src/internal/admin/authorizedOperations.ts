/** The operations that ACLs allow this user (KIP-430), by Metadata v8 and DescribeGroups v4, which kafkajs does not encode. */
import type { Broker } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { Cluster } from "../connection/cluster.ts"
import { type ClientFailure, failureOfCode } from "../wire/clientFailure.ts"
import { Encoder, type KafkaBroker, type Reader } from "../wire/kafkajsInternals.ts"
import { callRaw } from "../wire/requests.ts"
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

const readPartition = (reader: Reader): void => {
  reader.readInt16()
  for (let field = 0; field < 3; field++) reader.readInt32()
  for (let list = 0; list < 3; list++) reader.readArray((each) => each.readInt32())
}

const readTopic = (reader: Reader): Answer => {
  const errorCode = reader.readInt16()
  const name = reader.readString() ?? ""
  reader.readInt8()
  reader.readArray(readPartition)
  return { name, errorCode, bits: reader.readInt32() }
}

const ofTopics = (broker: KafkaBroker, topics: ReadonlyArray<string>) =>
  callRaw(
    broker,
    { key: 3, version: 8, name: "Metadata" },
    () => new Encoder().writeArray(topics).writeBoolean(false).writeBoolean(true).writeBoolean(true),
    (reader) => {
      reader.readInt32()
      reader.readArray((node) => {
        node.readInt32()
        node.readString()
        node.readInt32()
        node.readString()
      })
      reader.readString()
      reader.readInt32()
      return { topics: reader.readArray(readTopic), clusterBits: reader.readInt32() }
    }
  )

const ofGroup = (broker: KafkaBroker, groupId: string) =>
  callRaw(
    broker,
    { key: 15, version: 4, name: "DescribeGroups" },
    () => new Encoder().writeArray([groupId]).writeBoolean(true),
    (reader) => {
      reader.readInt32()
      return reader.readArray((group): Answer => {
        const errorCode = group.readInt16()
        const name = group.readString() ?? ""
        for (let field = 0; field < 3; field++) group.readString()
        group.readArray((member) => {
          for (let field = 0; field < 4; field++) member.readString()
          for (let field = 0; field < 2; field++) member.readBytes()
        })
        return { name, errorCode, bits: group.readInt32() }
      })
    }
  )

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
  const metadata = yield* ofTopics(yield* cluster.anyNode, topics)
  const groups = yield* Effect.forEach(groupIds, (groupId) =>
    Effect.matchEffect(cluster.coordinator("group", groupId), {
      onSuccess: (broker) => cluster.whileCoordinator("group", groupId, broker, ofGroup(broker, groupId)),
      // A user who may not describe the group is not told its coordinator.
      onFailure: (failed) =>
        deniedTypes.has(failed.type)
          ? Effect.succeed([{ name: groupId, errorCode: groupAuthorizationFailed, bits: 0 }])
          : Effect.fail(failed)
    })
  )
  return {
    cluster: metadata.clusterBits === notIncluded ? undefined : operationsOf(metadata.clusterBits),
    topics: yield* operationsByName(metadata.topics),
    groups: yield* operationsByName(groups.flat())
  }
})

export const aclAdmin = ({ cluster, port }: AdminContext): Required<Pick<Broker.Admin, "authorizedOperations">> => ({
  authorizedOperations: (topics, groupIds) =>
    port(authorizedOperations(cluster, topics, groupIds), { operation: "describe what ACLs allow" })
})
