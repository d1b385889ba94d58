/**
 * The admin API for other frameworks: a function from `Request` to `Response` (Hono, Next), and a listener for Node.js (Express, Fastify).
 *
 * ```ts
 * import { AdminWeb, Authorizer, EventBusAdmin } from "@eventbus/admin"
 * import { type Layer, ManagedRuntime, Redacted } from "effect"
 *
 * declare const Main: Layer.Layer<EventBusAdmin.EventBusAdmin>
 * declare const app: { readonly use: (listener: AdminWeb.AdminWeb["nodeListener"]) => void }
 *
 * const runtime = ManagedRuntime.make(Main)
 * const token = Redacted.make(process.env["ADMIN_TOKEN"] ?? "")
 * const authorizer = Authorizer.fromTokens([{ token, name: "on-call", permissions: ["view", "operate"] }])
 *
 * const web = await runtime.runPromise(AdminWeb.make({ authorizer }))
 * app.use(web.nodeListener)
 * ```
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Broker, EventBusConnector } from "@eventbus/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpRouter from "effect/http/HttpRouter"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as AdminRoutes from "./AdminRoutes.ts"
import * as EventBusAdmin from "./EventBusAdmin.ts"
import * as Failures from "./internal/failures.ts"
import * as NodeMessages from "./internal/nodeMessages.ts"
import * as Paths from "./internal/paths.ts"
import { PeerAddress } from "./internal/peerAddress.ts"
import * as StartingAnswer from "./internal/startingAnswer.ts"

export type { Options } from "./AdminRoutes.ts"

/** A request that a framework may have read already. */
export interface NodeRequest extends IncomingMessage {
  /** The body as the framework's parser left it. Default: it was not read. */
  readonly body?: unknown
  /** The whole URL, where the framework cuts `url`. Default: `url`. */
  readonly originalUrl?: string
}

/** The API as functions. They stay usable while the connector closes. */
export interface AdminWeb {
  /**
   * Answers a request; 404 for one that is none of its routes. Without an authorizer the API answers only callers on this machine, and a `Request` does not say where it comes
   * from: `peer.remoteAddress` is the address of the caller's socket.
   */
  readonly handler: (request: Request, peer?: { readonly remoteAddress?: string | undefined }) => Promise<Response>
  /** Answers a request of Node.js, also after its body was read. With `next`, as Express has it, requests for other paths go on to it. */
  readonly nodeListener: (request: NodeRequest, response: ServerResponse, next?: (error?: unknown) => void) => void
}

/** Makes the functions. They run in the fibers of the program: its loggers, clock and metrics. */
export const make = (options: AdminRoutes.Options = {}): Effect.Effect<AdminWeb, never, EventBusAdmin.EventBusAdmin> =>
  Effect.gen(function* () {
    const context = yield* Effect.context<EventBusAdmin.EventBusAdmin>()
    // The routes hold nothing that has to be released.
    const scope = yield* Scope.make()
    const routes: Layer.Layer<never, never, EventBusAdmin.EventBusAdmin | HttpRouter.HttpRouter> =
      AdminRoutes.layer(options)
    const router = yield* Scope.provide(HttpRouter.toHttpEffect(routes), scope).pipe(
      Effect.provideService(HttpRouter.RouterConfig, { maxParamLength: 1_024 })
    )
    const answer = HttpEffect.toWebHandlerWith<
      EventBusAdmin.EventBusAdmin,
      HttpServerRequest.HttpServerRequest | Scope.Scope
    >(context)(Failures.orNotFound(router))
    return webOf(Paths.make(options), (request, { remoteAddress } = {}) =>
      answer(request, Context.make(PeerAddress, remoteAddress))
    )
  })

/** The API of a bus of `@eventbus/node`, which is mounted before the bus starts. */
export interface AdminMount extends AdminWeb {
  /** The option `extension` of the bus. Until the bus has started, `/health/live` answers 200 and everything else 503. */
  readonly extension: Layer.Layer<never, never, EventBusConnector.EventBusConnector | Broker.Broker>
}

/**
 * Makes the functions for a program without Effect.
 *
 * ```ts
 * import { AdminWeb } from "@eventbus/admin"
 * import { createEventBus } from "@eventbus/node"
 *
 * declare const app: { readonly use: (listener: AdminWeb.AdminWeb["nodeListener"]) => void }
 *
 * const admin = AdminWeb.mount()
 * const bus = createEventBus({ kafka: { brokers: ["localhost:9092"] }, extension: admin.extension })
 * app.use(admin.nodeListener)
 * await bus.start()
 * ```
 */
export const mount = (options: AdminRoutes.Options = {}, admin: EventBusAdmin.Options<never> = {}): AdminMount => {
  const paths = Paths.make(options)
  let handler: AdminWeb["handler"] = async ({ url }) =>
    HttpServerResponse.toWeb(StartingAnswer.of(paths, Failures.pathOf(url)))
  const started = Effect.map(make(options), (web) => {
    handler = web.handler
  })
  return {
    ...webOf(paths, (request, peer) => handler(request, peer)),
    extension: Layer.effectDiscard(started).pipe(Layer.provide(EventBusAdmin.layer(admin)))
  }
}

const webOf = (paths: Paths.Paths, handler: AdminWeb["handler"]): AdminWeb => ({
  handler,
  nodeListener: (request, response, next) => {
    const path = Failures.pathOf(request.originalUrl ?? request.url ?? "/")
    const isAmbiguous = Failures.isAmbiguous(path)
    if (next !== undefined && (isAmbiguous || !paths.has(path))) next()
    else
      NodeMessages.respond(
        isAmbiguous ? async () => HttpServerResponse.toWeb(Failures.notFound(path)) : handler,
        request,
        response
      )
  }
})
