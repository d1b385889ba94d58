/**
 * Fibers that wait for a condition of this process. A fiber may be suspended between any two of its steps, so the condition is looked
 * at once more when the fiber is on the list: what became true in between is not missed.
 */
import { Effect } from "effect"

interface Waiter {
  readonly ready: () => boolean
  readonly resume: () => void
}

export class ConditionVariable {
  readonly #waiting = new Set<Waiter>()

  /** Waits until a wake-up that finds `ready`; not at all when it is ready now. */
  await(ready: () => boolean): Effect.Effect<void> {
    const waiting = Effect.callback<void>((resume) => {
      if (ready()) return resume(Effect.void)
      const waiter = { ready, resume: () => resume(Effect.void) }
      this.#waiting.add(waiter)
      return Effect.sync(() => void this.#waiting.delete(waiter))
    })
    return Effect.suspend(() => (ready() ? Effect.void : waiting))
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  /** Resumes the one that has waited longest. */
  notifyOne(): void {
    const [first] = this.#waiting
    if (first !== undefined) this.#wake(first)
  }

  /** Resumes whoever is ready, oldest first. A resumed fiber runs at once, and may leave nothing to the next or wait anew. */
  notifyReady(): void {
    for (const waiter of [...this.#waiting]) if (waiter.ready()) this.#wake(waiter)
  }

  #wake(waiter: Waiter): void {
    if (this.#waiting.delete(waiter)) waiter.resume()
  }
}
