/**
 * Fibers that wait until an offset is committed, or until their partition is given up.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

/** A fiber waits until this is committed. */
interface CommitWait {
  readonly partition: { readonly committed: bigint }
  readonly offset: bigint
  readonly givenUp: () => boolean
  /** Whether the broker has what is finished behind the offset, too; undefined when there is nothing. */
  readonly isAccepted: (() => boolean) | undefined
}

interface Waiter extends CommitWait {
  readonly done: Deferred.Deferred<void>
}

export interface CommitWaiters {
  /** Returns an effect that waits until the offset is committed, or until `givenUp` answers true. */
  readonly add: (wait: CommitWait) => Effect.Effect<void>
  /** Answers every waiter whose offset is committed or whose partition is given up. */
  readonly answer: () => void
}

export const make = (): CommitWaiters => {
  let waiting: Array<Waiter> = []
  return {
    add: (wait) => {
      const done = Deferred.makeUnsafe<void>()
      waiting.push({ ...wait, done })
      return Deferred.await(done)
    },
    answer: () => {
      const isPending = ({ partition, offset, givenUp, isAccepted }: Waiter) =>
        !givenUp() && (partition.committed < offset || isAccepted?.() === false)
      const answered = waiting.filter((waiter) => !isPending(waiter))
      // An answered fiber may run at once and wait again, so the list is settled first.
      waiting = waiting.filter(isPending)
      for (const { done } of answered) Deferred.doneUnsafe(done, Effect.void)
    }
  }
}
