/**
 * The admin API on a port of its own, around the program: the server starts first and stops last. So it answers while the program starts and while it drains, when
 * reading still works, registrations are refused, and `/health/ready` says no (connector seed §4.11).
 *
 * ```ts
 * import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
 * import { AdminServer, EventBusAdmin } from "@eventbus/admin"
 * import { Layer } from "effect"
 *
 * declare const Main: Layer.Layer<EventBusAdmin.EventBusAdmin>
 *
 * NodeRuntime.runMain(Layer.launch(AdminServer.layer(Main, { port: 8080 })))
 * ```
 */

import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { LogLine } from "@eventbus/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import type * as HttpServerError from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as AdminRoutes from "./AdminRoutes.ts"
import { EventBusAdmin } from "./EventBusAdmin.ts"
import * as Failures from "./internal/failures.ts"
import * as OptionChecks from "./internal/optionChecks.ts"
import * as Paths from "./internal/paths.ts"
import * as StartingAnswer from "./internal/startingAnswer.ts"

/** The routes, and where the server listens. */
export interface Options extends AdminRoutes.Options {
  /** The port; 0 takes a free one, which `HttpServer` names. */
  readonly port: number
  /**
   * The address to listen on. Default: all addresses, so that the platform reaches the probes. Without an authorizer the admin API itself answers only callers on this machine
   * all the same.
   */
  readonly host?: string
}

type Answer = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  unknown,
  HttpServerRequest.HttpServerRequest | Scope.Scope
>

/** How long the server waits for open requests after the program has closed: for the answers that are on their way, and no longer for callers that say nothing. */
const graceTime = "2 seconds"

/** Builds the program inside of the server. Closing it closes the program first. Throws `ConfigurationValidation` for a port or a host that cannot be one. */
export const layer = <A, E, R>(
  program: Layer.Layer<A | EventBusAdmin, E, R>,
  options: Options
): Layer.Layer<A | EventBusAdmin | HttpServer.HttpServer, E | HttpServerError.ServeError, R> => {
  OptionChecks.checkServer(options)
  const { port, host, ...routes } = options
  return Layer.effectContext(
    Effect.gen(function* () {
      const server = yield* NodeHttpServer.make(() => createServer(), {
        ...(host === undefined ? { port } : { port, host }),
        gracefulShutdownTimeout: graceTime
      })
      let answer: Answer = starting(Paths.make(routes))
      yield* server.serve(Effect.suspend(() => answer))
      yield* LogLine.info(`Admin API listens on ${HttpServer.formatAddress(server.address)}`)
      const context = yield* Layer.build(program)
      const admin = Context.get(context, EventBusAdmin)
      answer = Failures.orNotFound(
        yield* HttpRouter.toHttpEffect(
          Layer.provide(AdminRoutes.layer(routes), Layer.succeed(EventBusAdmin, admin))
        ).pipe(Effect.provideService(HttpRouter.RouterConfig, { maxParamLength: 1_024 }))
      )
      return Context.add(context, HttpServer.HttpServer, server)
    })
  )
}

/** Before the program is built. */
const starting = (paths: Paths.Paths): Answer =>
  Effect.map(HttpServerRequest.HttpServerRequest, ({ originalUrl }) =>
    StartingAnswer.of(paths, Failures.pathOf(originalUrl))
  )
