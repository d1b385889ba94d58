/** Asks the coordinator of a group for its state and its members, whichever protocol the group has. */
import type { Broker } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { type ClientFailure, failure } from "../../ClientFailure.ts"
import type { NodeClient } from "../../Transport.ts"
import { type Api, only } from "../protocol/api.ts"
import type { Reader } from "../protocol/reader.ts"
import { Writer } from "../protocol/writer.ts"
import { check } from "../wire/failures.ts"
import { callApi } from "../wire/requests.ts"
import { decodeAssignment, decodeMember } from "./memberProtocol.ts"

type Description = Broker.GroupDescription

/** A group that does not exist is described as `Dead` without members. */
export const describeGroup = Effect.fnUntraced(function* (
  broker: NodeClient,
  groupId: string
): Effect.fn.Return<Description, ClientFailure> {
  const classic = yield* describeClassicGroup(broker, groupId)
  // To this request a group of the newer protocol does not exist.
  const isAsked = classic.state === "Dead" && broker.versionsOf(consumerGroupDescribe.key) !== undefined
  return isAsked ? ((yield* describeConsumerGroup(broker, groupId)) ?? classic) : classic
})

const states = ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"] as const
const isState = (text: string): text is Description["state"] => states.some((state) => state === text)

const describeClassicGroup = Effect.fnUntraced(function* (broker: NodeClient, groupId: string) {
  const [group] = yield* callApi(broker, describeGroups, groupId)
  yield* check(group?.errorCode)
  const { state, protocol, members } = group ?? { state: "Dead", protocol: "", members: [] }
  if (!isState(state)) return yield* Effect.fail(failure("UNKNOWN_STATE", `group state '${state}'`))
  const description: Description = { groupId, type: "classic", state, protocol, members }
  return description
})

const readClassicGroup = (reader: Reader) => {
  const errorCode = reader.int16()
  reader.string()
  const state = reader.nullableString() ?? "Dead"
  reader.string()
  const protocol = reader.string()
  const members = reader.array(() => {
    const memberId = reader.string()
    const groupInstanceId = reader.nullableString() ?? undefined
    const clientId = reader.string()
    reader.string()
    const subscription = decodeMember(memberId, reader.bytes())
    const assignment = decodeAssignment(reader.bytes())?.partitions ?? []
    const { topics, isConnector } = subscription ?? {}
    return { memberId, groupInstanceId, clientId, topics, isConnector, assignment }
  })
  reader.int32()
  return { errorCode, state, protocol, members }
}

/** DescribeGroups v4 (Kafka 2.4), the first version with the `group.instance.id` of members. */
const describeGroups: Api<string, ReadonlyArray<ReturnType<typeof readClassicGroup>>> = {
  ...{ key: 15, name: "DescribeGroups", versions: only(4), throttledFrom: 2 },
  encode: (groupId) => new Writer().strings([groupId]).boolean(false).body,
  decode: (reader) => {
    reader.throttle()
    return reader.array(() => readClassicGroup(reader))
  }
}

/** The states of KIP-848, by the names of the classic protocol for the same: the broker decides, or members give up what they have to. */
const statesOfConsumerGroup: ReadonlyMap<string, Description["state"]> = new Map([
  ["Empty", "Empty"],
  ["Assigning", "PreparingRebalance"],
  ["Reconciling", "CompletingRebalance"],
  ["Stable", "Stable"]
])

/** ConsumerGroupDescribe v0 (Kafka 4.0). */
const consumerGroupDescribe: Api<string, ReadonlyArray<ReturnType<typeof readConsumerGroup>>> = {
  ...{ key: 69, name: "ConsumerGroupDescribe", versions: only(0), throttledFrom: 0, isFlexible: true },
  encode: (groupId) => {
    const writer = new Writer()
    return writer
      .compactArray([groupId], (each) => writer.compactString(each))
      .boolean(false)
      .noTags().body
  },
  decode: (reader) => {
    reader.throttle()
    return reader.compactArray(() => readConsumerGroup(reader))
  }
}

/** Undefined when there is no such group either. */
const describeConsumerGroup = Effect.fnUntraced(function* (broker: NodeClient, groupId: string) {
  const [group] = yield* callApi(broker, consumerGroupDescribe, groupId)
  const state = statesOfConsumerGroup.get(group?.state ?? "")
  if (group === undefined || state === undefined) return undefined
  const { protocol, members } = group
  const description: Description = { groupId, type: "consumer", state, protocol, members }
  return description
})

const readConsumerGroup = (reader: Reader) => {
  reader.int16()
  reader.compactString()
  reader.compactString()
  const state = reader.compactString()
  reader.skip(4 + 4)
  const protocol = reader.compactString()
  const members = reader.compactArray(() => readConsumerGroupMember(reader))
  reader.skip(4)
  reader.tags()
  return { state, protocol, members }
}

const readConsumerGroupMember = (reader: Reader) => {
  const memberId = reader.compactString()
  const groupInstanceId = reader.compactString() || undefined
  reader.compactString()
  reader.skip(4)
  const clientId = reader.compactString()
  reader.compactString()
  const topics = reader.compactArray(() => reader.compactString())
  reader.compactString()
  const assignment = readPartitions(reader)
  readPartitions(reader)
  reader.tags()
  return { memberId, groupInstanceId, clientId, topics, assignment }
}

const readPartitions = (reader: Reader) => {
  const partitions = reader.compactArray(() => {
    reader.uuid()
    const topic = reader.compactString()
    const numbers = reader.compactArray(() => reader.int32())
    reader.tags()
    return numbers.map((partition) => ({ topic, partition }))
  })
  reader.tags()
  return partitions.flat()
}
