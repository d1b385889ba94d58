/**
 * Tracks the events that this process handles, so that an event that arrives by the hot and by the cold path is handled once. The mark
 * is taken when the event enters a queue (outbox seed §9, ruling 65).
 */
import { type Clock, Duration } from "effect"

/** The marks of events in flight. Implementations return at once and do not throw. */
export interface InFlightTracker {
  /** Marks the event. False when it is marked already. */
  readonly tryAcquire: (eventId: string) => boolean
  /** Removes the mark. */
  readonly release: (eventId: string) => void
}

/**
 * A tracker in memory. Without `ttl`, a mark lasts until it is released. With `ttl`, it may be taken again after that time on the
 * monotonic clock.
 */
export const make = (options: { readonly clock: Clock.Clock; readonly ttl?: Duration.Input }): InFlightTracker => {
  const marks = new Map<string, bigint>()
  const ttlNanos =
    options.ttl === undefined
      ? undefined
      : BigInt(Math.round(Duration.toMillis(Duration.fromInputUnsafe(options.ttl)) * 1e6))
  const now = () => options.clock.monotonicTimeNanosUnsafe()
  return {
    tryAcquire: (eventId) => {
      const since = marks.get(eventId)
      if (since !== undefined && (ttlNanos === undefined || now() - since < ttlNanos)) return false
      marks.set(eventId, ttlNanos === undefined ? 0n : now())
      return true
    },
    release: (eventId) => void marks.delete(eventId)
  }
}
