/**
 * The metrics of the outbox (outbox seed §15). `layer` exports them to Effect's `Metric`; an exporter to another system implements
 * `MetricsExporter`.
 */
import { Kinds } from "@eventbus/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { refuse } from "./internal/base/options.ts"

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
  /** A delivery failed and will be retried, one that is postponed because its destination is down included. */
  readonly incrementDispatchFailure: () => void
  /** The outbox marked an event DEAD, and the mark is in the database. */
  readonly incrementDispatchDead: () => void
  /** A long-lived fiber of the outbox died and was started again (ruling 86). Optional, since the seed's exporter lacks it. */
  readonly incrementFiberDeath?: () => void
  /**
   * The number of events in each queue, whenever one changes, and 0 at the end. An ordered relay has no hot queue, and reports its events in memory as the cold
   * one. Not called on an exporter with `observeQueueDepths`.
   */
  readonly recordQueueDepths: (hotDepth: number, coldDepth: number) => void
  /**
   * Age of the oldest event that is not delivered, in milliseconds by the database's clock; 0 when there is none. Every five seconds, whether anything happens or
   * not, while the database answers. Not called on an exporter with `observeTable`.
   */
  readonly recordOldestLagMs: (lagMillis: number) => void
  /** Optional: gets a function that reads the queues at any moment, and answers the function that ends the gauges. For an exporter that reads when it is read. */
  readonly observeQueueDepths?: (read: () => QueueDepths) => () => void
  /** The same for the table, from the first answer of the database on. */
  readonly observeTable?: (read: () => TableFigures) => () => void
}

/** Events in memory. */
export interface QueueDepths {
  /** Events in the hot queue; 0 for an ordered relay. */
  readonly hot: number
  /** Events in the cold queue; all events in memory for an ordered relay. */
  readonly cold: number
}

/** The table as the database answered last, at most five seconds ago while it answers. */
export interface TableFigures {
  /** NEW and RETRY rows. */
  readonly pending: number
  /** DEAD rows. */
  readonly dead: number
  /** Age of the oldest NEW or RETRY row in milliseconds, due or not: as it was measured, and the time that has passed since. 0 when there is none. */
  readonly oldestLagMs: number
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
 * one process need two prefixes. Gauges are computed when they are read, and end with their outbox. Dies with `InvalidOutboxConfig` for a prefix that is no name.
 */
export const make = (prefix = "outbox"): Effect.Effect<MetricsExporter> =>
  Effect.map(Effect.context<never>(), (context) => {
    refuse("MetricsExporter", Kinds.name("prefix", prefix))
    const count = (key: keyof typeof counters) => {
      const [name, description] = counters[key]
      const metric = Metric.counter(`${prefix}.${name}`, { description, incremental: true })
      return () => metric.updateUnsafe(1, context)
    }
    const gauge = (name: string, description: string) => {
      const metric = Metric.gauge(`${prefix}.${name}`, { description })
      return {
        record: (value: number) => metric.updateUnsafe(value, context),
        observe: (read: () => number) =>
          Metric.registerUnsafe(metric, context, { get: () => ({ value: read() }), update: ignore, modify: ignore })
      }
    }
    const hotDepth = gauge("queue.hot.depth", "Events waiting in the hot queue")
    const coldDepth = gauge("queue.cold.depth", "Events waiting in the cold queue")
    const oldestLag = gauge("lag.oldest.ms", "Age of the oldest event that is not delivered, in milliseconds")
    const pending = gauge("pending", "Events that are not delivered: NEW and RETRY rows")
    const dead = gauge("dead", "Events that were given up: DEAD rows")
    return {
      incrementHotEnqueued: count("incrementHotEnqueued"),
      incrementHotDropped: count("incrementHotDropped"),
      incrementColdEnqueued: count("incrementColdEnqueued"),
      incrementDispatchSuccess: count("incrementDispatchSuccess"),
      incrementDispatchFailure: count("incrementDispatchFailure"),
      incrementDispatchDead: count("incrementDispatchDead"),
      incrementFiberDeath: count("incrementFiberDeath"),
      recordQueueDepths: (hot, cold) => {
        hotDepth.record(hot)
        coldDepth.record(cold)
      },
      recordOldestLagMs: oldestLag.record,
      observeQueueDepths: (read) => ended([hotDepth.observe(() => read().hot), coldDepth.observe(() => read().cold)]),
      observeTable: (read) =>
        ended([
          oldestLag.observe(() => read().oldestLagMs),
          pending.observe(() => read().pending),
          dead.observe(() => read().dead)
        ])
    }
  })

/** A function that ends all of these series. */
const ended = (series: ReadonlyArray<Metric.Registration>) => () => {
  for (const one of series) one.remove()
}

/** Makes the exporter of `make` current for the components that are built under this layer. */
export const layer = (prefix?: string): Layer.Layer<never> => Layer.effect(Current, make(prefix))
