/**
 * A service that is seen from outside: metrics for Prometheus at http://localhost:9464/metrics, traces, metrics and logs to an OpenTelemetry collector, log lines as JSON.
 *
 *   node packages/examples/src/observed.ts
 *   METRICS_PORT=9464 OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 node packages/examples/src/observed.ts
 */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Binding, LogFormat, RetryPolicy, Serde } from "@eventbus/core"
import { OpenTelemetry, Prometheus } from "@eventbus/observability"
import { Config, Effect, Layer } from "effect"
import * as Kafka from "./kafka.ts"

const orders = Binding.make("orders", {
  topic: "orders",
  groupId: "billing",
  value: Serde.string,
  retry: RetryPolicy.blocking(),
  handler: ({ value }) => Effect.withSpan(Effect.log(`charging ${value}`), "charge")
})

const Bindings = Binding.layer(orders).pipe(
  Layer.provide(
    Kafka.layer("orders", [
      ["ann", "o-1"],
      ["bob", "o-2"]
    ])
  )
)

const Metrics = Prometheus.layer().pipe(
  Layer.provide(
    NodeHttpServer.layerConfig(
      createServer,
      Config.all({ port: Config.Port("METRICS_PORT").pipe(Config.withDefault(9464)) })
    )
  )
)

const Main = Layer.merge(Bindings, Metrics).pipe(
  Layer.provide(OpenTelemetry.layer({ serviceName: "billing", sampleRatio: 1 })),
  Layer.provide(LogFormat.layerJson)
)

NodeRuntime.runMain(Layer.launch(Main))
