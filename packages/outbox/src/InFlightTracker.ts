/**
 * Which events this process is handling, so that one that arrives by the hot and by the cold way is handled once. The mark is taken
 * when the event enters a queue (ruling 65).
 */
import { type Clock, Duration } from "effect"

export interface InFlightTracker {
  /** False when the event is marked already. */
  readonly tryAcquire: (eventId: string) => boolean
  readonly release: (eventId: string) => void
}

/** Without a TTL a mark lasts until it is released; with one it may be taken again after so long, on the monotonic clock. */
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
