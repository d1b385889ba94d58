/**
 * Traces, metrics and logs to an OpenTelemetry collector, by OTLP over HTTP with the SDK of OpenTelemetry. Spans of other libraries in the process that use its API
 * are in the same traces.
 */
import * as NodeSdk from "@effect/opentelemetry/NodeSdk"
import type * as Resource from "@effect/opentelemetry/Resource"
import { Tracing } from "@eventbus/core"
import { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-http"
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http"
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http"
import { BatchLogRecordProcessor } from "@opentelemetry/sdk-logs"
import { PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics"
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base"
import { Duration, Layer, Redacted } from "effect"

export type Signal = "traces" | "metrics" | "logs"

export interface Options extends Partial<Tracing.Options> {
  /** `service.name` of the resource. */
  readonly serviceName: string
  readonly serviceVersion?: string
  /** Further attributes of the resource, such as `deployment.environment.name`. */
  readonly attributes?: Readonly<Record<string, string | number | boolean>>
  /**
   * The collector's OTLP/HTTP receiver, such as `http://collector:4318`; a signal goes to `/v1/{signal}` below it. Default: as the environment says
   * (`OTEL_EXPORTER_OTLP_ENDPOINT`), else `http://localhost:4318`.
   */
  readonly url?: string
  /** Sent with every request. A secret is given as `Redacted`. */
  readonly headers?: Readonly<Record<string, string | Redacted.Redacted<string>>>
  /** How often metrics are sent. Default one minute, at least a second. */
  readonly metricsInterval?: Duration.Input
  /** What is sent. Default: all three. */
  readonly signals?: ReadonlyArray<Signal>
  /** How long the end of the program waits for what is still to be sent. Default 3 seconds. */
  readonly shutdownTimeout?: Duration.Input
}

/**
 * Sends until its scope closes, and what is left then. A collector that is away costs nothing but the data: the program goes on. Log lines are also written where they were
 * before.
 */
export const layer = (options: Options): Layer.Layer<Resource.Resource> => {
  const { signals = ["traces", "metrics", "logs"], shutdownTimeout = "3 seconds", sampleRatio, relation } = options
  const { serviceName, serviceVersion, attributes } = options
  const has = (signal: Signal) => signals.includes(signal)
  const sdk = NodeSdk.layer(() => ({
    resource: {
      serviceName,
      ...(serviceVersion === undefined ? {} : { serviceVersion }),
      ...(attributes === undefined ? {} : { attributes })
    },
    shutdownTimeout,
    loggerMergeWithExisting: true,
    spanProcessor: has("traces") ? [new BatchSpanProcessor(new OTLPTraceExporter(target(options, "traces")))] : [],
    metricReader: has("metrics") ? [metricReader(options)] : [],
    logRecordProcessor: has("logs")
      ? [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter(target(options, "logs")) })]
      : []
  }))
  const tracing = Tracing.layer({
    ...(sampleRatio === undefined ? {} : { sampleRatio }),
    ...(relation === undefined ? {} : { relation })
  })
  return Layer.merge(sdk, tracing)
}

const metricReader = (options: Options) =>
  new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter(target(options, "metrics")),
    exportIntervalMillis: Math.max(1_000, Duration.toMillis(options.metricsInterval ?? "1 minute"))
  })

const target = ({ url, headers = {} }: Options, signal: Signal) => ({
  ...(url === undefined ? {} : { url: `${url.replace(/\/+$/, "")}/v1/${signal}` }),
  headers: Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Redacted.isRedacted(value) ? Redacted.value(value) : value])
  )
})
