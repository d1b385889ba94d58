/**
 * How the workers of a vitest run share one Kafka.
 *
 * The main process answers two questions over HTTP on the loopback device and starts the broker at the first that needs it, so a
 * run whose selected test files need no Kafka starts none.
 */
import { Schema } from "effect"

/** `/shared`: where the run's Kafka is; starts it. `/tools`: whether this machine can run brokers; starts nothing. */
export type Question = "/shared" | "/tools"

export const Answer = Schema.Union([
  Schema.TaggedStruct("Available", { bootstrap: Schema.Array(Schema.String) }),
  Schema.TaggedStruct("Unavailable", { reason: Schema.String })
])
export type Answer = typeof Answer.Type

declare module "vitest" {
  interface ProvidedContext {
    /** Address of the main process's answers. */
    readonly sharedKafka: string
  }
}

const decodeAnswer = Schema.decodeUnknownPromise(Answer)

export const ask = async (address: string, question: Question): Promise<Answer> => {
  const response = await fetch(`${address}${question}`)
  return decodeAnswer(await response.json())
}
