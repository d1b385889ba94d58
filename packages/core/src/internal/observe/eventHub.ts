/**
 * Where events go. Listeners are called synchronously, in the order of what happens.
 *
 * Events of the hot path (a record started, was handled, an attempt failed, an offset was committed) are built only while a listener asked for them; the rest is rare
 * enough to be emitted always.
 */
import type { EventBusEvent } from "../../EventBusEvent.ts"

export type EventListener = (event: EventBusEvent) => void

export interface EventHub {
  /** Whether somebody wants the events of the hot path. Ask before building one. */
  readonly active: boolean
  readonly emit: (event: EventBusEvent) => void
  /** Adds a listener; the result removes it. `rare` listeners do not ask for events of the hot path, but may see them. */
  readonly subscribe: (listener: EventListener, interest?: "all" | "rare") => () => void
}

/** `onThrow` is told of a listener that threw: an observer never changes the fate of a record (checklist NFR-09). */
export const make = (onThrow: (event: EventBusEvent, error: unknown) => void): EventHub => {
  const listeners = new Set<EventListener>()
  /** A copy per change, not per event: one that listens anew in its call is told of the next event. */
  let told: ReadonlyArray<EventListener> = []
  let interested = 0
  return {
    get active() {
      return interested > 0
    },
    emit: (event) => {
      for (const listener of told) {
        if (!listeners.has(listener)) continue
        try {
          listener(event)
        } catch (error) {
          onThrow(event, error)
        }
      }
    },
    subscribe: (listener, interest = "all") => {
      // Of its own: the same function may listen twice, and is removed once at a time.
      const added: EventListener = (event) => listener(event)
      listeners.add(added)
      told = Array.from(listeners)
      if (interest === "all") interested++
      return () => {
        if (!listeners.delete(added)) return
        told = Array.from(listeners)
        if (interest === "all") interested--
      }
    }
  }
}
