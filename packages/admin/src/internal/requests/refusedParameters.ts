/**
 * Turns everything that the schemas refuse in a request into one answer with all issues and their paths. A body that the route does not take is one of them.
 */
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpApiError from "effect/http-api/HttpApiError"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type * as SchemaIssue from "effect/SchemaIssue"
import type * as Types from "effect/Types"
import { InvalidRequest, type ParameterIssue } from "../../AdminError.ts"
import { RefusedParameters } from "../middlewares.ts"
import { allowed } from "./parameters.ts"
import { kindOf } from "./selectionBody.ts"
import * as UnwantedBody from "./unwantedBody.ts"

type Input = Readonly<Record<string, unknown>>

export const layer: Layer.Layer<RefusedParameters> = Layer.succeed(RefusedParameters, (respond, { endpoint }) =>
  Effect.gen(function* () {
    const search = yield* HttpServerRequest.ParsedSearchParams
    const known = parametersOf(endpoint.query)
    // A route without parameters has no schema that would refuse one.
    const unknown = endpoint.query === undefined ? Object.keys(search) : []
    const unwanted = [
      ...unknown.map((path) => issueOf({ path, isUnknown: true }, search, known)),
      ...(yield* UnwantedBody.issuesOf(endpoint))
    ]
    if (unwanted.length > 0) return yield* new InvalidRequest({ issues: unwanted })
    return yield* Effect.catch(respond, (error): Effect.Effect<never, Types.unhandled | InvalidRequest> => {
      if (!HttpApiError.HttpApiSchemaError.is(error)) return Effect.fail(error)
      // An answer that its schema refuses is our mistake, not the caller's.
      if (error.kind !== "Query") return Effect.die(error.cause)
      const issues = problemsOf(error.cause.issue).map((problem) => issueOf(problem, search, known))
      return Effect.fail(new InvalidRequest({ issues }))
    })
  })
)

interface Problem {
  readonly path: string
  readonly isUnknown: boolean
}

const problemsOf = (issue: SchemaIssue.Issue, path = ""): ReadonlyArray<Problem> => {
  switch (issue._tag) {
    case "Pointer":
      // Parameters are flat: what lies deeper, such as the second of two values, is the parameter's problem.
      return problemsOf(issue.issue, path === "" ? String(issue.path[0]) : path)
    case "Filter":
    case "Encoding":
      return problemsOf(issue.issue, path)
    case "Composite":
      return issue.issues.flatMap((each) => problemsOf(each, path))
    default:
      return [{ path, isUnknown: issue._tag === "UnexpectedKey" }]
  }
}

const issueOf = ({ path, isUnknown }: Problem, input: Input, known: ReadonlyArray<string>): ParameterIssue => {
  const found = Object.hasOwn(input, path) ? kindOf(input[path]) : "nothing"
  if (isUnknown) {
    const allowed = known.length === 0 ? "no parameter" : `the parameters ${known.join(", ")}`
    return { path, found: `an unknown parameter with the value ${found}`, allowed }
  }
  const one = path in allowed ? allowed[path as keyof typeof allowed] : "a value of its schema"
  return { path, found, allowed: Array.isArray(input[path]) ? `${one}, given once` : one }
}

/** The names that the endpoint declares. Effect wraps its schema to decode texts, so the fields of the declaration are gone, and the syntax tree still has the names. */
const parametersOf = (query: Schema.Top | undefined): ReadonlyArray<string> =>
  query !== undefined && SchemaAST.isObjects(query.ast)
    ? query.ast.propertySignatures.map(({ name }) => String(name))
    : []
