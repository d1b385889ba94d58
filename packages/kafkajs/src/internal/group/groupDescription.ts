/** Asks the coordinator of a group for its state and its members, whichever protocol the group has. */
import type { Broker } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { type ClientFailure, check, failure } from "../wire/clientFailure.ts"
import { type FlexibleReader, FlexibleWriter } from "../wire/flexible.ts"
import { Encoder, type KafkaBroker, type Reader } from "../wire/kafkajsInternals.ts"
import { callFlexible, callRaw } from "../wire/requests.ts"
import { decodeAssignment, decodeMember } from "./memberProtocol.ts"

type Description = Broker.GroupDescription

/** A group that does not exist is described as `Dead` without members. */
export const describeGroup = Effect.fnUntraced(function* (
  broker: KafkaBroker,
  groupId: string
): Effect.fn.Return<Description, ClientFailure> {
  const classic = yield* describeClassicGroup(broker, groupId)
  // To this request a group of the newer protocol does not exist.
  const isAsked = classic.state === "Dead" && broker.versions?.[consumerGroupDescribe.key] !== undefined
  return isAsked ? ((yield* describeConsumerGroup(broker, groupId)) ?? classic) : classic
})

const states = ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"] as const
const isState = (text: string): text is Description["state"] => states.some((state) => state === text)

/** DescribeGroups v4 (Kafka 2.4), the first version with the `group.instance.id` of members. */
const describeClassicGroup = Effect.fnUntraced(function* (broker: KafkaBroker, groupId: string) {
  const [group] = yield* callRaw(
    broker,
    { key: 15, version: 4, name: "DescribeGroups" },
    () => new Encoder().writeArray([groupId]).writeBoolean(false),
    (reader) => {
      reader.readInt32()
      return reader.readArray(readClassicGroup)
    }
  )
  yield* check(group?.errorCode)
  const { state, protocol, members } = group ?? { state: "Dead", protocol: "", members: [] }
  if (!isState(state)) return yield* Effect.fail(failure("UNKNOWN_STATE", `group state '${state}'`))
  const description: Description = { groupId, type: "classic", state, protocol, members }
  return description
})

const readClassicGroup = (reader: Reader) => {
  const errorCode = reader.readInt16()
  reader.readString()
  const state = reader.readString() ?? "Dead"
  reader.readString()
  const protocol = reader.readString() ?? ""
  const members = reader.readArray((member) => {
    const memberId = member.readString() ?? ""
    const groupInstanceId = member.readString() ?? undefined
    const clientId = member.readString() ?? ""
    member.readString()
    const subscription = decodeMember(memberId, member.readBytes() ?? Buffer.alloc(0))
    const assignment = decodeAssignment(member.readBytes())?.partitions ?? []
    const { topics, isConnector } = subscription ?? {}
    return { memberId, groupInstanceId, clientId, topics, isConnector, assignment }
  })
  reader.readInt32()
  return { errorCode, state, protocol, members }
}

const consumerGroupDescribe = { key: 69, version: 0, name: "ConsumerGroupDescribe" }

/** The states of KIP-848, by the names of the classic protocol for the same: the broker decides, or members give up what they have to. */
const statesOfConsumerGroup: ReadonlyMap<string, Description["state"]> = new Map([
  ["Empty", "Empty"],
  ["Assigning", "PreparingRebalance"],
  ["Reconciling", "CompletingRebalance"],
  ["Stable", "Stable"]
])

/** ConsumerGroupDescribe v0 (Kafka 4.0). Undefined when there is no such group either. */
const describeConsumerGroup = Effect.fnUntraced(function* (broker: KafkaBroker, groupId: string) {
  const [group] = yield* callFlexible(
    broker,
    consumerGroupDescribe,
    () => new FlexibleWriter().size(1).string(groupId).boolean(false).noTags(),
    (reader) => {
      reader.skip(4)
      return reader.array(() => readConsumerGroup(reader))
    }
  )
  const state = statesOfConsumerGroup.get(group?.state ?? "")
  if (group === undefined || state === undefined) return undefined
  const { protocol, members } = group
  const description: Description = { groupId, type: "consumer", state, protocol, members }
  return description
})

const readConsumerGroup = (reader: FlexibleReader) => {
  reader.int16()
  reader.string()
  reader.string()
  const state = reader.string()
  reader.skip(4 + 4)
  const protocol = reader.string()
  const members = reader.array(() => readConsumerGroupMember(reader))
  reader.skip(4)
  reader.tags()
  return { state, protocol, members }
}

const readConsumerGroupMember = (reader: FlexibleReader) => {
  const memberId = reader.string()
  const groupInstanceId = reader.string() || undefined
  reader.string()
  reader.skip(4)
  const clientId = reader.string()
  reader.string()
  const topics = reader.array(() => reader.string())
  reader.string()
  const assignment = readPartitions(reader)
  readPartitions(reader)
  reader.tags()
  return { memberId, groupInstanceId, clientId, topics, assignment }
}

const readPartitions = (reader: FlexibleReader) => {
  const partitions = reader.array(() => {
    reader.skip(16)
    const topic = reader.string()
    const numbers = reader.array(() => reader.int32())
    reader.tags()
    return numbers.map((partition) => ({ topic, partition }))
  })
  reader.tags()
  return partitions.flat()
}
