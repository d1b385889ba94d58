/**
 * How the workers of a vitest run share one Kafka.
 *
 * The main process answers two questions over HTTP on the loopback device. It starts the broker at the first question that needs it, so a run whose test
 * files need no Kafka starts none.
 */
import { Schema } from "effect"

/** `/shared` asks for the address of the run's Kafka, and starts it. `/tools` asks whether this machine can run brokers, and starts nothing. */
export type Question = "/shared" | "/tools"

export const Answer = Schema.Union([
  Schema.TaggedStruct("Available", { bootstrap: Schema.Array(Schema.String) }),
  Schema.TaggedStruct("Unavailable", { reason: Schema.String })
])
export type Answer = typeof Answer.Type

declare module "vitest" {
  interface ProvidedContext {
    /** Base URL of the main process's answers. */
    readonly sharedKafka: string
  }
}

const decodeAnswer = Schema.decodeUnknownPromise(Answer)

export const ask = async (address: string, question: Question): Promise<Answer> => {
  const response = await fetch(`${address}${question}`)
  return decodeAnswer(await response.json())
}
