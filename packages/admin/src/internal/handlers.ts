/**
 * The handlers of the routes: each calls the service, and gives its failures as answers.
 */
import { IncomingMessage, type ServerResponse } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Settings } from "@eventbus/config"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { AdminApi } from "../AdminApi.ts"
import { InvalidRequest, type ParameterIssue } from "../AdminError.ts"
import { EventBusAdmin } from "../EventBusAdmin.ts"
import * as BindingCommands from "./fleet/bindingCommands.ts"
import * as HeldHandlers from "./held/heldHandlers.ts"
import * as LetterHandlers from "./letterHandlers.ts"
import { Caller, payloadView } from "./middlewares.ts"
import * as OutboxHandlers from "./outbox/outboxHandlers.ts"
import * as ParkedHandlers from "./parked/parkedHandlers.ts"
import { allowed } from "./requests/parameters.ts"
import { jsonText, onCluster, parsed } from "./requests/requests.ts"
import { kindOf } from "./requests/selectionBody.ts"
import * as RunHandlers from "./runs/runHandlers.ts"
import * as StateStream from "./stateStream.ts"
import * as StuckCallers from "./stuckCallers.ts"

export const layer = (api: AdminApi) =>
  Layer.mergeAll(
    bindings(api),
    HeldHandlers.layer(api),
    ParkedHandlers.layer(api),
    deadLetters(api),
    LetterHandlers.layer(api),
    RunHandlers.layer(api),
    OutboxHandlers.layer(api),
    audit(api)
  )

const bindings = (api: AdminApi) =>
  HttpApiBuilder.group(
    api,
    "bindings",
    Effect.fnUntraced(function* (handlers) {
      const admin = yield* EventBusAdmin
      const openStream = StateStream.make(admin)
      return handlers
        .handleRaw("register", ({ request }) =>
          Effect.gen(function* () {
            const text = yield* jsonText(request)
            const { tell } = yield* Caller
            const body = Result.getOrUndefined(parsed(text))
            if (Predicate.hasProperty(body, "name") && typeof body.name === "string")
              yield* tell({ binding: body.name })
            return yield* Effect.tap(admin.registerJson(text), ({ key }) => tell({ binding: key }))
          })
        )
        .handleRaw("stream", ({ headers, request }) =>
          Effect.sync(() => {
            // Of the server of its own. `AdminWeb` gives a `Request`, and has the socket itself.
            if (request.source instanceof IncomingMessage) StuckCallers.end(responseTo(request))
            return HttpServerResponse.stream(openStream(headers["last-event-id"]), streamOptions)
          })
        )
        .handleRaw("start", BindingCommands.make(admin, "start"))
        .handleRaw("stop", BindingCommands.make(admin, "stop"))
        .handleRaw("pause", BindingCommands.make(admin, "pause"))
        .handleRaw("resume", BindingCommands.make(admin, "resume"))
        .handleAll({
          list: ({ query }) =>
            query.messages === undefined
              ? admin.list
              : Effect.flatMap(payloadView, ({ payload }) => (payload ? admin.listWithMessages : admin.list)),
          get: ({ params }) => admin.get(params.name),
          unregister: ({ params }) => admin.unregister(params.name),
          fleet: () => onCluster(admin.fleet),
          health: () => admin.health,
          permissions: ({ params }) =>
            Effect.gen(function* () {
              const { name, permissions: asked } = yield* Caller
              const [names, permissions] = yield* Effect.all([admin.transforms(params.name), asked])
              const transforms = permissions.includes("transform") ? names : []
              return { caller: name, permissions, hasFleet: admin.hasFleet, transforms }
            })
        })
    })
  )

const responseTo = (request: HttpServerRequest.HttpServerRequest): ServerResponse =>
  NodeHttpServerRequest.toServerResponse(request) as ServerResponse

/** Proxies such as nginx would keep events back otherwise. */
const streamOptions = {
  contentType: "text/event-stream",
  headers: { "cache-control": "no-store", "x-accel-buffering": "no" }
}

const deadLetters = (api: AdminApi) =>
  HttpApiBuilder.group(
    api,
    "deadLetters",
    Effect.fnUntraced(function* (handlers) {
      const admin = yield* EventBusAdmin
      return handlers.handleAll({
        replay: ({ params: { name }, query: { count, from, to, topic } }) => {
          const letters = admin.ofTopic(topic)
          if (count !== undefined && from === undefined && to === undefined)
            return onCluster(letters.replay(name, count))
          if (count === undefined && from !== undefined && to !== undefined && from < to)
            return onCluster(letters.replayWindow(name, from, to))
          return Effect.fail(new InvalidRequest({ issues: replayIssues({ count, from, to }) }))
        },
        replayToTier: ({ params, query: { tier, count, topic } }) =>
          onCluster(admin.ofTopic(topic).replayToTier(params.name, tier, count)),
        stats: ({ params, query: { topic } }) => onCluster(admin.ofTopic(topic).stats(params.name)),
        purge: ({ params, query: { olderThan, topic } }) =>
          Effect.gen(function* () {
            const before = Settings.parseCutoff(olderThan, yield* Clock.currentTimeMillis)
            if (!Number.isNaN(before)) return yield* onCluster(admin.ofTopic(topic).purge(params.name, before))
            const issue = { path: "olderThan", found: kindOf(olderThan), allowed: allowed.olderThan }
            return yield* new InvalidRequest({ issues: [issue] })
          })
      })
    })
  )

const audit = (api: AdminApi) =>
  HttpApiBuilder.group(
    api,
    "audit",
    Effect.fnUntraced(function* (handlers) {
      const admin = yield* EventBusAdmin
      /** A plain name is that of bindings of several clusters: the guard has let the caller see those of one. */
      const keyOf = (name: string) => Effect.catch(admin.keyOf(name), () => Effect.succeed(name))
      return handlers.handle("audit", ({ query: { after, binding, ...query } }) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          const page = admin.audit({
            ...query,
            ...(binding === undefined ? {} : { binding: yield* keyOf(binding) }),
            ...(after === undefined ? {} : { afterMillis: Settings.parsePast(after, now) })
          })
          return yield* onCluster(page)
        })
      )
    })
  )

interface Window {
  readonly count: number | undefined
  readonly from: number | undefined
  readonly to: number | undefined
}

/** A replay is by count, or by a window that has both ends. */
const replayIssues = ({ count, from, to }: Window): ReadonlyArray<ParameterIssue> => {
  const issue = (path: string, found: string, allowed: string): ParameterIssue => ({ path, found, allowed })
  if (from === undefined && to === undefined)
    return [issue("count", "nothing", `${allowed.count}; or from and to in its stead`)]
  return [
    ...(count === undefined ? [] : [issue("count", String(count), "either count, or from and to")]),
    ...(from === undefined ? [issue("from", "nothing", allowed.from)] : []),
    ...(to === undefined || (from !== undefined && from >= to)
      ? [issue("to", to === undefined ? "nothing" : new Date(to).toISOString(), allowed.to)]
      : [])
  ]
}
