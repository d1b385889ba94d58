/** The hot path: puts committed events straight into the dispatcher's hot queue (outbox seed §7, §13). */
import { Kinds } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { logWarning } from "./internal/base/log.ts"
import { problemsOf, refuse } from "./internal/base/options.ts"
import { makeDeliveryTools } from "./internal/delivery/deliveryTools.ts"
import type { OutboxDispatcher } from "./OutboxDispatcher.ts"
import { OutboxStore } from "./OutboxStore.ts"
import type { WriterHook } from "./WriterHook.ts"

/** Settings of `make`. */
export interface DispatcherWriterHookOptions {
  /** The dispatcher whose hot queue gets the events. */
  readonly dispatcher: OutboxDispatcher["Service"]
  /** Called with the ids that the hot queue did not take. Their rows are in the table, and the poller delivers them. */
  readonly onDropped?: (eventIds: ReadonlyArray<string>) => Effect.Effect<void>
}

const dispatcher = Kinds.struct({}, { enqueueHot: Kinds.func }, "a dispatcher")

/** A hook for the writer. Dies with `InvalidOutboxConfig` for wrong settings. A full or closed hot queue never fails a write: dropped events are logged, counted, and left to the poller. */
export const make = (options: DispatcherWriterHookOptions): Effect.Effect<WriterHook> =>
  Effect.gen(function* () {
    refuse("DispatcherWriterHook", problemsOf(options, { onDropped: Kinds.func }, { dispatcher }))
    const store = yield* Effect.serviceOption(OutboxStore)
    const { metrics } = yield* makeDeliveryTools(Option.getOrElse(store, () => ({ names: {} })))
    return {
      afterCommit: (events) =>
        Effect.suspend(() => {
          const dropped = events.filter((event) => !options.dispatcher.enqueueHot(event)).map((event) => event.eventId)
          if (dropped.length === 0) return Effect.void
          for (const _ of dropped) metrics.incrementHotDropped()
          return Effect.andThen(
            logWarning(`outbox: hot queue full or closed; the poller delivers ${dropped.length} events`),
            options.onDropped?.(dropped) ?? Effect.void
          )
        })
    }
  })
