/**
 * The kinds of values that options take in code, each once: numbers by their `Ranges`, texts of a list by `Choices`, booleans, functions, effects, serdes, lists and
 * objects. A kind never throws, whatever it is given, and each of its problems has the path of the setting, what was found and what is allowed.
 */
import { Effect, Schema } from "effect"
import * as Choices from "./Choices.ts"
import { type ConfigurationIssue, ConfigurationValidation } from "./EventBusError.ts"
import { isObject, read } from "./internal/base/properties.ts"
import { shown } from "./internal/base/shown.ts"
import * as Ranges from "./Ranges.ts"

export type { Kind } from "./Ranges.ts"

type Kind = Ranges.Kind
type Table = Readonly<Record<string, Kind | Ranges.Range>>

/** A kind of your own: `is` may throw, which means no. */
export const make =
  (allowed: string, is: (value: unknown) => boolean): Kind =>
  (path, found) =>
    holds(is, found) ? [] : [{ path, found: shown(found), allowed }]

/** `true` or `false`. */
export const flag: Kind = make("true or false", (value) => typeof value === "boolean")

/** A function. */
export const func: Kind = make("a function", (value) => typeof value === "function")

/** An Effect. */
export const effect: Kind = make("an Effect", Effect.isEffect)

/** An object of settings whose properties are checked elsewhere. */
export const object: Kind = make("an object", isObject)

/** Text of any characters. */
export const string: Kind = make("a text", (value) => typeof value === "string")

/** A name: text that is not blank, and that UTF-8 and databases carry as it is. */
export const name: Kind = (path, found) => {
  const allowed = nameProblem(found)
  return allowed === undefined ? [] : [{ path, found: shown(found), allowed }]
}

/** One of these texts, exactly. */
export const oneOf = (texts: ReadonlyArray<string>): Kind =>
  make(Choices.inWords(texts), (value) => typeof value === "string" && texts.includes(value))

/** A schema. */
export const schema: Kind = make("a schema", Schema.isSchema)

/** A list whose entries are of one kind. */
export const listOf =
  (entry: Kind, allowed = "a list"): Kind =>
  (path, found) => {
    const entries = holds(Array.isArray, found) ? entriesOf(found as ReadonlyArray<unknown>) : undefined
    return entries === undefined
      ? [{ path, found: shown(found), allowed }]
      : entries.flatMap((value, index) => entry(`${path}[${index}]`, value))
  }

/** An object with settings of its own. Those of `required` may not be absent. */
export function struct(optional: Table, required: Table = {}, allowed = "an object of settings"): Kind {
  return (path, found) =>
    isObject(found)
      ? [...Ranges.problemsOfAll(found, optional, `${path}.`), ...problemsOfRequired(found, required, `${path}.`)]
      : [{ path, found: shown(found), allowed }]
}

/** The functions that make a serde. */
export const functionsOfSerde: Kind = struct(
  {},
  { name: string, decode: func, encode: func },
  "an object with `name` and the functions `decode` and `encode`"
)

/** A serde, with the functions that it needs. */
export const serde: Kind = struct(
  { headers: func, prepare: func },
  { name: string, decode: func, encode: func },
  "a serde: an object with `name` and the functions `decode` and `encode`, and `headers` and `prepare` where it has them"
)

/** The problems of settings that may not be absent. `prefix` stands before each path. */
export const problemsOfRequired = (given: object, table: Table, prefix = ""): ReadonlyArray<ConfigurationIssue> =>
  Object.entries(table).flatMap(([name, entry]) => {
    const [path, found] = [`${prefix}${name}`, read(given, name)]
    return typeof entry === "function" ? entry(path, found) : Ranges.problems(path, found ?? null, entry)
  })

/** Throws `ConfigurationValidation` with these problems, if there are any. For what no binding owns. */
export const refuse = (issues: ReadonlyArray<ConfigurationIssue>): void => {
  if (issues.length > 0) throw new ConfigurationValidation({ issues })
}

/** Why a text is no name, in words of what is allowed; undefined when it is one. */
export const nameProblem = (text: unknown): string | undefined => {
  if (typeof text !== "string" || text.trim().length === 0) return "a text that is not empty"
  return text.isWellFormed() && !text.includes("\0") ? undefined : "a text without lone surrogates and NUL characters"
}

const holds = (is: (value: unknown) => boolean, value: unknown): boolean => {
  try {
    return is(value)
  } catch {
    return false
  }
}

const entriesOf = (list: ReadonlyArray<unknown>): ReadonlyArray<unknown> | undefined => {
  try {
    return Array.from(list)
  } catch {
    return undefined
  }
}
