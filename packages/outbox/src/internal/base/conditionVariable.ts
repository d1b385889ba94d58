/**
 * A condition variable: fibers wait until a condition of this process holds.
 *
 * A fiber may be suspended between any two of its steps. So the condition is checked once more when the fiber joins the list of
 * waiters, and a change in between is not missed.
 */
import * as Effect from "effect/Effect"

interface Waiter {
  readonly ready: () => boolean
  readonly resume: () => void
}

export class ConditionVariable {
  readonly #waiters = new Set<Waiter>()

  /** Waits for a notification that finds `ready` true. Does not wait when it is true already. */
  await(ready: () => boolean): Effect.Effect<void> {
    const wait = Effect.callback<void>((resume) => {
      if (ready()) return resume(Effect.void)
      const waiter = { ready, resume: () => resume(Effect.void) }
      this.#waiters.add(waiter)
      return Effect.sync(() => void this.#waiters.delete(waiter))
    })
    return Effect.suspend(() => (ready() ? Effect.void : wait))
  }

  get isEmpty(): boolean {
    return this.#waiters.size === 0
  }

  /** Resumes the fiber that has waited longest. */
  notifyOne(): void {
    const [first] = this.#waiters
    if (first !== undefined) this.#resume(first)
  }

  /**
   * Resumes every fiber whose condition holds, oldest first. A resumed fiber runs at once: it may use up what the next fiber waits
   * for, and it may wait again. So the condition is checked per waiter, over a copy of the list.
   */
  notifyReady(): void {
    for (const waiter of [...this.#waiters]) if (waiter.ready()) this.#resume(waiter)
  }

  #resume(waiter: Waiter): void {
    if (this.#waiters.delete(waiter)) waiter.resume()
  }
}
