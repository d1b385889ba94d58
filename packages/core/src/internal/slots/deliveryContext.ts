/**
 * One delivery of a record: from the moment at which it asks for a slot to its outcome. It alone holds the record's budget clock, its concurrency slots and its
 * breaker permit, and gives each of them back in one place: the clock in `resumeClock`, the slots in `releaseSlots`, the permit in `#giveBackPermit`.
 *
 * A scheduler that handles one record after the other uses one object for all of them, and begins it anew for each.
 */
import { type Clock, Effect, Exit } from "effect"
import type * as BreakerPermits from "./breakerPermits.ts"
import type { ConcurrencyLimits } from "./concurrencyLimits.ts"
import { isHeldUp, type SlotLease } from "./concurrencySlots.ts"
import type { StartGate } from "./startGate.ts"

const noLeases: ReadonlyArray<SlotLease> = []

export class DeliveryContext {
  readonly #clock: Clock.Clock
  readonly #breaker: BreakerPermits.BreakerPermits | undefined
  /** The outermost first. */
  readonly #leases: ReadonlyArray<SlotLease>
  #permit: number | undefined = undefined
  /** When the delivery began, moved on by all the time in which its clock was paused. */
  #startedMillis: number
  /** How often the clock was paused and not resumed since. */
  #pauses = 0
  #pausedSinceMillis = 0
  #wasCutOff = false
  #isRunning = false
  #isAbandoned = false

  constructor({ slots, breaker, clock }: ConcurrencyLimits, startedMillis: number) {
    this.#clock = clock
    this.#breaker = breaker
    this.#leases = slots.length === 0 ? noLeases : slots.map((each) => each.lease())
    this.#startedMillis = startedMillis
  }

  /** Begins the delivery of another record, or another delivery of the same one. Slots that are held stay: a quick handler takes over those of the one before. */
  begin(nowMillis: number): void {
    this.#startedMillis = nowMillis
    this.#pauses = 0
    this.#permit = undefined
    this.#wasCutOff = false
    this.#isAbandoned = false
  }

  // The clock

  /** When the delivery began, epoch milliseconds, without the time in which its clock was paused. */
  get startedMillis(): number {
    return this.#startedMillis
  }

  /** How much of its processing budget the delivery has used. */
  spentMillis(): number {
    return this.#spentMillis(this.#clock.currentTimeMillisUnsafe())
  }

  #spentMillis(nowMillis: number): number {
    return (this.#pauses > 0 ? this.#pausedSinceMillis : nowMillis) - this.#startedMillis
  }

