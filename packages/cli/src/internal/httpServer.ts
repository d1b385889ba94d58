/**
 * Health, metrics and the admin API beside the bindings of `eventbus run`. Only `--http` loads this module: it takes as long to load as all others.
 */
import * as AdminServer from "@eventbus/admin/AdminServer"
import * as EventBusAdmin from "@eventbus/admin/EventBusAdmin"
import type { Broker, EventBusConnector } from "@eventbus/core"
import * as Prometheus from "@eventbus/observability/Prometheus"
import * as Effect from "effect/Effect"
import { ServeError } from "effect/http/HttpServerError"
import * as Layer from "effect/Layer"
import { type CommandFailed, refuse } from "./failures.ts"

/** The bindings inside of a server. Without an authorizer it answers anybody's probes, and lets only callers on this machine see more. */
export const around = <E, R>(
  bindings: Layer.Layer<EventBusConnector.EventBusConnector, E, R | Broker.Broker>,
  port: number
): Layer.Layer<EventBusConnector.EventBusConnector, E | CommandFailed, R | Broker.Broker> =>
  AdminServer.layer(EventBusAdmin.layer().pipe(Layer.provideMerge(bindings)), {
    port,
    metrics: Prometheus.exposition
  }).pipe(orRefused(`--http ${port}`))

/** Names the flag in front of the reason why a server cannot listen. */
export const orRefused =
  (flag: string) =>
  <A, E, R>(server: Layer.Layer<A, E | ServeError, R>): Layer.Layer<A, E | CommandFailed, R> =>
    Layer.catch(server, (error) => {
      const failure: Effect.Effect<never, E | CommandFailed> =
        error instanceof ServeError ? refuse(`${flag}: ${reasonOf(error)}`) : Effect.fail(error)
      return Layer.effectContext(failure)
    })

const reasonOf = ({ cause }: ServeError): string => (cause instanceof Error ? cause.message : String(cause))
