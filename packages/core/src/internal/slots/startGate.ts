/**
 * Whether a record may start. A partition answers for all of its records; a scheduler may answer differently for one of them.
 */
import type * as Effect from "effect/Effect"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"

export interface StartGate {
  /** No record that waits here starts any more. */
  readonly stopping: boolean
  /** The partition is being given up: a record that may still start waits for running handlers, and never for the circuit breaker (ruling 35). */
  readonly ending: boolean
  /** The record that asks: a half-open breaker tries each record once. */
  readonly current: ConsumerRecord | undefined
  /** False while the partition is paused. */
  readonly open: boolean
  /** False where a record must not wait, whatever for: it interrupts itself instead. */
  readonly mayWait: boolean
  /** Returns when the gate is open, or stopping. */
  readonly runnable: Effect.Effect<void>
  /** Calls the listener once, when the partition stops. The result removes the listener. */
  readonly onStop: (listener: () => void) => () => void
}
