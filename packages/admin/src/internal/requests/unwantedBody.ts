/**
 * Finds a body that its route does not take: the caller means something by it, and nothing would be done about that.
 */
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as Result from "effect/Result"
import type { ParameterIssue } from "../../AdminError.ts"
import { parsed, textOf } from "./requests.ts"
import { isRecord, kindOf, unknownKeys } from "./selectionBody.ts"

const allowed = "no body, or an empty object"

/** The issues of the body of a request to this route. HTTP gives a body of GET no meaning, so none is read. */
export const issuesOf = (
  endpoint: HttpApiEndpoint.Top
): Effect.Effect<ReadonlyArray<ParameterIssue>, never, HttpServerRequest.HttpServerRequest> =>
  endpoint.method === "GET" || endpoint.payload.size > 0
    ? Effect.succeed([])
    : HttpServerRequest.HttpServerRequest.pipe(
        Effect.flatMap(textOf),
        Effect.map(issuesOfText),
        // A larger one than any route reads.
        Effect.catch(({ reason }) => Effect.succeed([{ path: "", found: reason, allowed }]))
      )

const issuesOfText = (text: string): ReadonlyArray<ParameterIssue> => {
  if (text.trim() === "") return []
  const body = parsed(text)
  if (Result.isFailure(body)) return body.failure.map((issue) => ({ ...issue, allowed }))
  if (isRecord(body.success)) return unknownKeys(body.success, [])
  return [{ path: "", found: kindOf(body.success), allowed }]
}
