/**
 * The places of `maxInFlight`: how many handlers of a binding run at once. Owns the free places and the queue for them.
 *
 * Waiting for a place is not handling: it uses up no processing budget, a pause that arrives meanwhile holds the record, and a stop sends it away.
 */
import { type Clock, Effect } from "effect"

/** Whether a record may start: a partition, or what it says about one of its records. */
export interface StartGate {
  /** No record that waits here will start any more. */
  readonly stopping: boolean
  /** The partition is being given up: what may still start waits for handlers that run, not for the circuit breaker (ruling 35). */
  readonly ending: boolean
  readonly open: boolean
  /** Whether a record may wait here, for whatever it is. One that may not is sent away instead. */
  readonly mayWait: boolean
  /** Returns when it is open, or stopping. */
  readonly runnable: Effect.Effect<void>
  readonly onStop: (listener: () => void) => () => void
}

/** One delivery. */
export interface DeliveryContext {
  /** Since when it counts against the processing budget. */
  startedMillis: number
  /** Whether the budget has cut it off. */
  cutOff: boolean
  /** The breaker's, while it has one. */
  permit: number | undefined
  /** Gives its place back. */
  releaseSlot: () => void
}

export const deliveryFrom = (startedMillis: number): DeliveryContext => ({
  startedMillis,
  cutOff: false,
  permit: undefined,
  releaseSlot: noSlots.release
})

