/**
 * Who is told synchronously when a circuit breaker changes. Everybody sees the changes in the order in which they happened, also when a listener brings about
 * the next one.
 */

export interface Listeners<Change> {
  /** The result removes the listener. */
  readonly add: (listener: (change: Change) => void) => () => void
  readonly notify: (change: Change) => void
}

export const make = <Change>(): Listeners<Change> => {
  const listeners = new Set<(change: Change) => void>()
  const pending: Array<Change> = []
  let isNotifying = false
  return {
    add: (listener) => {
      // Of its own: the same function may listen twice, and is removed once at a time.
      const added = (change: Change) => listener(change)
      listeners.add(added)
      return () => listeners.delete(added)
    },
    notify: (change) => {
      pending.push(change)
      if (isNotifying) return
      isNotifying = true
      for (let next = pending.shift(); next !== undefined; next = pending.shift())
        // One that listens anew in its call is told of the next change.
        for (const listener of Array.from(listeners)) if (listeners.has(listener)) call(listener, next)
      isNotifying = false
    }
  }
}

const call = <Change>(listener: (change: Change) => void, change: Change): void => {
  try {
    listener(change)
  } catch {
    // An observer changes nothing.
  }
}
