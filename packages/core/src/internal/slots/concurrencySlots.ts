/**
 * Concurrency slots: how many handlers run at once, of a binding (`maxInFlight`) or of one tier (`concurrency`). Owns the free slots and the queue for them.
 *
 * A partition that handles record after record keeps its slot while its handlers are quick. To pass a slot on costs more than a quick handler, so a slot that others
 * wait for is passed on at most once in a millisecond.
 */
import * as Effect from "effect/Effect"
import type { BreakerPermits } from "./breakerPermits.ts"
import type { StartGate } from "./startGate.ts"

export interface ConcurrencySlots {
  /** A lease without a slot. It may take a slot, give it back, and take one again. */
  readonly lease: () => SlotLease
}

interface Slots {
  free: number
  /** In the order in which they came. */
  readonly waiting: Set<SlotLease>
}

export const make = (count: number): ConcurrencySlots => {
  const slots: Slots = { free: count, waiting: new Set() }
  return { lease: () => new SlotLease(slots) }
}

/** Whether a wait for a slot would be a wait for the breaker, because the holders of the slots may be waiting for it: a partition that is given up does not wait then. */
export const isHeldUp = (gate: StartGate, breaker: BreakerPermits | undefined): boolean =>
  gate.ending && breaker?.holdsUp() === true

export class SlotLease {
  readonly #slots: Slots
  #isHeld = false
  /** When the first handler of this lease began, by the clock. */
  #heldSinceMillis = 0
  #wake: () => void = ignored

  constructor(slots: Slots) {
    this.#slots = slots
  }

  /**
   * True when a handler that starts now has a slot without waiting. A kept slot goes to a waiter when its millisecond is over; then the answer is false.
   */
  tryAcquire(nowMillis: number): boolean {
    if (!this.#isHeld) return this.acquire(nowMillis)
    // Any other millisecond will do: a clock may be set back.
    if (this.#slots.waiting.size > 0 && nowMillis !== this.#heldSinceMillis) this.release()
    return this.#isHeld
  }

  /** Takes a free slot, or keeps the slot that it has. False when no slot is free. */
  acquire(nowMillis: number): boolean {
    if (!this.#isHeld) {
      if (this.#slots.free === 0) return false
      this.#slots.free--
      this.#isHeld = true
    }
    this.#heldSinceMillis = nowMillis
    return true
  }

  /** Gives the slot to the first waiter, or frees it. Does nothing without a slot. */
  release(): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    const [next] = this.#slots.waiting
    if (next === undefined) {
      this.#slots.free++
      return
    }
    next.#isHeld = true
    next.#wake()
  }

  /** Returns when the lease has a slot, when a slot may be free, or when the wait has become pointless. */
  wait(gate: StartGate, breaker: BreakerPermits | undefined): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      const { waiting } = this.#slots
      const leaveQueue = () => {
        waiting.delete(this)
        unsubscribe()
        unsubscribeBreaker()
        // The previous holder goes on first: it reports its outcome and queues again. Otherwise that work would be charged to this waiter.
        resume(Effect.yieldNow)
      }
      const unsubscribe = gate.onStop(leaveQueue)
      const unsubscribeBreaker = gate.ending && breaker !== undefined ? breaker.onHeldUp(leaveQueue) : ignored
      this.#wake = leaveQueue
      waiting.add(this)
      // The fiber may have yielded since it looked.
      if (this.#slots.free > 0 || gate.stopping || isHeldUp(gate, breaker)) leaveQueue()
      return Effect.sync(leaveQueue)
    })
  }
}

function ignored() {}
