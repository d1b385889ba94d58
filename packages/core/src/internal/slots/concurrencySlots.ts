/**
 * The places of `maxInFlight`: how many handlers of a binding run at once. Owns the free places and the queue for them.
 *
 * Waiting for a place is not handling: it uses up no processing budget, a pause that arrives meanwhile holds the record, and a stop sends it away.
 */
import { type Clock, Effect } from "effect"

/** Whether a record may start: a partition, or what it says about one of its records. */
export interface Gate {
  /** No record that waits here will start any more. */
  readonly stopping: boolean
  /** The partition is being given up: what may still start waits for handlers that run, not for the circuit breaker (ruling 35). */
  readonly ending: boolean
  readonly open: boolean
  /** Whether a record may wait here, for whatever it is. One that may not is sent away instead. */
  readonly patient: boolean
  /** Returns when it is open, or stopping. */
  readonly runnable: Effect.Effect<void>
  readonly onStop: (listener: () => void) => () => void
}

/** One delivery. */
export interface Timer {
  /** Since when it counts against the processing budget. */
  startedMillis: number
  /** Whether the budget has cut it off. */
  cutOff: boolean
  /** The breaker's, while it has one. */
  permit: number | undefined
  /** Gives its place back. */
  leave: () => void
}

export const timerFrom = (startedMillis: number): Timer => ({
  startedMillis,
  cutOff: false,
  permit: undefined,
  leave: nothingHeld.leave
})

