/**
 * The handlers of the routes: each calls the service, and gives its failures as answers.
 */
import type { BrokerError, EventBusError, Replay } from "@eventbus/core"
import { ByteSize, Clock, Effect, Layer } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import type { AdminApi } from "../AdminApi.ts"
import { ClusterFailed, InvalidRequest, type ParameterIssue, UnreadableBody } from "../AdminError.ts"
import { EventBusAdmin } from "../EventBusAdmin.ts"
import { allowed, cutoffOf } from "./parameters.ts"

export const layer = (api: AdminApi) => Layer.merge(bindings(api), deadLetters(api))

const bindings = (api: AdminApi) =>
  HttpApiBuilder.group(
    api,
    "bindings",
    Effect.fnUntraced(function* (handlers) {
      const admin = yield* EventBusAdmin
      return handlers
        .handleRaw("register", ({ request }) => Effect.flatMap(jsonText(request), admin.registerJson))
        .handleAll({
          list: () => admin.list,
          get: ({ params }) => admin.get(params.name),
          unregister: ({ params }) => admin.unregister(params.name),
          start: ({ params }) => admin.start(params.name),
          stop: ({ params }) => admin.stop(params.name),
          pause: ({ params, query }) => admin.pause(params.name, query),
          resume: ({ params, query }) => admin.resume(params.name, query),
          health: () => admin.health
        })
    })
  )

const deadLetters = (api: AdminApi) =>
  HttpApiBuilder.group(
    api,
    "deadLetters",
    Effect.fnUntraced(function* (handlers) {
      const admin = yield* EventBusAdmin
      return handlers.handleAll({
        replay: ({ params: { name }, query: { count, from, to } }) => {
          if (count !== undefined && from === undefined && to === undefined) return onCluster(admin.replay(name, count))
          if (count === undefined && from !== undefined && to !== undefined && from < to)
            return onCluster(admin.replayWindow(name, from, to))
          return Effect.fail(new InvalidRequest({ issues: replayIssues({ count, from, to }) }))
        },
        replayToTier: ({ params, query }) => onCluster(admin.replayToTier(params.name, query.tier, query.count)),
        stats: ({ params }) => onCluster(admin.stats(params.name)),
        purge: ({ params, query }) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) =>
            onCluster(admin.purge(params.name, cutoffOf(query.olderThan, now)))
          )
      })
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

const maxBytes = 1024 * 1024

const jsonText = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<string, UnreadableBody> => {
  const type = request.headers["content-type"] ?? "application/json"
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type))
    return Effect.fail(new UnreadableBody({ reason: "its content type is not application/json" }))
  const encoding = request.headers["content-encoding"] ?? "identity"
  if (encoding.toLowerCase() !== "identity")
    return Effect.fail(new UnreadableBody({ reason: `it is encoded as ${JSON.stringify(encoding)}; send it as it is` }))
  return request.text.pipe(
    Effect.provideService(HttpServerRequest.MaxBodySize, ByteSize.fromInputUnsafe(maxBytes)),
    Effect.mapError(() => new UnreadableBody({ reason: "it cannot be read, or is larger than 1 MiB" }))
  )
}

/** The failures of commands on dead letters that are not the cluster's. */
type Own =
  | EventBusError.BindingNotFound
  | EventBusError.AmbiguousBinding
  | Replay.InvalidArgument
  | Replay.UnknownTier
  | Replay.NotPurgeable
  | Replay.ReplayRunning
  | Replay.ReplayTakenOver
  | Replay.ForeignDeadLetters

const ownTags: ReadonlySet<string> = new Set<Own["_tag"]>([
  "BindingNotFound",
  "AmbiguousBinding",
  "InvalidArgument",
  "UnknownTier",
  "NotPurgeable",
  "ReplayRunning",
  "ReplayTakenOver",
  "ForeignDeadLetters"
])

/** All failures of the cluster are one kind of answer. */
const onCluster = <A, E extends Own | BrokerError.BrokerError>(
  effect: Effect.Effect<A, E>
): Effect.Effect<A, Extract<E, Own> | ClusterFailed> =>
  Effect.mapError(effect, (error) =>
    isOwn(error) ? error : new ClusterFailed({ error: error._tag, detail: error.message })
  )

const isOwn = <E extends Own | BrokerError.BrokerError>(error: E): error is Extract<E, Own> => ownTags.has(error._tag)
