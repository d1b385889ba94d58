/**
 * Failures of a binding that last. The part that meets a failure enters it, and removes it when the same thing works again. Snapshots and health read them. Beside them
 * stands the newest failure of a handler, which is no state of the binding.
 */
import type * as Clock from "effect/Clock"
import type { BrokerError } from "../../BrokerError.ts"
import type { OngoingFailure } from "../../Snapshot.ts"
import * as NewestFailure from "./newestFailure.ts"

/** Failures of one kind, by what they are about. */
export interface OngoingFailures {
  /** The same failure keeps its beginning and takes over the newest error. */
  readonly failed: (about: string, error: BrokerError) => void
  /** Costs nothing while nothing fails. */
  readonly worked: (about: string) => void
  /** Nothing fails any more. */
  readonly clear: () => void
  /** The failure that has lasted longest; undefined when there is none. */
  readonly longest: () => (OngoingFailure & { readonly about: string }) | undefined
}

/** The kinds of lasting failures that parts of a binding meet. */
export interface BindingFailures {
  /** Commits, by the index of the consumer. */
  readonly commits: OngoingFailures
  /** Transactions and their producers, by partition. */
  readonly transactions: OngoingFailures
  /** Topics that cannot be read, by name. */
  readonly topics: OngoingFailures
  /** The dead letter strategy; what it cannot do is in the error. */
  readonly strategy: OngoingFailures
  /** Of handlers and serdes. Snapshots show it, and health does not count it. */
  readonly newest: NewestFailure.NewestFailure
  /** Nothing fails any more: the binding has stopped. */
  readonly clear: () => void
}

export const ofBinding = (clock: Clock.Clock): BindingFailures => {
  const kinds = { commits: make(clock), transactions: make(clock), topics: make(clock), strategy: make(clock) }
  return {
    ...kinds,
    newest: NewestFailure.make(clock),
    clear: () => {
      for (const kind of Object.values(kinds)) kind.clear()
    }
  }
}

const make = (clock: Clock.Clock): OngoingFailures => {
  const failures = new Map<string, OngoingFailure>()
  return {
    failed: (about, error) => {
      const sinceMillis = failures.get(about)?.sinceMillis ?? clock.currentTimeMillisUnsafe()
      failures.set(about, { error, sinceMillis })
    },
    worked: (about) => {
      if (failures.size > 0) failures.delete(about)
    },
    clear: () => failures.clear(),
    longest: () => {
      // A map lists its entries in the order in which they came.
      for (const [about, failure] of failures) return { about, ...failure }
      return undefined
    }
  }
}
