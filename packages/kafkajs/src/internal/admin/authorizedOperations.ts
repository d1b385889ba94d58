/** What this user may do (KIP-430): Metadata v8 and DescribeGroups v4, which kafkajs does not speak. */
import type { Broker } from "@eventbus/core"
import { Effect } from "effect"
import type { Cluster } from "../connection/cluster.ts"
import { type ClientFailure, failureOfCode } from "../wire/errors.ts"
import { Encoder, type KafkaBroker, type Reader } from "../wire/kafkajsInternals.ts"
import { callRaw } from "../wire/wire.ts"
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

const none: Operations = new Set()

/** What the broker sends when it does not say. */
const notTold = -2_147_483_648

/** One bit for each operation. */
const operationsOf = (bits: number): Operations =>
  new Set([...names].filter(([code]) => (bits & (1 << code)) !== 0).map(([, name]) => name))

const deniedCodes = new Set(["TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"])

interface Answer {
  readonly name: string
  readonly errorCode: number
  readonly bits: number
}

/** undefined: it does not exist, or the broker does not say. */
const allowed = ({ errorCode, bits }: Answer): Effect.Effect<Operations | undefined, ClientFailure> => {
  const failed = failureOfCode(errorCode)
  if (failed === undefined) return Effect.succeed(bits === notTold ? undefined : operationsOf(bits))
  if (deniedCodes.has(failed.type)) return Effect.succeed(none)
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

const known = Effect.fnUntraced(function* (answers: ReadonlyArray<Answer>) {
  const told = yield* Effect.forEach(answers, (answer) =>
    Effect.map(allowed(answer), (found) => [answer.name, found] as const)
  )
  return new Map(told.flatMap(([name, found]) => (found === undefined ? [] : [[name, found] as const])))
})

const authorizedOperations = Effect.fnUntraced(function* (
  cluster: Cluster,
  topics: ReadonlyArray<string>,
  groupIds: ReadonlyArray<string>
): Effect.fn.Return<Broker.AuthorizedOperations, ClientFailure> {
  const metadata = yield* ofTopics(yield* cluster.anyNode, topics)
  const groups = yield* Effect.forEach(groupIds, (groupId) =>
    Effect.matchEffect(cluster.coordinator("group", groupId), {
      onSuccess: (broker) => ofGroup(broker, groupId),
      // who may not describe the group is not told its coordinator
      onFailure: (failed) =>
        deniedCodes.has(failed.type) ? Effect.succeed([{ name: groupId, errorCode: 30, bits: 0 }]) : Effect.fail(failed)
    })
  )
  return {
    cluster: metadata.clusterBits === notTold ? undefined : operationsOf(metadata.clusterBits),
    topics: yield* known(metadata.topics),
    groups: yield* known(groups.flat())
  }
})

export const rightsAdmin = ({ cluster, port }: AdminContext): Required<Pick<Broker.Admin, "authorizedOperations">> => ({
  authorizedOperations: (topics, groupIds) =>
    port(authorizedOperations(cluster, topics, groupIds), { operation: "ask for rights" })
})
