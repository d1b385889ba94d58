/** Requests that kafkajs 2.2.4 does not encode, or not in the version that is needed. */
import type { Broker } from "@eventbus/core"
import { Effect } from "effect"
import { assignmentOf } from "../group/memberProtocol.ts"
import { check, failure, failureOfCode } from "../wire/clientFailure.ts"
import { Encoder, type KafkaBroker } from "../wire/kafkajsInternals.ts"
import { callRaw } from "../wire/requests.ts"

const topicResource = 2
const setOperation = 0

/** IncrementalAlterConfigs v0 (KIP-339, Kafka 2.3). The older AlterConfigs resets every key that it does not name. */
export const incrementalAlterTopicConfig = Effect.fnUntraced(function* (
  broker: KafkaBroker,
  topic: string,
  config: ReadonlyMap<string, string>
) {
  const answers = yield* callRaw(
    broker,
    { key: 44, version: 0, name: "IncrementalAlterConfigs" },
    () => {
      const entries = [...config].map(([name, value]) =>
        new Encoder().writeString(name).writeInt8(setOperation).writeString(value)
      )
      const resource = new Encoder().writeInt8(topicResource).writeString(topic).writeArray(entries)
      return new Encoder().writeArray([resource]).writeBoolean(false)
    },
    (reader) => {
      reader.readInt32()
      return reader.readArray((each) => {
        const answer = { errorCode: each.readInt16(), errorMessage: each.readString() }
        each.readInt8()
        each.readString()
        return answer
      })
    }
  )
  for (const { errorCode, errorMessage } of answers) {
    const failed = failureOfCode(errorCode, errorMessage)
    if (failed !== undefined) return yield* Effect.fail(failed)
  }
})

const states = ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"] as const
const isState = (text: string): text is Broker.GroupDescription["state"] => states.some((state) => state === text)

/** DescribeGroups v4 (Kafka 2.4), the first version with the `group.instance.id` of members. */
export const describeGroup = Effect.fnUntraced(function* (broker: KafkaBroker, groupId: string) {
  const [group] = yield* callRaw(
    broker,
    { key: 15, version: 4, name: "DescribeGroups" },
    () => new Encoder().writeArray([groupId]).writeBoolean(false),
    (reader) => {
      reader.readInt32()
      return reader.readArray((each) => {
        const errorCode = each.readInt16()
        each.readString()
        const state = each.readString() ?? "Dead"
        each.readString()
        each.readString()
        const members = each.readArray((member) => {
          const memberId = member.readString() ?? ""
          const groupInstanceId = member.readString() ?? undefined
          const clientId = member.readString() ?? ""
          member.readString()
          member.readBytes()
          return { memberId, groupInstanceId, clientId, assignment: assignmentOf(member.readBytes()) }
        })
        each.readInt32()
        return { errorCode, state, members }
      })
    }
  )
  yield* check(group?.errorCode)
  const { state, members } = group ?? { state: "Dead", members: [] }
  if (!isState(state)) return yield* Effect.fail(failure("UNKNOWN_STATE", `group state '${state}'`))
  const description: Broker.GroupDescription = { groupId, state, members }
  return description
})
