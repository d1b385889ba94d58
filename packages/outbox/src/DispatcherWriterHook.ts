/** The hot path: what committed goes straight into the dispatcher's hot queue. */
import { Effect } from "effect"
import * as MetricsExporter from "./MetricsExporter.ts"
import type { Shape as Dispatcher } from "./OutboxDispatcher.ts"
import type { WriterHook } from "./WriterHook.ts"

export interface DispatcherWriterHookOptions {
  readonly dispatcher: Dispatcher
  /** Called with the ids that the hot queue did not take; they are in the table, and the poller delivers them. */
  readonly onDropped?: (eventIds: ReadonlyArray<string>) => Effect.Effect<void>
}

/** A full or closed hot queue never fails a write: it is logged, counted, and left to the poller. */
export const make = (options: DispatcherWriterHookOptions): Effect.Effect<WriterHook> =>
  Effect.map(MetricsExporter.Current, (metrics) => ({
    afterCommit: (events) =>
      Effect.suspend(() => {
        const dropped = events.filter((event) => !options.dispatcher.enqueueHot(event)).map((event) => event.eventId)
        if (dropped.length === 0) return Effect.void
        for (const _ of dropped) metrics.incrementHotDropped()
        return Effect.andThen(
          Effect.logWarning(`outbox: hot queue full or closed, ${dropped.length} events are left to the poller`),
          options.onDropped?.(dropped) ?? Effect.void
        )
      })
  }))
