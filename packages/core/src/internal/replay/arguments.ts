/**
 * Checks the counts, times, reasons, options and selections that operators give to commands, before anything is asked of the cluster. A caller may be a program in
 * JavaScript, so nothing here throws, whatever it is given.
 */
import * as Effect from "effect/Effect"
import * as DeadLetterSelection from "../../DeadLetterSelection.ts"
import * as Kinds from "../../Kinds.ts"
import { InvalidArgument, UnknownTier } from "../../Replay.ts"
import { isObject, read, taken, takenWhole } from "../base/properties.ts"
import { longestQuote, shown } from "../base/shown.ts"

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

/** True, false or nothing. */
export const flag = (command: string, argument: string, given: unknown): Effect.Effect<void, InvalidArgument> =>
  given === undefined || typeof given === "boolean" ? Effect.void : refuse(command, argument, given, "true or false")

/** The offset that something begins at. */
export const offset = (command: string, argument: string, given: unknown): Effect.Effect<void, InvalidArgument> =>
  typeof given === "bigint" ? Effect.void : refuse(command, argument, given, "an offset as a bigint, such as 17n")

/** The number of a retry tier that the binding has. */
export const tier = (
  command: string,
  given: number,
  tiers: number
): Effect.Effect<void, InvalidArgument | UnknownTier> => {
  if (typeof given !== "number") return refuse(command, "tier", given, "the number of a retry tier, from 1")
  return Number.isInteger(given) && given >= 1 && given <= tiers
    ? Effect.void
    : Effect.fail(new UnknownTier({ tier: given, tiers }))
}

/** The states that a command is about; undefined for all. */
export const states = (
  command: string,
  given: ReadonlyArray<string> | undefined,
  known: ReadonlyArray<string>
): Effect.Effect<void, InvalidArgument> => {
  const allowed = `one or more of ${known.join(", ")}`
  const [issue] = Kinds.listOf(Kinds.oneOf(known), allowed)("states", given ?? [])
  return given === undefined || (issue === undefined && given.length > 0)
    ? Effect.void
    : refuse(command, "states", given, allowed)
}

/** Options, or a query, with each of its settings read once. The values are not checked. */
export const options = <A extends object>(
  command: string,
  argument: string,
  given: A,
  names: ReadonlyArray<keyof A & string>
): Effect.Effect<A, InvalidArgument> =>
  isObject(given) ? Effect.succeed(taken(given, names)) : refuse(command, argument, given, "an object")

/** The dead letters that a command is about, with each criterion read once. The first issue is told. */
export const selection = (
  command: string,
  given: DeadLetterSelection.DeadLetterSelection
): Effect.Effect<DeadLetterSelection.DeadLetterSelection, InvalidArgument> => {
  const once = isObject(given) ? takenWhole(given, DeadLetterSelection.names) : given
  const [issue] = DeadLetterSelection.issues(once)
  return issue === undefined ? Effect.succeed(once) : refuse(command, issue.path, issue.given, issue.expected)
}

/** Positions of dead letters, each read once. The first issue is told. */
export const positions = (
  command: string,
  argument: string,
  given: ReadonlyArray<DeadLetterSelection.Position>
): Effect.Effect<ReadonlyArray<DeadLetterSelection.Position>, InvalidArgument> => {
  const list = listed(given)
  if (list === undefined) return refuse(command, argument, given, "a list of positions")
  return Effect.forEach(list, (each, index) => position(command, `${argument}[${index}]`, each))
}

/** The position of a dead letter, read once. */
export const position = (
  command: string,
  argument: string,
  given: DeadLetterSelection.Position
): Effect.Effect<DeadLetterSelection.Position, InvalidArgument> => {
  const once = isObject(given) ? { partition: read(given, "partition"), offset: read(given, "offset") } : given
  const [issue] = DeadLetterSelection.issuesOfPosition(argument, once)
  return issue === undefined
    ? Effect.succeed(once as DeadLetterSelection.Position)
    : refuse(command, issue.path, issue.given, issue.expected)
}

const listed = <A>(given: ReadonlyArray<A>): ReadonlyArray<A> | undefined => {
  try {
    return Array.isArray(given) ? Array.from(given) : undefined
  } catch {
    return undefined
  }
}

/** Fails with the argument, the given value, and the values that the command takes. */
export const refuse = (command: string, argument: string, given: unknown, expected: string) => {
  const isShort = typeof given === "string" && given.length <= longestQuote
  return Effect.fail(new InvalidArgument({ command, argument, given: isShort ? given : shown(given), expected }))
}
