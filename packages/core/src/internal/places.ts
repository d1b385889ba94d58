/**
 * The places of `maxInFlight`: how many handlers of a binding run at once. Owns the free places and the queue for them.
 *
 * Waiting for a place is not handling: it uses up no processing budget, a pause that arrives meanwhile holds the record, and a stop sends it away.
 */
import { type Clock, Effect } from "effect"
import type { Partition } from "./partition.ts"

/** Since when a run counts against the processing budget. */
export interface Timer {
  startedMillis: number
}

export interface Places {
  /** Runs a handler in a place. When the partition stops before there is one, the effect interrupts itself: nothing has started. */
  readonly within: <A, E, R>(
    partition: Partition,
    timer: Timer,
    run: () => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
}

/** A place for everybody. */
export const unbounded: Places = { within: (_partition, _timer, run) => run() }

interface Ticket {
  held: boolean
  call: () => void
}

export const make = (count: number, clock: Clock.Clock): Places => {
  let free = count
  const waiting = new Set<Ticket>()

  const leave = (ticket: Ticket) => {
    if (!ticket.held) return
    ticket.held = false
    const [next] = waiting
    if (next === undefined) {
      free++
      return
    }
    next.held = true
    next.call()
  }

  /** Returns when the ticket got a place, or the partition stops. */
  const queue = (partition: Partition, ticket: Ticket) =>
    Effect.callback<void>((resume) => {
      // Whoever is called runs in a turn of its own: a long queue of quick handlers must not become a deep stack.
      const leaveQueue = () => {
        waiting.delete(ticket)
        unsubscribe()
        resume(Effect.yieldNow)
      }
      const unsubscribe = partition.onStop(leaveQueue)
      ticket.call = leaveQueue
      waiting.add(ticket)
      return Effect.sync(leaveQueue)
    })

  const enter = (partition: Partition, ticket: Ticket): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (partition.stopping) return Effect.interrupt
      if (!partition.open) {
        leave(ticket)
        return Effect.andThen(partition.runnable, enter(partition, ticket))
      }
      if (ticket.held) return Effect.void
      if (free === 0) return Effect.andThen(queue(partition, ticket), enter(partition, ticket))
      free--
      ticket.held = true
      return Effect.void
    })

  return {
    within: (partition, timer, run) =>
      Effect.suspend(() => {
        const { startedMillis } = timer
        const sinceMillis = clock.currentTimeMillisUnsafe()
        const ticket: Ticket = { held: false, call: () => {} }
        timer.startedMillis = Number.POSITIVE_INFINITY
        const inside = Effect.suspend(() => {
          timer.startedMillis = startedMillis + clock.currentTimeMillisUnsafe() - sinceMillis
          return run()
        })
        return Effect.ensuring(
          Effect.andThen(enter(partition, ticket), inside),
          Effect.sync(() => leave(ticket))
        )
      })
  }
}
