/**
 * Exports traces, metrics and logs to an OpenTelemetry collector, by OTLP over HTTP with OpenTelemetry's SDK. Spans of other libraries in the process that
 * use OpenTelemetry's API are in the same traces.
 */
import * as NodeSdk from "@effect/opentelemetry/NodeSdk"
import type * as Resource from "@effect/opentelemetry/Resource"
import { Kinds, Ranges, Tracing } from "@eventbus/core"
import { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-http"
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http"
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http"
import { BatchLogRecordProcessor } from "@opentelemetry/sdk-logs"
import { PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics"
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base"
import * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

/** A kind of telemetry. */
export type Signal = "traces" | "metrics" | "logs"

/** The signals to export, and their destination. */
export interface Options extends Partial<Tracing.Options> {
  /** The resource's `service.name`. */
  readonly serviceName: string
  /** The resource's `service.version`. Default none. */
  readonly serviceVersion?: string
  /** More attributes of the resource, such as `deployment.environment.name`. Default none. */
  readonly attributes?: Readonly<Record<string, string | number | boolean>>
  /**
   * The collector's OTLP/HTTP receiver, such as `http://collector:4318`. Each signal goes to `/v1/{signal}` below it. Default: the environment variable
   * `OTEL_EXPORTER_OTLP_ENDPOINT`, or else `http://localhost:4318`.
   */
  readonly url?: string
  /** Headers of every request. Pass secrets as `Redacted`. Default none. */
  readonly headers?: Readonly<Record<string, string | Redacted.Redacted<string>>>
  /** How often metrics are sent. Default 1 minute; at least 1 second. */
  readonly metricsInterval?: Duration.Input
  /** The signals to export. Default: all three. */
  readonly signals?: ReadonlyArray<Signal>
  /** Longest time that closing the layer waits until unsent data is sent. Default 3 seconds. */
  readonly shutdownTimeout?: Duration.Input
}

/** A header may be a secret. */
const header = Kinds.hidden(
  "a text, or a Redacted with a text in it",
  (value) => typeof (Redacted.isRedacted(value) ? Redacted.value(value) : value) === "string"
)

const attribute = Kinds.make("a text, a number, true or false", (value) =>
  ["string", "number", "boolean"].includes(typeof value)
)

const kinds = Kinds.section(
  {
    serviceVersion: Kinds.string,
    attributes: Kinds.recordOf(attribute),
    url: Kinds.httpUrl,
    headers: Kinds.recordOf(header),
    metricsInterval: Ranges.clients.metricsInterval,
    signals: Kinds.listOf(Kinds.oneOf(["traces", "metrics", "logs"]), "a list of signals"),
    shutdownTimeout: Ranges.clients.shutdownTimeout
  },
  { serviceName: Kinds.name }
)

/**
 * Exports until its scope closes, and then sends what is left. While the collector is unreachable, data is lost and the program goes on. Log lines are also
 * written by the loggers that were there before. Throws `ConfigurationValidation` for options of another kind, which shows no header.
 */
export const layer = (options: Options): Layer.Layer<Resource.Resource> => {
  Kinds.refuse(kinds("OpenTelemetry", options))
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
