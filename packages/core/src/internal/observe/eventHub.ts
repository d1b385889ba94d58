/**
 * Passes events to listeners, synchronously and in the order in which they happen.
 *
 * Events of the hot path (a record started, was handled, an attempt failed, an offset was committed) are built only while a listener asks for them. All other
 * events are rare and always emitted.
 */
import type { EventBusEvent } from "../../EventBusEvent.ts"
import * as UserFunction from "../../UserFunction.ts"

export type EventListener = (event: EventBusEvent) => void

export interface EventHub {
  /** Whether a listener wants the events of the hot path. Check it before building one. */
  readonly active: boolean
  readonly emit: (event: EventBusEvent) => void
  /** Adds a listener and answers the function that removes it. A `rare` listener does not ask for events of the hot path, but may see them. */
  readonly subscribe: (listener: EventListener, interest?: "all" | "rare") => () => void
}

/** Calls `onThrow` when a listener throws, or the Promise of an async one is rejected: an observer never changes the fate of a record (checklist NFR-09). */
export const make = (onThrow: (event: EventBusEvent, error: unknown) => void): EventHub => {
  const listeners = new Set<EventListener>()
  /** Copied at each change of the listeners, not per event. A listener that is added during a call sees only the next event. */
  let snapshot: ReadonlyArray<EventListener> = []
  let interested = 0
  return {
    get active() {
      return interested > 0
    },
    emit: (event) => {
      for (const listener of snapshot) {
        if (!listeners.has(listener)) continue
        try {
          const returned: unknown = listener(event)
          if (returned !== undefined) UserFunction.attend(returned, (error) => onThrow(event, error))
        } catch (error) {
          onThrow(event, error)
        }
      }
    },
    subscribe: (listener, interest = "all") => {
      // A wrapper per registration: the same function may listen twice, and each removal removes one registration.
      const added: EventListener = (event) => listener(event)
      listeners.add(added)
      snapshot = Array.from(listeners)
      if (interest === "all") interested++
      return () => {
        if (!listeners.delete(added)) return
        snapshot = Array.from(listeners)
        if (interest === "all") interested--
      }
    }
  }
}