export interface ConcurrencySlots {
  /** Runs a handler in a place. When the gate's partition stops before there is one, the effect interrupts itself: nothing has started. */
  readonly within: <A, E, R>(
    gate: StartGate,
    delivery: DeliveryContext,
    run: () => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  /** `outer`: places that are held meanwhile, and left as well while the partition is paused. */
  readonly lease: (gate: StartGate, outer?: HeldSlots) => SlotLease
}

/** Places that somebody has. */
export interface HeldSlots {
  /** Does nothing without a place. */
  readonly release: () => void
  /** Waits for them again. Interrupts itself when the partition stops first. */
  readonly reacquire: (delivery: DeliveryContext) => Effect.Effect<void>
}

export const noSlots: HeldSlots = { release: () => {}, reacquire: () => Effect.void }

/**
 * For handlers that run one after the other: they keep their place as long as they are quick. A place that changes hands costs more than a quick handler,
 * so that it only does in another millisecond.
 */
export interface SlotLease extends HeldSlots {
  /** True when the next handler, which starts now, has its place without waiting. Otherwise it needs `within`; where others wait and the turn is over, the place is theirs. */
  readonly tryAcquire: (delivery: DeliveryContext) => boolean
  /** As that of `Places`, but the place is kept afterwards. */
  readonly within: <A, E, R>(delivery: DeliveryContext, run: () => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

const unboundedLease: SlotLease = { ...noSlots, tryAcquire: () => true, within: (_delivery, run) => run() }

/** A place for everybody. */
export const unbounded: ConcurrencySlots = { within: (_gate, _delivery, run) => run(), lease: () => unboundedLease }

/** Places in places: the outer ones are taken first. */
export const nested = (outer: ConcurrencySlots, inner: ConcurrencySlots): ConcurrencySlots => {
  if (outer === unbounded) return inner
  const lease: ConcurrencySlots["lease"] = (gate, around = noSlots) => {
    const outside = outer.lease(gate, around)
    const inside = inner.lease(gate, both(around, outside))
    return {
      ...both(outside, inside),
      tryAcquire: (delivery) => {
        if (outside.tryAcquire(delivery)) return inside.tryAcquire(delivery)
        // Who has got the outer place by that may wait for the inner one.
        inside.release()
        return false
      },
      within: (delivery, run) => outside.within(delivery, () => inside.within(delivery, run))
    }
  }
  return { lease, within: leaseOfOne(lease) }
}

/** A turn that ends with its first handler. */
const leaseOfOne =
  (lease: ConcurrencySlots["lease"]): ConcurrencySlots["within"] =>
  (gate, delivery, run) =>
    Effect.suspend(() => {
      const { within, release } = lease(gate)
      delivery.releaseSlot = release
      return Effect.ensuring(within(delivery, run), Effect.sync(release))
    })

const both = (outside: HeldSlots, inside: HeldSlots): HeldSlots => ({
  release: () => {
    inside.release()
    outside.release()
  },
  reacquire: (delivery) => Effect.andThen(outside.reacquire(delivery), inside.reacquire(delivery))
})

interface Holder {
  held: boolean
  /** Since when, by the clock. */
  heldMillis: number
  call: () => void
}

/** What is in front of the handler within a place: the circuit breaker. */
export interface Inside {
  /** Gives back what a delivery holds that has to wait for a place: somebody in a place may be waiting for it. */
  readonly release: (delivery: DeliveryContext) => void
  /** Whether who has a place may be waiting for something else than its handler. */
  readonly holdsUp: () => boolean
  /** Calls the listener when that begins; the result removes it. */
  readonly onHeldUp: (listener: () => void) => () => void
}

const nothing: Inside = { release: () => {}, holdsUp: () => false, onHeldUp: () => () => {} }

export const make = (count: number, clock: Clock.Clock, inside: Inside = nothing): ConcurrencySlots => {
  let free = count
  const waiting = new Set<Holder>()

  /** Who is being given up waits for handlers that run: those in the places may themselves be waiting. */
  const isHeldUp = (gate: StartGate) => gate.ending && inside.holdsUp()

  const release = (holder: Holder) => {
    if (!holder.held) return
    holder.held = false
    const [next] = waiting
    if (next === undefined) {
      free++
      return
    }
    next.held = true
    next.call()
  }

  /** Returns when the ticket got a place, or the partition stops. */
  const queue = (gate: StartGate, holder: Holder) =>
    Effect.callback<void>((resume) => {
      const leaveQueue = () => {
        waiting.delete(holder)
        unsubscribe()
        unsubscribeInside()
        // Not at once: who leaves goes on first, to say how its record ended, or to wait again. What is done in its place is not its time.
        resume(Effect.yieldNow)
      }
      const unsubscribe = gate.onStop(leaveQueue)
      const unsubscribeInside = gate.ending ? inside.onHeldUp(leaveQueue) : () => {}
      holder.call = leaveQueue
      waiting.add(holder)
      // The fiber may have yielded since it looked.
      if (free > 0 || gate.stopping || isHeldUp(gate)) leaveQueue()
      return Effect.sync(leaveQueue)
    })

  const enter = (gate: StartGate, delivery: DeliveryContext, holder: Holder, outer: HeldSlots): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (gate.stopping || (!gate.mayWait && (!gate.open || (free === 0 && !holder.held)))) return Effect.interrupt
      if (!gate.open) {
        release(holder)
        outer.release()
        inside.release(delivery)
        return Effect.andThen(
          gate.runnable,
          Effect.andThen(outer.reacquire(delivery), enter(gate, delivery, holder, outer))
        )
      }
      if (holder.held) return Effect.void
      if (free === 0) {
        inside.release(delivery)
        if (isHeldUp(gate)) return Effect.interrupt
        return Effect.andThen(queue(gate, holder), enter(gate, delivery, holder, outer))
      }
      free--
      holder.held = true
      return Effect.void
    })

  const lease: ConcurrencySlots["lease"] = (gate, outer = noSlots) => {
    const holder: Holder = { held: false, heldMillis: 0, call: () => {} }
    return {
      tryAcquire: ({ startedMillis }) => {
        if (gate.stopping || !gate.open) return false
        if (holder.held) {
          // Not "later than": a clock may be set back.
          if (waiting.size > 0 && startedMillis !== holder.heldMillis) release(holder)
          return holder.held
        }
        if (free === 0) return false
        free--
        holder.held = true
        holder.heldMillis = startedMillis
        return true
      },
      within: (delivery, run) =>
        Effect.suspend(() => {
          const { startedMillis } = delivery
          const sinceMillis = clock.currentTimeMillisUnsafe()
          delivery.startedMillis = Number.POSITIVE_INFINITY
          const running = Effect.suspend(() => {
            holder.heldMillis = clock.currentTimeMillisUnsafe()
            delivery.startedMillis = startedMillis + holder.heldMillis - sinceMillis
            return run()
          })
          return Effect.andThen(enter(gate, delivery, holder, outer), running)
        }),
      release: () => release(holder),
      reacquire: (delivery) => enter(gate, delivery, holder, outer)
    }
  }

  return { lease, within: leaseOfOne(lease) }
}
