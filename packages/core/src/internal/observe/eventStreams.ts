/**
 * The events of a hub as a stream, and for listeners that end with a scope.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { EventBusEvent } from "../../EventBusEvent.ts"
import type { EventHub, EventListener } from "./eventHub.ts"

type Interest = "all" | "rare"

/** Calls the listener until the scope closes. */
export const listen = (
  hub: EventHub,
  listener: EventListener,
  interest: Interest
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => hub.subscribe(listener, interest)),
      (unsubscribe) => Effect.sync(unsubscribe)
    )
  )

/** The events from now on. A reader that falls more than 16 384 events behind misses the oldest. */
export const events = (hub: EventHub, interest: Interest): Stream.Stream<EventBusEvent> =>
  Stream.callback<EventBusEvent>((queue) => listen(hub, (event) => Queue.offerUnsafe(queue, event), interest), {
    bufferSize: 16_384,
    strategy: "sliding"
  })
