/**
 * Failures of a binding that last. The part that meets a failure enters it, and removes it when the same thing works again. Snapshots and health read them. Beside them
 * stands the newest failure of a handler, which is no state of the binding.
 */
import type * as Clock from "effect/Clock"
import type { BrokerError } from "../../BrokerError.ts"
import type { RecordPosition } from "../../ConsumerRecord.ts"
import type { Failure } from "../../Failure.ts"
import type { NewestFailure as Newest, OngoingFailure } from "../../Snapshot.ts"

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

/** The last failure of a handler or a serde, with its record and time. It outlives a stop, so that somebody who stops the binding first still sees why. */
export interface NewestFailure {
  /** An attempt failed. Keeps texts and numbers alone: the error and the record could hold much more in memory. */
  readonly failed: (at: RecordPosition, origin: RecordPosition, failure: Failure) => void
  /** Undefined while nothing has failed. */
  readonly read: () => Newest | undefined
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
  readonly newest: NewestFailure
  /** Nothing fails any more: the binding has stopped. */
  readonly clear: () => void
}

export const ofBinding = (clock: Clock.Clock): BindingFailures => {
  const kinds = { commits: make(clock), transactions: make(clock), topics: make(clock), strategy: make(clock) }
  return {
    ...kinds,
    newest: makeNewest(clock),
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

/** Characters of the message that are kept. */
const longestMessage = 1_024

const makeNewest = (clock: Clock.Clock): NewestFailure => {
  let newest: Newest | undefined
  return {
    failed: ({ topic, partition, offset }, origin, { className, message }) => {
      newest = {
        ...{ topic, partition, offset, className },
        message: message.length > longestMessage ? `${message.slice(0, longestMessage - 1)}…` : message,
        origin: { topic: origin.topic, partition: origin.partition, offset: origin.offset },
        atMillis: clock.currentTimeMillisUnsafe()
      }
    },
    read: () => newest
  }
}
