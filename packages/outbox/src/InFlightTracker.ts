/**
 * Tracks the events that this process handles, so that an event that arrives by the hot and by the cold path is handled once. The mark
 * is taken when the event enters a queue (outbox seed §9, ruling 65).
 */
import { Kinds, Ranges } from "@eventbus/core"
import type * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import { problemsOf, refuse } from "./internal/base/options.ts"
import * as OutboxRanges from "./OutboxRanges.ts"

/** The marks of events in flight. Implementations return at once and do not throw. */
export interface InFlightTracker {
  /** Marks the event. False when it is marked already. */
  readonly tryAcquire: (eventId: string) => boolean
  /** Removes the mark. */
  readonly release: (eventId: string) => void
}

/**
 * A tracker in memory. Without `ttl`, a mark lasts until it is released. With `ttl`, it may be taken again after that time on the
 * monotonic clock. Throws `InvalidOutboxConfig` for a `ttl` that is no duration of 0 or more.
 */
export const make = (options: { readonly clock: Clock.Clock; readonly ttl?: Duration.Input }): InFlightTracker => {
  refuse("InFlightTracker", problemsOf(options, { ttl: OutboxRanges.others.ttl }, { clock: Kinds.object }))
  const marks = new Map<string, bigint>()
  const ttlNanos = options.ttl === undefined ? undefined : BigInt(Ranges.millisOf(options.ttl)) * 1_000_000n
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
