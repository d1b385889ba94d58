/**
 * The moment at which a partition begins to stop, for fibers that wait for it and for listeners. It comes once.
 */
import type * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"

export class StopSignal {
  readonly #latch = Latch.makeUnsafe(false)
  readonly #listeners = new Set<() => void>()

  /** Returns once the signal was sent. */
  get sent(): Effect.Effect<void> {
    return this.#latch.await
  }

  send(): void {
    this.#latch.openUnsafe()
    // A listener may run a fiber that waits again at once. Iterate over a copy, so that the new listener is not called.
    for (const listener of Array.from(this.#listeners)) {
      if (this.#listeners.delete(listener)) listener()
    }
  }

  /** Calls the listener once. The result removes it. */
  onSent(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
