/**
 * Turns everything that the schemas refuse in a request into one answer with all issues and their paths.
 */
import { Effect, Layer, type SchemaIssue } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { HttpApiMiddleware } from "effect/http-api"
import { RefusedParameters } from "../AdminApi.ts"
import { InvalidRequest, type ParameterIssue } from "../AdminError.ts"
import { allowed } from "./parameters.ts"

type Input = Readonly<Record<string, unknown>>

export const layer: Layer.Layer<RefusedParameters> = HttpApiMiddleware.layerSchemaErrorTransform(
  RefusedParameters,
  Effect.fnUntraced(function* (error, { endpoint }) {
    // An answer that its schema refuses is our mistake, not the caller's.
    if (error.kind !== "Params" && error.kind !== "Query") return yield* Effect.die(error.cause)
    const input: Input = error.kind === "Params" ? yield* HttpRouter.params : yield* HttpServerRequest.ParsedSearchParams
    const known = parametersOf(endpoint.query)
    return yield* new InvalidRequest({ issues: problemsOf(error.cause.issue).map((problem) => issueOf(problem, input, known)) })
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
  if (isUnknown)
    return { path, found: "an unknown parameter", allowed: known.length === 0 ? "no parameter" : known.join(", ") }
  const found = Object.hasOwn(input, path) ? JSON.stringify(input[path]) : "nothing"
  return { path, found, allowed: path in allowed ? allowed[path as keyof typeof allowed] : "a value of its schema" }
}

const parametersOf = (query: { readonly ast: unknown } | undefined): ReadonlyArray<string> =>
  query !== undefined && "fields" in query ? Object.keys(query.fields as object) : []
