/**
 * Checks the counts, times, reasons and selections that operators give to commands, before anything is asked of the cluster.
 */
import { Effect } from "effect"
import * as DeadLetterSelection from "../../DeadLetterSelection.ts"
import { InvalidArgument } from "../../Replay.ts"

/** A whole number of 0 or more; `Infinity` means all. */
export const count = (command: string, given: number, argument = "count"): Effect.Effect<void, InvalidArgument> =>
  given === Number.POSITIVE_INFINITY || (Number.isSafeInteger(given) && given >= 0)
    ? Effect.void
    : refuse(command, argument, given, "a whole number of 0 or more, or Infinity")

/** Epoch milliseconds. Infinity stands for the beginning or the end of time. */
export const time = (command: string, argument: string, given: number): Effect.Effect<void, InvalidArgument> =>
  typeof given === "number" && !Number.isNaN(given)
    ? Effect.void
    : refuse(command, argument, given, "epoch milliseconds")

/** Most characters of a text that the journal keeps with a record or a run. */
export const longestText = 4_000

/** Why somebody decides about records: the reason is kept, so there has to be one, and it has to fit. */
export const reason = (command: string, given: string): Effect.Effect<void, InvalidArgument> =>
  typeof given === "string" && given.trim() !== ""
    ? text(command, "reason", given)
    : refuse(command, "reason", given === "" ? "empty" : given, "a text that says why")

/** A text that the journal keeps. */
const text = (command: string, argument: string, given: string): Effect.Effect<void, InvalidArgument> =>
  given.length <= longestText
    ? Effect.void
    : refuse(command, argument, `${given.length} characters`, `a text of at most ${longestText} characters`)

/** A whole number within bounds. */
export const within = (
  command: string,
  argument: string,
  given: number,
  [least, most]: readonly [least: number, most: number]
): Effect.Effect<void, InvalidArgument> =>
  Number.isSafeInteger(given) && given >= least && given <= most
    ? Effect.void
    : refuse(command, argument, given, `a whole number from ${least} to ${most}`)

/** The states that a command is about; undefined for all. */
export const states = (
  command: string,
  given: ReadonlyArray<string> | undefined,
  known: ReadonlyArray<string>
): Effect.Effect<void, InvalidArgument> =>
  given === undefined ||
  (Array.isArray(given) && given.length > 0 && given.every((state: unknown) => known.some((each) => each === state)))
    ? Effect.void
    : refuse(command, "states", JSON.stringify(given), `one or more of ${known.join(", ")}`)

/** The dead letters that a command is about. The first issue is told. */
export const selection = (
  command: string,
  given: DeadLetterSelection.DeadLetterSelection
): Effect.Effect<void, InvalidArgument> => {
  const [issue] = DeadLetterSelection.issues(given)
  return issue === undefined ? Effect.void : refuse(command, issue.path, issue.given, issue.expected)
}

/** Fails with the argument, the given value, and the values that the command takes. */
export const refuse = (command: string, argument: string, given: unknown, expected: string) =>
  Effect.fail(new InvalidArgument({ command, argument, given: String(given), expected }))
