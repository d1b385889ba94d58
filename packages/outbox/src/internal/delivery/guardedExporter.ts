/** A metrics exporter inside the guard: a function of it that throws is noted, and changes nothing else. */
import { type MetricsExporter, noop } from "../../MetricsExporter.ts"
import type { Guard } from "../base/guard.ts"

type CounterName = { [K in keyof MetricsExporter]-?: K extends `increment${string}` ? K : never }[keyof MetricsExporter]

/** An exporter that cannot observe is told of each value instead, and of empty queues at the end. */
export interface GuardedExporter extends Required<MetricsExporter> {
  /** False for the exporter that exports nothing: then nobody need measure anything. */
  readonly isRead: boolean
}

/** The guarded exporter. It is called for every event, so a call makes no function. */
export const guardedExporter = (exporter: MetricsExporter, guard: Guard): GuardedExporter => {
  const count = (name: CounterName) => {
    const what = `metrics exporter's ${name}`
    return () => {
      try {
        guard.attend(what, exporter[name]?.())
      } catch (error) {
        guard.threw(what, error)
      }
    }
  }
  const observesQueues = exporter.observeQueueDepths !== undefined
  const observesTable = exporter.observeTable !== undefined

  const recordQueueDepths = (hot: number, cold: number) => {
    if (observesQueues) return
    try {
      guard.attend("metrics exporter's recordQueueDepths", exporter.recordQueueDepths(hot, cold))
    } catch (error) {
      guard.threw("metrics exporter's recordQueueDepths", error)
    }
  }

  /** Begins gauges, and answers the function that ends them. */
  const observed = (name: "observeQueueDepths" | "observeTable", begin: () => (() => void) | undefined) => {
    const what = `metrics exporter's ${name}`
    const end = guard.call(what, begin, (result) => typeof result === "function", undefined)
    return () => guard.run(what, end)
  }

  return {
    isRead: exporter !== noop,
    incrementHotEnqueued: count("incrementHotEnqueued"),
    incrementHotDropped: count("incrementHotDropped"),
    incrementColdEnqueued: count("incrementColdEnqueued"),
    incrementDispatchSuccess: count("incrementDispatchSuccess"),
    incrementDispatchFailure: count("incrementDispatchFailure"),
    incrementDispatchDead: count("incrementDispatchDead"),
    incrementFiberDeath: count("incrementFiberDeath"),
    recordQueueDepths,
    recordOldestLagMs: (lag) => {
      if (observesTable) return
      try {
        guard.attend("metrics exporter's recordOldestLagMs", exporter.recordOldestLagMs(lag))
      } catch (error) {
        guard.threw("metrics exporter's recordOldestLagMs", error)
      }
    },
    observeQueueDepths: (read) =>
      observesQueues
        ? observed("observeQueueDepths", () => exporter.observeQueueDepths?.(read))
        : () => recordQueueDepths(0, 0),
    observeTable: (read) => (observesTable ? observed("observeTable", () => exporter.observeTable?.(read)) : () => {})
  }
}
