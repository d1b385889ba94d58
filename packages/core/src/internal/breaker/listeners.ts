/**
 * Calls listeners synchronously when a circuit breaker changes. Every listener sees the changes in the order in which they happened, also when a listener causes
 * the next change.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import * as UserFunction from "../../UserFunction.ts"

export interface Listeners<Change> {
  /** Adds a listener and answers the function that removes it. */
  readonly add: (listener: (change: Change) => void) => () => void
  readonly notify: (change: Change) => void
}

export const make = <Change>(): Listeners<Change> => {
  const listeners = new Set<(change: Change) => void>()
  const pending: Array<Change> = []
  let isNotifying = false
  return {
    add: (listener) => {
      // A wrapper per registration: the same function may listen twice, and each removal removes one registration.
      const added = (change: Change) => listener(change)
      listeners.add(added)
      return () => listeners.delete(added)
    },
    notify: (change) => {
      pending.push(change)
      if (isNotifying) return
      isNotifying = true
      for (let next = pending.shift(); next !== undefined; next = pending.shift())
        // Iterate over a copy: a listener that is added during a call sees only the next change.
        for (const listener of Array.from(listeners)) if (listeners.has(listener)) call(listener, next)
      isNotifying = false
    }
  }
}

const call = <Change>(listener: (change: Change) => void, change: Change): void => {
  try {
    UserFunction.settled("a listener of a circuit breaker", listener(change))
  } catch (error) {
    // It must not stop the others, nor the breaker.
    UserFunction.report("a listener of a circuit breaker", error)
  }
}

/** The changes from now on. A reader that falls 256 changes behind misses the oldest. */
export const stream = <Change>(add: Listeners<Change>["add"]): Stream.Stream<Change> =>
  Stream.callback<Change>(
    (queue) =>
      Effect.acquireRelease(
        Effect.sync(() => add((change) => Queue.offerUnsafe(queue, change))),
        (unsubscribe) => Effect.sync(unsubscribe)
      ),
    { bufferSize: 256, strategy: "sliding" }
  )
