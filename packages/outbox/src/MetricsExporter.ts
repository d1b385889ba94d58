/**
 * The metrics of the outbox (outbox seed §15). `layer` exports them to Effect's `Metric`; an exporter to another system implements
 * `MetricsExporter`.
 */
import { Context, Effect, Layer, Metric } from "effect"

/** The counters and gauges of one outbox. They are called on the hot path: implementations return at once. One that throws is logged and shown in health. */
export interface MetricsExporter {
  /** An event entered the hot queue. */
  readonly incrementHotEnqueued: () => void
  /** An event did not enter the hot queue because it was full or closed. The poller delivers it. */
  readonly incrementHotDropped: () => void
  /** An event of the poller, or of an ordered relay, was taken into memory. */
  readonly incrementColdEnqueued: () => void
  /** A delivery succeeded. */
  readonly incrementDispatchSuccess: () => void
  /** A delivery failed and will be retried. */
  readonly incrementDispatchFailure: () => void
  /** An event was marked DEAD. */
  readonly incrementDispatchDead: () => void
  /** A long-lived fiber of the outbox died and was started again (ruling 86). Optional, since the seed's exporter lacks it. */
  readonly incrementFiberDeath?: () => void
  /** The number of events in each queue. An ordered relay has no hot queue, and reports its events in memory as the cold one. */
  readonly recordQueueDepths: (hotDepth: number, coldDepth: number) => void
  /** Age of the oldest event of the last read, in milliseconds; 0 when there was none. */
  readonly recordOldestLagMs: (lagMillis: number) => void
}

const ignore = () => {}

/** The exporter that exports nothing. */
export const noop: MetricsExporter = Object.freeze({
  incrementHotEnqueued: ignore,
  incrementHotDropped: ignore,
  incrementColdEnqueued: ignore,
  incrementDispatchSuccess: ignore,
  incrementDispatchFailure: ignore,
  incrementDispatchDead: ignore,
  recordQueueDepths: ignore,
  recordOldestLagMs: ignore
})

/** The exporter of the outbox components that are built in this context. Default `noop`. */
export const Current = Context.Reference<MetricsExporter>("@eventbus/outbox/MetricsExporter", {
  defaultValue: () => noop
})

const counters = {
  incrementHotEnqueued: ["enqueue.hot", "Events enqueued via the hot path"],
  incrementHotDropped: ["enqueue.hot.dropped", "Events dropped because the hot queue was full"],
  incrementColdEnqueued: ["enqueue.cold", "Events enqueued via the poller"],
  incrementDispatchSuccess: ["dispatch.success", "Events delivered"],
  incrementDispatchFailure: ["dispatch.failure", "Failed deliveries that will be retried"],
  incrementDispatchDead: ["dispatch.dead", "Events moved to DEAD"],
  incrementFiberDeath: ["fiber.deaths", "Long-lived fibers that died and were started again"]
} as const

/**
 * An exporter to Effect's `Metric`, with names such as `{prefix}.enqueue.hot` (outbox seed §15). Default prefix `outbox`. Two outboxes in
 * one process need two prefixes.
 */
export const make = (prefix = "outbox"): Effect.Effect<MetricsExporter> =>
  Effect.map(Effect.context<never>(), (context) => {
    const count = (key: keyof typeof counters) => {
      const [name, description] = counters[key]
      const metric = Metric.counter(`${prefix}.${name}`, { description, incremental: true })
      return () => metric.updateUnsafe(1, context)
    }
    const gauge = (name: string, description: string) => {
      const metric = Metric.gauge(`${prefix}.${name}`, { description })
      return (value: number) => metric.updateUnsafe(value, context)
    }
    const hotDepth = gauge("queue.hot.depth", "Events waiting in the hot queue")
    const coldDepth = gauge("queue.cold.depth", "Events waiting in the cold queue")
    return {
      incrementHotEnqueued: count("incrementHotEnqueued"),
      incrementHotDropped: count("incrementHotDropped"),
      incrementColdEnqueued: count("incrementColdEnqueued"),
      incrementDispatchSuccess: count("incrementDispatchSuccess"),
      incrementDispatchFailure: count("incrementDispatchFailure"),
      incrementDispatchDead: count("incrementDispatchDead"),
      incrementFiberDeath: count("incrementFiberDeath"),
      recordQueueDepths: (hot, cold) => {
        hotDepth(hot)
        coldDepth(cold)
      },
      recordOldestLagMs: gauge("lag.oldest.ms", "Age of the oldest event of the last poll in milliseconds")
    }
  })

/** Makes the exporter of `make` current for the components that are built under this layer. */
export const layer = (prefix?: string): Layer.Layer<never> => Layer.effect(Current, make(prefix))
