/** What the outbox counts. The names are the seed's; an exporter to Effect's `Metric` is here, other systems implement the interface. */
import { Context, Effect, Layer, Metric } from "effect"

/** Called on the hot path: implementations return at once and never throw. */
export interface MetricsExporter {
  readonly incrementHotEnqueued: () => void
  readonly incrementHotDropped: () => void
  readonly incrementColdEnqueued: () => void
  readonly incrementDispatchSuccess: () => void
  readonly incrementDispatchFailure: () => void
  readonly incrementDispatchDead: () => void
  readonly recordQueueDepths: (hotDepth: number, coldDepth: number) => void
  readonly recordOldestLagMs: (lagMillis: number) => void
}

const ignore = () => {}

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

/** The exporter of the outbox components in this context. Default `NOOP`. */
export const Current = Context.Reference<MetricsExporter>("@eventbus/outbox/MetricsExporter", {
  defaultValue: () => noop
})

const counters = {
  incrementHotEnqueued: ["enqueue.hot", "Events enqueued via the hot path"],
  incrementHotDropped: ["enqueue.hot.dropped", "Events dropped because the hot queue was full"],
  incrementColdEnqueued: ["enqueue.cold", "Events enqueued via the poller"],
  incrementDispatchSuccess: ["dispatch.success", "Events delivered"],
  incrementDispatchFailure: ["dispatch.failure", "Failed deliveries that will be retried"],
  incrementDispatchDead: ["dispatch.dead", "Events moved to DEAD"]
} as const

/**
 * Counters and gauges of Effect's `Metric`, named `{prefix}.enqueue.hot` and so on. Two outboxes of one process need two prefixes.
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
      recordQueueDepths: (hot, cold) => {
        hotDepth(hot)
        coldDepth(cold)
      },
      recordOldestLagMs: gauge("lag.oldest.ms", "Age of the oldest event of the last poll in milliseconds")
    }
  })

/** Makes the exporter current for the components built under this layer. */
export const layer = (prefix?: string): Layer.Layer<never> => Layer.effect(Current, make(prefix))
