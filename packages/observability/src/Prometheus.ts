/**
 * The program's metrics for Prometheus, in its text exposition format 0.0.4: those of the connector and all others in Effect's registry.
 *
 * Names follow Prometheus: dots become underscores, counters of the connector end in `_total`, its times in `_seconds`: `eventbus.processing.duration` is
 * `eventbus_processing_duration_seconds`.
 */
import { Metrics } from "@eventbus/core"
import type { Effect, Layer } from "effect"
import { HttpRouter, type HttpServer } from "effect/http"
import { PrometheusMetrics } from "effect/observability"

export interface Options {
  /** Where the metrics are served. Default `/metrics`. */
  readonly path?: HttpRouter.PathInput
}

/** The name of a metric of the connector in Prometheus. A histogram has it with `_bucket`, `_sum` and `_count`. */
export const nameOf = ({ name, kind, unit }: Metrics.Definition): string =>
  `${name.replaceAll(".", "_")}${unit === "s" ? "_seconds" : ""}${kind === "counter" ? "_total" : ""}`

const names = new Map(Metrics.all.map((definition) => [definition.name, nameOf(definition)]))

const metricNameMapper = (name: string): string => names.get(name) ?? name

/** All metrics as they are now. */
export const exposition: Effect.Effect<string> = PrometheusMetrics.format({ metricNameMapper })

/** `GET /metrics` on a router of yours. */
export const layerRoute = ({ path = "/metrics" }: Options = {}): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  PrometheusMetrics.layerHttp({ metricNameMapper, path })

/** `GET /metrics` on a server of its own. */
export const layer = (options?: Options): Layer.Layer<never, never, HttpServer.HttpServer> =>
  HttpRouter.serve(layerRoute(options), { disableLogger: true, disableListenLog: true })
