/**
 * The program's metrics in Prometheus's text exposition format 0.0.4: those of the connector and all others in Effect's registry.
 *
 * Names follow Prometheus's conventions. Dots become underscores; the connector's counters end in `_total` and its times in `_seconds`. So
 * `eventbus.processing.duration` becomes `eventbus_processing_duration_seconds`.
 */
import { Metrics } from "@eventbus/core"
import type * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import type * as HttpServer from "effect/http/HttpServer"
import type * as Layer from "effect/Layer"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"

/** How metrics are served. */
export interface Options {
  /** Path of the metrics. Default `/metrics`. */
  readonly path?: HttpRouter.PathInput
}

/** The Prometheus name of one of the connector's metrics. A histogram's series add `_bucket`, `_sum` and `_count`. */
export const nameOf = ({ name, kind, unit }: Metrics.Definition): string =>
  `${name.replaceAll(".", "_")}${unit === "s" ? "_seconds" : ""}${kind === "counter" ? "_total" : ""}`

const names = new Map(Metrics.all.map((definition) => [definition.name, nameOf(definition)]))

const metricNameMapper = (name: string): string => names.get(name) ?? name

/** All metrics, with their current values. */
export const exposition: Effect.Effect<string> = PrometheusMetrics.format({ metricNameMapper })

/** Serves `GET /metrics` on the program's router. */
export const layerRoute = ({ path = "/metrics" }: Options = {}): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  PrometheusMetrics.layerHttp({ metricNameMapper, path })

/** Serves `GET /metrics` on the `HttpServer` of the context. */
export const layer = (options?: Options): Layer.Layer<never, never, HttpServer.HttpServer> =>
  HttpRouter.serve(layerRoute(options), { disableLogger: true, disableListenLog: true })
