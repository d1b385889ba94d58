/**
 * The topic that a command on the dead letters of a binding is about, where the binding reads several.
 */
import * as Effect from "effect/Effect"
import type { InvalidArgument } from "../../Replay.ts"
import * as Arguments from "./arguments.ts"

/** The place of the topic among those of the binding. */
export const indexOf = (
  command: string,
  topics: ReadonlyArray<string>,
  topic: string
): Effect.Effect<number, InvalidArgument> => {
  const at = topics.indexOf(topic)
  return at === -1 ? Arguments.refuse(command, "topic", topic, oneOf(topics)) : Effect.succeed(at)
}

/** Refuses a command that has to know the topic. */
export const missing = (command: string, topics: ReadonlyArray<string>): Effect.Effect<never, InvalidArgument> =>
  Arguments.refuse(command, "topic", undefined, oneOf(topics))

const oneOf = (topics: ReadonlyArray<string>): string =>
  topics.length === 1
    ? `${topics[0]}, the topic that the binding reads`
    : `a topic that the binding reads: ${topics.join(", ")}`