  /** Stops the use of the processing budget until `resumeClock`. Pauses nest. */
  pauseClock(): void {
    if (this.#pauses++ === 0) this.#pausedSinceMillis = this.#clock.currentTimeMillisUnsafe()
  }

  resumeClock(): void {
    if (--this.#pauses === 0) this.#startedMillis += this.#clock.currentTimeMillisUnsafe() - this.#pausedSinceMillis
  }

  /** Pauses the clock while the effect runs: the record is not charged with the time that the broker takes for a transaction (ruling 18). */
  withClockPaused<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      this.pauseClock()
      return Effect.ensuring(
        effect,
        Effect.sync(() => this.resumeClock())
      )
    })
  }

  /** Within `withClockPaused`: the clock runs while the effect does. */
  withClockRunning<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      this.resumeClock()
      return Effect.ensuring(
        effect,
        Effect.sync(() => this.pauseClock())
      )
    })
  }

  /** The wall clock was set by `byMillis` while this clock ran. A paused clock notices that by itself when it is resumed. */
  wallClockWasSet(byMillis: number): void {
    if (this.#pauses === 0) this.#startedMillis += byMillis
  }

  /** The rest of a budget; infinite while the clock is paused. */
  remainingMillis(budgetMillis: number, nowMillis: number): number {
    return this.#pauses > 0 ? Number.POSITIVE_INFINITY : this.#startedMillis + budgetMillis - nowMillis
  }

  // Slots and permit

  /** True when a handler that starts now has its slots and its permit without waiting. Otherwise it needs `admit`. */
  tryAdmit(gate: StartGate): boolean {
    if (this.#leases.length > 0 && !this.#tryAcquireSlots(gate)) return false
    return this.#breaker === undefined || this.#tryAcquirePermit(this.#breaker, this.#startedMillis)
  }

  /**
   * Runs a handler as soon as it has its slots and its permit. The wait for them uses up no budget. The effect interrupts itself when the gate stops first, and where
   * the gate lets nothing wait. The caller calls `callEnded` at the end of the handler; `Partition.guard` does so for the calls in it.
   */
  admit<A, E, R>(gate: StartGate, run: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      if (this.tryAdmit(gate)) return run()
      this.pauseClock()
      const admitted = Effect.ensuring(
        this.#enter(gate),
        Effect.sync(() => this.resumeClock())
      )
      return Effect.flatMap(admitted, run)
    })
  }

  /** Returns when the gate is open, or stopping. Other deliveries can have the permit meanwhile. */
  waitOutPause(gate: StartGate): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (gate.open) return Effect.void
      this.releasePermit()
      return this.withClockPaused(gate.runnable)
    })
  }

  releaseSlots(): void {
    for (const lease of this.#leases) lease.release()
  }

  /** Gives the permit back although the delivery goes on: it asks for another permit before its next attempt. */
  releasePermit(): void {
    if (this.#permit !== undefined) this.#giveBackPermit(this.#permit, "released")
  }

  /** Whether the breaker has opened since the delivery got its permit: it makes no further attempt. */
  breakerHasOpened(): boolean {
    return this.#permit !== undefined && this.#breaker?.isCurrent(this.#permit) === false
  }

  // A run of the handler, and the end

  /** A fiber begins that the processing budget may cut off. */
  runBegins(): void {
    this.#isRunning = true
    this.#wasCutOff = false
  }

  runIsCutOff(): void {
    this.#wasCutOff = true
  }

  /** Whether the processing budget cut the last run off. */
  get wasCutOff(): boolean {
    return this.#wasCutOff
  }

  runEnded(exit: Exit.Exit<unknown, unknown>): void {
    this.#isRunning = false
    this.callEnded(exit)
    if (this.#isAbandoned) this.releasePermit()
  }

  /**
   * A call of the handler has ended. A failed one is not the end of its delivery yet and keeps the permit, and so does one that the processing budget has cut
   * off (ruling 18).
   */
  callEnded(exit: Exit.Exit<unknown, unknown>): void {
    this.releaseSlots()
    if (this.#permit === undefined) return
    if (Exit.isSuccess(exit)) this.#giveBackPermit(this.#permit, "success")
    else if (Exit.hasInterrupts(exit) && !this.#wasCutOff) this.#giveBackPermit(this.#permit, "released")
  }

  /** The handler succeeded, and the next record may take the slots over. */
  succeed(): void {
    if (this.#permit !== undefined) this.#giveBackPermit(this.#permit, "success")
    // Waiting for a commit is not handling: the budget has nothing to cut off. The clock stays paused until the next record begins.
    this.#pauses++
  }

  /** Records of a batch succeeded in one call. The breaker counts records: the permit of the call is the first one's. */
  succeedForEach(count: number): void {
    if (count === 0) this.releasePermit()
    if (this.#permit !== undefined) this.#giveBackPermit(this.#permit, "success")
    for (let told = 1; told < count; told++) {
      const permit = this.#breaker?.tryAcquire(this.#startedMillis)
      if (permit === undefined) return
      this.#giveBackPermit(permit, "success")
    }
  }

  /**
   * The delivery is over. The answer is true when the breaker is open now: a failed record stays in its place then. A failure is counted even when the delivery gave its
   * permit back before.
   */
  close(outcome: BreakerPermits.PermitOutcome): boolean {
    this.releaseSlots()
    const breaker = this.#breaker
    if (breaker === undefined) return false
    const counts = outcome === "failure" || outcome === "ignored"
    const permit = this.#permit ?? (counts ? breaker.tryAcquire(this.#clock.currentTimeMillisUnsafe()) : undefined)
    if (permit === undefined) return counts
    this.#giveBackPermit(permit, outcome)
    return !breaker.isCurrent(permit)
  }

  /** The fiber that delivers has ended, in whatever way. A handler that still runs keeps its slots and its permit until it ends. */
  readonly ensureClosed: Effect.Effect<void> = Effect.sync(() => {
    this.#isAbandoned = true
    if (!this.#isRunning) this.close("released")
  })

  #giveBackPermit(permit: number, outcome: BreakerPermits.PermitOutcome): void {
    this.#permit = undefined
    const nowMillis = this.#clock.currentTimeMillisUnsafe()
    this.#breaker?.giveBack(permit, outcome, Math.max(0, this.#spentMillis(nowMillis)), nowMillis)
  }

  #tryAcquirePermit(breaker: BreakerPermits.BreakerPermits, nowMillis: number): boolean {
    // The breaker may have opened while a later attempt of this delivery waited.
    if (this.#permit !== undefined && !breaker.isCurrent(this.#permit)) this.#permit = undefined
    this.#permit ??= breaker.tryAcquire(nowMillis)
    return this.#permit !== undefined
  }

  #tryAcquireSlots(gate: StartGate): boolean {
    if (gate.stopping || !gate.open) return false
    for (let index = 0; index < this.#leases.length; index++) {
      if (this.#leases[index]?.tryAcquire(this.#startedMillis)) continue
      this.#releaseSlotsFrom(index + 1)
      return false
    }
    return true
  }

  /** Never hold an inner slot while waiting for an outer one: the delivery that gets the outer slot first may wait for the inner one. */
  #releaseSlotsFrom(index: number): void {
    for (let inner = index; inner < this.#leases.length; inner++) this.#leases[inner]?.release()
  }

  /** Returns with slots and permit. */
  #enter(gate: StartGate): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (gate.stopping || (!gate.open && !gate.mayWait)) return Effect.interrupt
      if (!gate.open) {
        // Never hold slots or a permit during a pause: others can use them.
        this.releaseSlots()
        this.releasePermit()
        return Effect.andThen(gate.runnable, this.#enter(gate))
      }
      const breaker = this.#breaker
      const nowMillis = this.#clock.currentTimeMillisUnsafe()
      const missing = this.#leases.findIndex((each) => !each.acquire(nowMillis))
      const lease = this.#leases[missing]
      if (lease !== undefined) {
        if (!gate.mayWait) return Effect.interrupt
        // Never hold a permit while waiting for a slot: the holder of the slot may wait for the permit.
        this.releasePermit()
        this.#releaseSlotsFrom(missing + 1)
        return isHeldUp(gate, breaker) ? Effect.interrupt : Effect.andThen(lease.wait(gate, breaker), this.#enter(gate))
      }
      if (breaker === undefined || this.#tryAcquirePermit(breaker, nowMillis)) return Effect.void
      if (!gate.mayWait || gate.ending) return Effect.interrupt
      return Effect.andThen(breaker.waitForChange(gate), this.#enter(gate))
    })
  }
}
