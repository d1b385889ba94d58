/**
 * When events were written, by the monotonic clock. A transaction may stay open for long, and another hook may run before the hot path: claims
 * count from the write, and the poller may have taken an event meanwhile.
 */
import type { EventEnvelope } from "../base/envelope.ts"

const times = new WeakMap<EventEnvelope, bigint>()

/** Notes that these events are about to be inserted. */
export const noteWrite = (events: ReadonlyArray<EventEnvelope>, nowNanos: bigint): void => {
  for (const event of events) times.set(event, nowNanos)
}

/** When the insert of this event began; undefined for one that no writer of this process inserted. */
export const writtenAtNanos = (event: EventEnvelope): bigint | undefined => times.get(event)
