/**
 * The admin API as routes of the program's router (connector seed §4.14), with probes for Kubernetes and metrics for Prometheus beside them.
 *
 * ```ts
 * import { AdminRoutes, EventBusAdmin } from "@eventbus/admin"
 * import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
 * import { Layer } from "effect"
 * import { HttpRouter } from "effect/http"
 * import { createServer } from "node:http"
 *
 * declare const Main: Layer.Layer<EventBusAdmin.EventBusAdmin>
 *
 * export const Server = HttpRouter.serve(AdminRoutes.layer()).pipe(
 *   Layer.provide(NodeHttpServer.layer(createServer, { port: 8080 })),
 *   Layer.provide(Main)
 * )
 * ```
 */
import { UserFunction } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Layer from "effect/Layer"
import * as AdminApi from "./AdminApi.ts"
import type { Authorizer } from "./Authorizer.ts"
import { EventBusAdmin } from "./EventBusAdmin.ts"
import * as ConsoleRoute from "./internal/console/consoleRoute.ts"
import * as Failures from "./internal/failures.ts"
import * as Guard from "./internal/guard.ts"
import * as Handlers from "./internal/handlers.ts"
import * as KeyedRequests from "./internal/idempotency/keyedRequests.ts"
import * as OwnFiber from "./internal/ownFiber.ts"
import * as Paths from "./internal/paths.ts"
import * as RefusedParameters from "./internal/requests/refusedParameters.ts"

/** Where the routes are, and who may call them. */
export interface Options {
  /** In front of the paths of the admin API. Default `/eventbus`. */
  readonly prefix?: `/${string}`
  /**
   * In front of `/health/live`, `/health/ready` and `/metrics`, which need no credentials and name no binding, but for the labels of metrics. Default: nothing, so that they
   * are at the root.
   */
  readonly probes?: `/${string}`
  /** Decides who may do what. Default: none; then the admin API answers only callers on this machine, and changes nothing. */
  readonly authorizer?: Authorizer
  /** Whether the API changes nothing, whatever the authorizer says. Default false. */
  readonly readOnly?: boolean
  /** Whether `{prefix}/console` shows the console, whose page holds nothing of the program. Default true. */
  readonly console?: boolean
  /** The text of `/metrics`, such as `Prometheus.exposition` of `@eventbus/observability`. Default: there is no such route. */
  readonly metrics?: Effect.Effect<string>
}

/** Adds the routes. A router of your own should take path parameters of more than 100 characters (`maxParamLength`), since names may be longer. */
export const layer = (options: Options = {}): Layer.Layer<never, never, EventBusAdmin | HttpRouter.HttpRouter> => {
  const paths = Paths.make(options)
  const api = AdminApi.make(paths.prefix)
  const routes = HttpApiBuilder.layer(api, { openapiPath: `${paths.prefix}/openapi.json` }).pipe(
    Layer.provide(Handlers.layer(api)),
    Layer.provide(Guard.layer({ authorizer: options.authorizer, readOnly: options.readOnly ?? false })),
    Layer.provide(RefusedParameters.layer),
    Layer.provide(KeyedRequests.layer),
    Layer.provide(HttpServer.layerServices)
  )
  const consolePath = `${paths.prefix}/console` as const
  const hasConsole = options.console !== false
  const pages = [`${paths.prefix}/openapi.json`, ...(hasConsole ? [consolePath] : [])]
  const others = (["GET", ...notGet] as const).map((method) =>
    HttpRouter.add(method, `${paths.prefix}/*`, (request) => Effect.succeed(Failures.noRoute(api, pages, request)))
  )
  const page = hasConsole ? ConsoleRoute.layer(consolePath) : Layer.empty
  return Layer.mergeAll(routes, page, ...others, probes(paths, options.metrics)).pipe(
    Layer.provide(HttpRouter.middleware((respond) => Failures.asAnswers(Failures.onlyAsSpelled(respond))).layer)
  )
}

/** Without HEAD, which the router answers by the routes of GET. */
const notGet = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const

const probes = (paths: Paths.Paths, metrics: Effect.Effect<string> | undefined) =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const admin = yield* EventBusAdmin
      const probe = (is: "live" | "ready") =>
        Effect.map(admin.health, (health) =>
          HttpServerResponse.jsonUnsafe({ status: health[is] ? "UP" : "DOWN" }, { status: health[is] ? 200 : 503 })
        )
      for (const path of [paths.live, paths.ready, ...(metrics === undefined ? [] : [paths.metrics])]) {
        for (const method of notGet)
          yield* router.add(method, path, Effect.succeed(Failures.methodNotAllowed(path, method, "GET")))
      }
      yield* router.add("GET", paths.live, probe("live"))
      yield* router.add("GET", paths.ready, probe("ready"))
      if (metrics === undefined) return
      const contentType = "text/plain; version=0.0.4; charset=utf-8"
      yield* router.add(
        "GET",
        paths.metrics,
        Effect.map(OwnFiber.run(metricsText(metrics)), (text) => HttpServerResponse.text(text, { contentType }))
      )
    })
  )

/** A defect where it is no Effect, or gives no text, so that the log says so. */
const metricsText = (metrics: Effect.Effect<string>): Effect.Effect<string> =>
  Effect.filterOrElse(
    UserFunction.callEffect("metrics", () => metrics),
    (text) => typeof text === "string",
    (text) => Effect.die(new TypeError(`'metrics' gives no text: ${typeof text}`))
  )
