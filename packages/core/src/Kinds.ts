/**
 * The kinds of values that options take in code, each once: numbers by their `Ranges`, texts of a list by `Choices`, booleans, functions, effects, serdes, lists and
 * objects. A kind never throws, whatever it is given, and each of its problems has the path of the setting, what was found and what is allowed.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Choices from "./Choices.ts"
import { type ConfigurationIssue, ConfigurationValidation } from "./EventBusError.ts"
import { isObject, namesOf, read } from "./internal/base/properties.ts"
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

/** A kind like `make` for what may be a secret: its problems show the type of what was found, and never the value. */
export const hidden =
  (allowed: string, is: (value: unknown) => boolean): Kind =>
  (path, found) =>
    holds(is, found) ? [] : [{ path, found: typeOf(found), allowed }]

/** A `Redacted` with a text in it. Its problems never show what was found, since that may be the secret as plain text. */
export const redacted: Kind = hidden("a Redacted with a text in it", (value) => isRedactedText(value))

/** A secret: a `Redacted` with a text in it, or an Effect that reads one. Its problems never show what was found. */
export const secret: Kind = hidden(
  "a Redacted with a text in it, or an Effect that reads one",
  (value) => isRedactedText(value) || Effect.isEffect(value)
)

/** A text that is not empty, or a `secret`. Its problems never show what was found. */
export const textOrSecret: Kind = hidden(
  "a text that is not empty, a Redacted with a text in it, or an Effect that reads one",
  (value) => (typeof value === "string" ? value !== "" : isRedactedText(value) || Effect.isEffect(value))
)

const isRedactedText = (value: unknown): boolean =>
  Redacted.isRedacted(value) && typeof Redacted.value(value) === "string"

/** An address as `host:port`. A user and a password in front of it, which no address has, are not shown. */
export const address: Kind = (path, found) =>
  isAddress(found) ? [] : [{ path, found: shownWithoutUser(found), allowed: 'host:port, such as "kafka-1:9092"' }]

const addressPattern = /^(\[[0-9a-fA-F:.%]+\]|[^\s,:/@[\]]+):(\d{1,5})$/

const isAddress = (value: unknown): boolean => {
  const port = typeof value === "string" ? Number(addressPattern.exec(value)?.[2]) : Number.NaN
  return port >= 1 && port <= 65_535
}

/** A URL of `http` or `https` without user and password: `fetch` refuses those, and a log would show them. They are not shown. */
export const httpUrl: Kind = (path, found) =>
  isHttpUrl(found)
    ? []
    : [{ path, found: shownWithoutUser(found), allowed: "a URL of http or https, without user and password" }]

const isHttpUrl = (value: unknown): boolean => {
  const url = typeof value === "string" ? URL.parse(value) : null
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === ""
}

/** A text with `<redacted>` in place of a user and a password in front of an `@`. */
export const withoutUser = (text: string): string => text.replace(/^(.*\/\/)?.*@/s, "$1<redacted>@")

const shownWithoutUser = (found: unknown): string =>
  typeof found === "string" ? shown(withoutUser(found)) : typeOf(found)

const typeOf = (found: unknown): string =>
  found === null || found === undefined ? String(found) : `a value of type ${typeof found}`

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

/** `struct` for settings with secrets among them: what stands in their place is named by its type alone. */
export const section: typeof struct =
  (optional, required, allowed = "an object of settings") =>
  (path, found) =>
    isObject(found) ? struct(optional, required)(path, found) : [{ path, found: typeOf(found), allowed }]

/** An object whose values are of one kind, whatever their names are. */
export const recordOf =
  (entry: Kind, allowed = "an object"): Kind =>
  (path, found) => {
    const names = isObject(found) ? namesOf(found) : undefined
    return names === undefined
      ? [{ path, found: typeOf(found), allowed }]
      : names.flatMap((name) => entry(`${path}.${name}`, read(found as object, name)))
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
