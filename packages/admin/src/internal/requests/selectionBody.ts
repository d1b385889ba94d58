/**
 * Reads the selection of dead letters in the body of a request, and reports everything that is wrong with it with its path.
 */
import { Settings } from "@eventbus/config"
import { DeadLetterSelection } from "@eventbus/core"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { ParameterIssue } from "../../AdminError.ts"
import { allowed } from "./parameters.ts"

/** The names in a body, and those of a selection. */
const names = {
  groups: "fingerprints",
  from: "fromMillis",
  to: "toMillis",
  keys: "keys",
  records: "records",
  all: "all",
  except: "except"
} as const

const texts = (description: string) => ({ type: "array", items: { type: "string", description } })
const time = { type: ["string", "number"], description: "ISO-8601 with Z or an offset, or epoch milliseconds" }

/** A selection, for the OpenAPI document. */
export const selectSchema = {
  type: "object",
  minProperties: 1,
  additionalProperties: false,
  description: "What meets all of the criteria and is not excepted. 'all' stands alone, or with 'except'.",
  properties: {
    groups: texts(allowed.group),
    from: time,
    to: time,
    keys: texts("a key as UTF-8 text"),
    records: texts(allowed.position),
    all: { type: "boolean", enum: [true] },
    except: texts(allowed.position)
  }
}

/** The body of a rehearsal, for the OpenAPI document. */
export const jsonSchema = {
  ...{ type: "object", required: ["select"], additionalProperties: false },
  properties: {
    select: selectSchema,
    transform: {
      type: "string",
      minLength: 1,
      description: "The name of a function of the binding that repairs the letters"
    }
  }
}

/** The body of a rehearsal. */
export interface RehearsalBody {
  readonly select: DeadLetterSelection.DeadLetterSelection
  readonly transform?: string
}

/** Reads the body of a rehearsal. */
export const readBody = (body: unknown): Result.Result<RehearsalBody, ReadonlyArray<ParameterIssue>> => {
  if (!isRecord(body))
    return Result.fail([{ path: "", found: kindOf(body), allowed: "an object with the key 'select'" }])
  const found = readSelect(body["select"])
  const { transform } = body
  const isName = transform === undefined || (typeof transform === "string" && transform !== "")
  const issues: ReadonlyArray<ParameterIssue> = [
    ...Object.keys(body)
      .filter((name) => name !== "select" && name !== "transform")
      .map((path) => ({ path, found: "an unknown key", allowed: "select, transform" })),
    ...(isName ? [] : [{ path: "transform", found: kindOf(transform), allowed: "the name of a transform" }])
  ]
  if (issues.length === 0 && isName)
    return Result.map(found, (select) => ({ select, ...(transform === undefined ? {} : { transform }) }))
  return Result.fail([...issues, ...(Result.isFailure(found) ? found.failure : [])])
}

/** Reads the value of `select`. A criterion that cannot be read stays as it is, and the check of selections finds it. */
export const readSelect = (
  value: unknown
): Result.Result<DeadLetterSelection.DeadLetterSelection, ReadonlyArray<ParameterIssue>> => {
  if (!isRecord(value)) return Result.fail([issueOf({ path: "select", given: kindOf(value), expected: "" })])
  const selection = Object.fromEntries(
    Object.entries(value).map(([name, given]) => [nameIn(name), criterionOf(name, given)])
  )
  const issues = DeadLetterSelection.issues(selection)
  // It has no issues, so it is one.
  return issues.length === 0
    ? Result.succeed(selection as DeadLetterSelection.DeadLetterSelection)
    : Result.fail(issues.map(issueOf))
}

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  Predicate.isObject(value) && !Array.isArray(value)

/** Longest value that an issue quotes, in characters. */
export const longestQuote = 200

/** A value as text, or its length, or `nothing`. */
export const kindOf = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "nothing"
  if (text.length <= longestQuote) return text
  return typeof value === "string" ? `a text of ${value.length} characters` : `JSON of ${text.length} characters`
}

/** The issue of a body that is no object. */
export const notAnObject = (body: unknown, keys: string): Result.Result<never, ReadonlyArray<ParameterIssue>> =>
  Result.fail([{ path: "", found: kindOf(body), allowed: `an object with ${keys}` }])

/** The issues of keys that a body does not have. */
export const unknownKeys = (body: object, known: ReadonlyArray<string>): ReadonlyArray<ParameterIssue> =>
  Object.keys(body)
    .filter((name) => !known.includes(name))
    .map((path) => ({ path, found: "an unknown key", allowed: known.length === 0 ? "no key" : known.join(", ") }))

/** A name of the program's side is none in a body. */
const nameIn = (name: string): string =>
  Object.hasOwn(names, name) ? names[name as keyof typeof names] : name in byCriterion ? `unknown ${name}` : name

const byCriterion: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(names).map(([name, criterion]) => [criterion, name])
)

const criterionOf = (name: string, given: unknown): unknown => {
  if (name === "from" || name === "to") {
    const millis = typeof given === "string" ? Settings.parseTime(given) : given
    return typeof millis === "number" && !Number.isNaN(millis) ? millis : kindOf(given)
  }
  return (name === "records" || name === "except") && Array.isArray(given)
    ? given.map((each: unknown) =>
        typeof each === "string" ? (DeadLetterSelection.parsePosition(each) ?? each) : each
      )
    : given
}

/** With the names and the values of a body. */
const issueOf = ({ path, given, expected }: DeadLetterSelection.Issue): ParameterIssue => {
  const [, criterion = "", rest = ""] = /^selection(?:\.([^[]*)(.*))?$/s.exec(path) ?? []
  const name = byCriterion[criterion] ?? criterion.replace(/^unknown /, "")
  return {
    path: name === "" ? "select" : `select.${name}${indexOf(rest)}`,
    found: given,
    allowed: allowedAs(name, rest, expected)
  }
}

/** A position is one text in a body. */
const indexOf = (rest: string): string => rest.replace(/\.(?:partition|offset)$/, "")

const criteria = Object.keys(names).join(", ")

const allowedAs = (name: string, rest: string, expected: string): string => {
  if (name === "") return `an object with one or more of ${criteria}`
  if (!Object.hasOwn(names, name)) return criteria
  if (name === "from" || name === "to") return allowed[name]
  return (name === "records" || name === "except") && rest !== "" ? allowed.position : expected
}
