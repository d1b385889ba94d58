/**
 * Answers for requests that no handler answers: no such route, and defects. Nothing of a defect is shown; the log has it.
 */
import { Cause, Effect } from "effect"
import { HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { AdminApi } from "../AdminApi.ts"

const answer = (status: number, _tag: string, message: string, headers: Record<string, string> = {}) =>
  HttpServerResponse.jsonUnsafe({ _tag, message }, { status, headers })

/** 405 with the methods of a path that is one, else 404. */
export const noRoute = (
  api: AdminApi,
  { method, originalUrl }: HttpServerRequest.HttpServerRequest
): HttpServerResponse.HttpServerResponse => {
  const path = pathOf(originalUrl)
  const methods = Object.values(api.groups)
    .flatMap(
      ({ endpoints }): ReadonlyArray<{ readonly method: string; readonly path: string }> => Object.values(endpoints)
    )
    .filter((endpoint) => matches(endpoint.path, path))
    .map((endpoint) => endpoint.method)
  if (methods.length === 0) return notFound(path)
  const allow = methods.sort().join(", ")
  return answer(405, "MethodNotAllowed", `${path} takes ${allow}, not ${method}.`, { allow })
}

const notFound = (path: string): HttpServerResponse.HttpServerResponse =>
  answer(404, "RouteNotFound", `There is no route ${path}. The paths are in openapi.json.`)

/** The path of a URL, which may be an absolute one. */
export const pathOf = (url: string): string =>
  URL.canParse(url, "http://localhost") ? new URL(url, "http://localhost").pathname : url

const matches = (pattern: string, path: string): boolean => {
  const parts = pattern.split("/")
  const given = path.split("/")
  return parts.length === given.length && parts.every((part, index) => part.startsWith(":") || part === given[index])
}

/** A defect is logged, and its answer says nothing of it: its text may hold a secret. */
export const asAnswers = <E, R>(
  respond: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R> =>
  Effect.catchCauseIf(
    respond,
    (cause) => Cause.hasDies(cause),
    (cause) =>
      Effect.as(
        Effect.logError("A request of the admin API failed", cause),
        answer(
          500,
          "InternalError",
          "The request failed for a reason that is not yours. The log of the process says why."
        )
      )
  )

/** A router that has no route for a request. */
export const orNotFound = <E, R>(
  respond: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
  Effect.catchIf(
    respond,
    (error) => HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound",
    () => Effect.map(HttpServerRequest.HttpServerRequest, ({ originalUrl }) => notFound(pathOf(originalUrl)))
  )
