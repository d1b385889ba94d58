/**
 * Answers for requests that no handler answers: no such route, and defects. Nothing of a defect is shown; the log has it.
 */
import { LogLine } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerError from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { AdminApi } from "../AdminApi.ts"

const answer = (status: number, _tag: string, message: string, headers: Record<string, string> = {}) =>
  HttpServerResponse.jsonUnsafe({ _tag, message }, { status, headers })

interface Route {
  readonly method: string
  readonly path: string
}

/** 405 with the methods of a path that is one, else 404. `pages`: the paths beside the API that take GET. */
export const noRoute = (
  api: AdminApi,
  pages: ReadonlyArray<string>,
  { method, originalUrl }: HttpServerRequest.HttpServerRequest
): HttpServerResponse.HttpServerResponse => {
  const path = pathOf(originalUrl)
  const methods = Object.values(api.groups)
    .flatMap(({ endpoints }): ReadonlyArray<Route> => Object.values(endpoints))
    .concat(pages.map((page) => ({ method: "GET", path: page })))
    .filter((endpoint) => matches(endpoint.path, path))
    .map((endpoint) => endpoint.method)
  if (methods.length === 0 || isAmbiguous(path)) return notFound(path)
  if (methods.includes(method))
    return answer(404, "RouteNotFound", "A part of the path is longer than 1024 characters.")
  return methodNotAllowed(path, method, methods.sort().join(", "))
}

/** 405. */
export const methodNotAllowed = (path: string, method: string, allow: string): HttpServerResponse.HttpServerResponse =>
  answer(405, "MethodNotAllowed", `${path} takes ${allow}, not ${method}.`, { allow })

/** 404. */
export const notFound = (path: string): HttpServerResponse.HttpServerResponse =>
  answer(404, "RouteNotFound", `There is no route ${path}. The paths are in openapi.json.`)

/** The path of a URL, which may be an absolute one, as it was sent. */
export const pathOf = (url: string): string => url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, "").replace(/[?#].*$/s, "")

/** Whether a path can be read as another one, which a rule in front of the API would not recognise: with `..`, an empty segment, or a backslash. */
export const isAmbiguous = (path: string): boolean => {
  const [, ...segments] = path.split("/")
  const isHarmless = (segment: string, index: number) =>
    segment === "" ? index === segments.length - 1 : !/^(?:\.|%2e)+$/i.test(segment)
  return path.includes("\\") || !segments.every(isHarmless)
}

const matches = (pattern: string, path: string): boolean => {
  const parts = pattern.split("/")
  const given = path.split("/")
  return parts.length === given.length && parts.every((part, index) => part.startsWith(":") || part === given[index])
}

/** The router takes other spellings of a path too, such as `/EVENTBUS` and `//eventbus`, which a rule in front of the API would not recognise. They are no routes. */
export const onlyAsSpelled = <E, R>(
  respond: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
): Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  E,
  R | HttpServerRequest.HttpServerRequest | HttpRouter.RouteContext
> =>
  Effect.gen(function* () {
    const { route } = yield* HttpRouter.RouteContext
    const path = pathOf((yield* HttpServerRequest.HttpServerRequest).originalUrl)
    return route.path.endsWith("*") || matches(route.path, path) ? yield* respond : notFound(path)
  })

/** 500. */
export const internalError = (): HttpServerResponse.HttpServerResponse =>
  answer(500, "InternalError", "The request failed for a reason that is not yours. The log of the process says why.")

/** A defect is logged, and its answer says nothing of it: its text may hold a secret. */
export const asAnswers = <E, R>(
  respond: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R> =>
  Effect.catchCauseIf(
    respond,
    (cause) => Cause.hasDies(cause),
    (cause) => Effect.as(LogLine.error("A request of the admin API failed", cause), internalError())
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
