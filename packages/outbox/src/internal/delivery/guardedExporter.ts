/** A metrics exporter inside the guard: a function of it that throws is noted, and changes nothing else. */
import type { MetricsExporter } from "../../MetricsExporter.ts"
import type { Guard } from "../base/guard.ts"

type CounterName = { [K in keyof MetricsExporter]-?: K extends `increment${string}` ? K : never }[keyof MetricsExporter]

/** The guarded exporter. It is called for every event, so a call makes no function. */
export const guardedExporter = (exporter: MetricsExporter, guard: Guard): Required<MetricsExporter> => {
  const count = (name: CounterName) => () => {
    try {
      exporter[name]?.()
    } catch (error) {
      guard.threw(`metrics exporter's ${name}`, error)
    }
  }
  return {
    incrementHotEnqueued: count("incrementHotEnqueued"),
    incrementHotDropped: count("incrementHotDropped"),
    incrementColdEnqueued: count("incrementColdEnqueued"),
    incrementDispatchSuccess: count("incrementDispatchSuccess"),
    incrementDispatchFailure: count("incrementDispatchFailure"),
    incrementDispatchDead: count("incrementDispatchDead"),
    incrementFiberDeath: count("incrementFiberDeath"),
    recordQueueDepths: (hot, cold) => {
      try {
        exporter.recordQueueDepths(hot, cold)
      } catch (error) {
        guard.threw("metrics exporter's recordQueueDepths", error)
      }
    },
    recordOldestLagMs: (lag) => {
      try {
        exporter.recordOldestLagMs(lag)
      } catch (error) {
        guard.threw("metrics exporter's recordOldestLagMs", error)
      }
    }
  }
}