export interface Places {
  /** Runs a handler in a place. When the gate's partition stops before there is one, the effect interrupts itself: nothing has started. */
  readonly within: <A, E, R>(gate: Gate, timer: Timer, run: () => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** `outer`: places that are held meanwhile, and left as well while the partition is paused. */
  readonly turn: (gate: Gate, outer?: Held) => Turn
}

/** Places that somebody has. */
export interface Held {
  /** Does nothing without a place. */
  readonly leave: () => void
  /** Waits for them again. Interrupts itself when the partition stops first. */
  readonly enter: (timer: Timer) => Effect.Effect<void>
}

export const nothingHeld: Held = { leave: () => {}, enter: () => Effect.void }

/**
 * For handlers that run one after the other: they keep their place as long as they are quick. A place that changes hands costs more than a quick handler,
 * so that it only does in another millisecond.
 */
export interface Turn extends Held {
  /** True when the next handler, which starts now, has its place without waiting. Otherwise it needs `within`; where others wait and the turn is over, the place is theirs. */
  readonly takes: (timer: Timer) => boolean
  /** As that of `Places`, but the place is kept afterwards. */
  readonly within: <A, E, R>(timer: Timer, run: () => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

const everybodys: Turn = { ...nothingHeld, takes: () => true, within: (_timer, run) => run() }

/** A place for everybody. */
export const unbounded: Places = { within: (_gate, _timer, run) => run(), turn: () => everybodys }

/** Places in places: the outer ones are taken first. */
export const nested = (outer: Places, inner: Places): Places => {
  if (outer === unbounded) return inner
  const turn: Places["turn"] = (gate, around = nothingHeld) => {
    const outside = outer.turn(gate, around)
    const inside = inner.turn(gate, both(around, outside))
    return {
      ...both(outside, inside),
      takes: (timer) => {
        if (outside.takes(timer)) return inside.takes(timer)
        // Who has got the outer place by that may wait for the inner one.
        inside.leave()
        return false
      },
      within: (timer, run) => outside.within(timer, () => inside.within(timer, run))
    }
  }
  return { turn, within: turnOfOne(turn) }
}

/** A turn that ends with its first handler. */
const turnOfOne =
  (turn: Places["turn"]): Places["within"] =>
  (gate, timer, run) =>
    Effect.suspend(() => {
      const { within, leave } = turn(gate)
      timer.leave = leave
      return Effect.ensuring(within(timer, run), Effect.sync(leave))
    })

const both = (outside: Held, inside: Held): Held => ({
  leave: () => {
    inside.leave()
    outside.leave()
  },
  enter: (timer) => Effect.andThen(outside.enter(timer), inside.enter(timer))
})

interface Ticket {
  held: boolean
  /** Since when, by the clock. */
  heldMillis: number
  call: () => void
}

/** What is in front of the handler within a place: the circuit breaker. */
export interface Inside {
  /** Gives back what a delivery holds that has to wait for a place: somebody in a place may be waiting for it. */
  readonly release: (timer: Timer) => void
  /** Whether who has a place may be waiting for something else than its handler. */
  readonly holdsUp: () => boolean
  /** Calls the listener when that begins; the result removes it. */
  readonly onHeldUp: (listener: () => void) => () => void
}

const nothing: Inside = { release: () => {}, holdsUp: () => false, onHeldUp: () => () => {} }

export const make = (count: number, clock: Clock.Clock, inside: Inside = nothing): Places => {
  let free = count
  const waiting = new Set<Ticket>()

  /** Who is being given up waits for handlers that run: those in the places may themselves be waiting. */
  const isHeldUp = (gate: Gate) => gate.ending && inside.holdsUp()

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
  const queue = (gate: Gate, ticket: Ticket) =>
    Effect.callback<void>((resume) => {
      const leaveQueue = () => {
        waiting.delete(ticket)
        unsubscribe()
        unsubscribeInside()
        // Not at once: who leaves goes on first, to say how its record ended, or to wait again. What is done in its place is not its time.
        resume(Effect.yieldNow)
      }
      const unsubscribe = gate.onStop(leaveQueue)
      const unsubscribeInside = gate.ending ? inside.onHeldUp(leaveQueue) : () => {}
      ticket.call = leaveQueue
      waiting.add(ticket)
      // The fiber may have yielded since it looked.
      if (free > 0 || gate.stopping || isHeldUp(gate)) leaveQueue()
      return Effect.sync(leaveQueue)
    })

  const enter = (gate: Gate, timer: Timer, ticket: Ticket, outer: Held): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (gate.stopping || (!gate.patient && (!gate.open || (free === 0 && !ticket.held)))) return Effect.interrupt
      if (!gate.open) {
        leave(ticket)
        outer.leave()
        inside.release(timer)
        return Effect.andThen(gate.runnable, Effect.andThen(outer.enter(timer), enter(gate, timer, ticket, outer)))
      }
      if (ticket.held) return Effect.void
      if (free === 0) {
        inside.release(timer)
        if (isHeldUp(gate)) return Effect.interrupt
        return Effect.andThen(queue(gate, ticket), enter(gate, timer, ticket, outer))
      }
      free--
      ticket.held = true
      return Effect.void
    })

  const turn: Places["turn"] = (gate, outer = nothingHeld) => {
    const ticket: Ticket = { held: false, heldMillis: 0, call: () => {} }
    return {
      takes: ({ startedMillis }) => {
        if (gate.stopping || !gate.open) return false
        if (ticket.held) {
          // Not "later than": a clock may be set back.
          if (waiting.size > 0 && startedMillis !== ticket.heldMillis) leave(ticket)
          return ticket.held
        }
        if (free === 0) return false
        free--
        ticket.held = true
        ticket.heldMillis = startedMillis
        return true
      },
      within: (timer, run) =>
        Effect.suspend(() => {
          const { startedMillis } = timer
          const sinceMillis = clock.currentTimeMillisUnsafe()
          timer.startedMillis = Number.POSITIVE_INFINITY
          const running = Effect.suspend(() => {
            ticket.heldMillis = clock.currentTimeMillisUnsafe()
            timer.startedMillis = startedMillis + ticket.heldMillis - sinceMillis
            return run()
          })
          return Effect.andThen(enter(gate, timer, ticket, outer), running)
        }),
      leave: () => leave(ticket),
      enter: (timer) => enter(gate, timer, ticket, outer)
    }
  }

  return { turn, within: turnOfOne(turn) }
}
