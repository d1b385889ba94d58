/** Requests that kafkajs 2.2.4 does not encode, or not in the version that is needed. */
import * as Effect from "effect/Effect"
import { failureOfCode } from "../wire/clientFailure.ts"
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
