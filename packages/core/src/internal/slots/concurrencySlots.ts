/**
 * Concurrency slots: how many handlers run at once, of a binding (`maxInFlight`) or of one tier (`concurrency`). Owns the free slots and the queue for them.
 *
 * Records that are handled one after the other keep their slot while their handlers are quick: to hand a slot over costs more than a quick handler, so that a
 * slot that others wait for changes hands once in a millisecond.
 */
import { Effect } from "effect"
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

/** Whether a record of a partition that is given up would wait for the breaker: the deliveries that have the slots may do so themselves. */
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
   * For a handler that starts now: true when it has a slot without waiting. A kept slot goes to a waiter where one is queued and the millisecond is over;
   * then the answer is false.
   */
  tryAcquire(nowMillis: number): boolean {
    if (!this.#isHeld) return this.acquire(nowMillis)
    // Not "later than": a clock may be set back.
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
        // Not at once: the previous holder goes on first, reports its outcome and queues again. Its time in the slot until then is not this waiter's.
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
