export * as Alerts from "./Alerts.ts"
export * as OpenTelemetry from "./OpenTelemetry.ts"
export * as Prometheus from "./Prometheus.ts"
