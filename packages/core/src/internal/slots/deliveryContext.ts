/**
 * One delivery of a record: from the moment at which it asks for a slot to its outcome. It alone holds the record's budget clock, its concurrency slots and its
 * breaker permit, and gives each of them back in one place: the clock in `BudgetClock.resume`, the slots in `releaseSlots`, the permit in `#giveBackPermit`.
 * A scheduler that handles one record after the other uses one object for all of them, and begins it anew for each.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ConsumerRecord, RecordPosition } from "../../ConsumerRecord.ts"
import type * as BreakerPermits from "./breakerPermits.ts"
import { BudgetClock } from "./budgetClock.ts"
import type { ConcurrencyLimits } from "./concurrencyLimits.ts"
import { isHeldUp, type SlotLease } from "./concurrencySlots.ts"
import type { StartGate } from "./startGate.ts"

const noLeases: ReadonlyArray<SlotLease> = []

export class DeliveryContext {
  /** The clock of its processing budget. */
  readonly clock: BudgetClock
  /** Whether the last attempt has reached its handler: not one whose partition stops while it waits for slots and permit. */
  wasAdmitted = false
  /** Whether the processing budget cut the last run off. */
  wasCutOff = false
  readonly #breaker: BreakerPermits.BreakerPermits | undefined
  /** The outermost first. */
  readonly #leases: ReadonlyArray<SlotLease>
  #permit: number | undefined = undefined
  /** The record that makes the trial call of a half-open breaker. */
  #trialOf: ConsumerRecord | undefined = undefined
  /** The record that `waitForBreaker` may have brought the choice for a trial. */
  #chosenAs: ConsumerRecord | undefined = undefined
  /** The record, by its origin, that the outcome counts for; undefined where that makes no difference. */
  #origin: RecordPosition | undefined = undefined
  #isRunning = false
  #isAbandoned = false

  constructor({ slots, breaker, clock }: ConcurrencyLimits, startedMillis: number) {
    this.clock = new BudgetClock(clock, startedMillis)
    this.#breaker = breaker
    this.#leases = slots.length === 0 ? noLeases : slots.map((each) => each.lease())
  }

  /** Begins the delivery of another record, or another delivery of the same one. Slots that are held stay: a quick handler takes over those of the one before. */
  begin(nowMillis: number): void {
    this.clock.restart(nowMillis)
    this.#permit = undefined
    this.#trialOf = undefined
    this.#origin = undefined
    this.wasCutOff = false
    this.#isAbandoned = false
  }

  // Slots and permit

  /** True when a handler that starts now has its slots and its permit without waiting. Otherwise it needs `admit`. */
  tryAdmit(gate: StartGate): boolean {
    const hasSlots = this.#leases.length === 0 || this.#tryAcquireSlots(gate)
    this.wasAdmitted =
      hasSlots && (this.#breaker === undefined || this.#tryAcquirePermit(this.#breaker, this.clock.startedMillis, gate))
    return this.wasAdmitted
  }

  /**
   * Runs a handler as soon as it has its slots and its permit. The wait for them uses up no budget. The effect interrupts itself when the gate stops first, and where
   * the gate lets nothing wait. The caller calls `callEnded` at the end of the handler; `Partition.guard` does so for the calls in it.
   */
  admit<A, E, R>(gate: StartGate, run: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      if (this.tryAdmit(gate)) return run()
      this.clock.pause()
      const admitted = Effect.ensuring(
        this.#enter(gate),
        Effect.sync(() => {
          this.clock.resume()
          this.#breaker?.pass(gate.current)
        })
      )
      return Effect.flatMap(admitted, () => {
        this.wasAdmitted = true
        return run()
      })
    })
  }

  /**
   * Returns when the breaker may have a permit for the gate's record, or when the gate stops: for a delivery that begins something before its call, and must not wait
   * in the middle of it.
   */
  waitForBreaker(gate: StartGate): Effect.Effect<void> {
    return Effect.suspend(() => {
      const breaker = this.#breaker
      if (breaker === undefined || this.#permit !== undefined || gate.ending) return Effect.void
      if (gate.open && breaker.admits(gate.current)) return Effect.void
      this.#chosenAs = gate.current
      // Never hold the choice during a pause: others can use it.
      if (!gate.open) breaker.pass(gate.current)
      const change = gate.open ? breaker.waitForChoice(gate) : gate.runnable
      return Effect.andThen(this.clock.whilePaused(change), this.waitForBreaker(gate))
    })
  }

  /** Returns when the gate is open, or stopping. Other deliveries can have the permit meanwhile. */
  waitOutPause(gate: StartGate): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (gate.open) return Effect.void
      this.releasePermit()
      return this.clock.whilePaused(gate.runnable)
    })
  }

  releaseSlots(): void {
    this.#releaseSlotsFrom(0)
  }

  /** Gives the permit back although the delivery goes on: it asks for another permit before its next attempt. */
  releasePermit(): void {
    if (this.#permit !== undefined) this.#giveBackPermit(this.#permit, "released")
  }

  /** Whether this is the trial call of a half-open breaker: it is one call for one record (ruling 72). */
  get isTrial(): boolean {
    return this.#trialOf !== undefined
  }

  /** Whether the breaker counts the outcome. */
  get counts(): boolean {
    return this.#breaker !== undefined
  }

  /** Whether the breaker's window has failures that the outcome of a later delivery replaces. */
  get remembersFailures(): boolean {
    return this.#breaker?.remembersFailures() === true
  }

  /** The outcome counts for this record: it replaces a failure of the same record. */
  countFor(origin: RecordPosition): void {
    this.#origin = origin
  }

  /** Whether the breaker has opened since the delivery got its permit: it makes no further attempt. */
  breakerHasOpened(): boolean {
    return this.#permit !== undefined && this.#breaker?.isCurrent(this.#permit) === false
  }

  /** A fiber begins that the processing budget may cut off. */
  runBegins(): void {
    this.#isRunning = true
    this.wasCutOff = false
  }

  runIsCutOff(): void {
    this.wasCutOff = true
  }

  runEnded(exit: Exit.Exit<unknown, unknown>): void {
    this.#isRunning = false
    this.callEnded(exit)
    // A run that waited for the breaker may have been chosen for a trial.
    if (this.#isAbandoned) this.close("released")
  }

  /**
   * A call of the handler has ended. A failed one is not the end of its delivery yet and keeps the permit, and so does one that the processing budget has cut
   * off (ruling 18).
   */
  callEnded(exit: Exit.Exit<unknown, unknown>): void {
    this.releaseSlots()
    if (this.#permit === undefined) return
    if (Exit.isSuccess(exit)) this.#giveBackPermit(this.#permit, "success")
    else if (Exit.hasInterrupts(exit) && !this.wasCutOff) this.#giveBackPermit(this.#permit, "released")
  }

  /** The handler succeeded, and the next record may take the slots over. Answers the time where the breaker had to know it, epoch milliseconds. */
  succeed(): number | undefined {
    this.wasAdmitted = false
    const nowMillis = this.#permit === undefined ? undefined : this.#giveBackPermit(this.#permit, "success")
    // Waiting for a commit is not handling: the budget has nothing to cut off. The clock stays paused until the next record begins.
    this.clock.stop()
    return nowMillis
  }

  /** Records of a batch succeeded in one call. The breaker counts records: the permit of the call is the first one's. `originOf`: the records that they count for. */
  succeedForEach(count: number, originOf?: (at: number) => RecordPosition): void {
    if (count === 0) this.releasePermit()
    if (this.#permit !== undefined) {
      this.#origin = originOf?.(0)
      this.#giveBackPermit(this.#permit, "success")
    }
    for (let told = 1; told < count; told++) {
      const permit = this.#breaker?.tryAcquire(this.clock.startedMillis, undefined)
      if (permit === undefined) return
      this.#origin = originOf?.(told)
      this.#giveBackPermit(permit, "success")
    }
  }

  /**
   * The delivery is over. The answer is true when a failed record stays in its place: the breaker is open now, or the call was a trial. A failure is counted even when
   * the delivery gave its permit back before.
   */
  close(outcome: BreakerPermits.PermitOutcome): boolean {
    this.releaseSlots()
    const breaker = this.#breaker
    if (breaker === undefined) return false
    if (this.#chosenAs !== undefined) {
      breaker.pass(this.#chosenAs)
      this.#chosenAs = undefined
    }
    const counts = outcome === "failure" || outcome === "ignored"
    const permit = this.#permit ?? (counts ? breaker.tryAcquire(this.clock.nowMillis(), undefined) : undefined)
    if (permit === undefined) return counts
    const failedTrial = outcome === "failure" ? this.#trialOf : undefined
    const staysInPlace = failedTrial !== undefined && breaker.staysInPlace(failedTrial)
    this.#giveBackPermit(permit, outcome)
    return failedTrial === undefined ? !breaker.isCurrent(permit) : staysInPlace
  }

  /** The fiber that delivers has ended, in whatever way. A handler that still runs keeps its slots and its permit until it ends. */
  readonly ensureClosed: Effect.Effect<void> = Effect.sync(() => {
    this.#isAbandoned = true
    if (!this.#isRunning) this.close("released")
  })

  /** Answers the time, epoch milliseconds. */
  #giveBackPermit(permit: number, outcome: BreakerPermits.PermitOutcome): number {
    this.#permit = undefined
    const nowMillis = this.clock.nowMillis()
    const durationMillis = Math.max(0, this.clock.spentMillisAt(nowMillis))
    const record = this.#trialOf
    if (record !== undefined) this.#breaker?.endTrial(record, permit, outcome, durationMillis)
    else this.#breaker?.giveBack(permit, outcome, durationMillis, nowMillis, this.#origin)
    return nowMillis
  }

  #tryAcquirePermit(breaker: BreakerPermits.BreakerPermits, nowMillis: number, gate: StartGate): boolean {
    // The breaker may have opened while a later attempt of this delivery waited.
    if (this.#permit !== undefined) {
      if (breaker.isCurrent(this.#permit)) return true
      this.#permit = undefined
    }
    // A record that must not wait is not the first one of its transaction, and a trial is for one record alone.
    const record = gate.mayWait ? gate.current : undefined
    const permit = breaker.tryAcquire(nowMillis, record)
    this.#permit = permit
    this.#trialOf = permit !== undefined && breaker.isTrial(permit) ? record : undefined
    return permit !== undefined
  }

  #tryAcquireSlots(gate: StartGate): boolean {
    if (gate.stopping || !gate.open) return false
    for (let index = 0; index < this.#leases.length; index++) {
      if (this.#leases[index]?.tryAcquire(this.clock.startedMillis)) continue
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
        // Never hold slots, a permit or the choice for a trial during a pause: others can use them.
        this.releaseSlots()
        this.releasePermit()
        this.#breaker?.pass(gate.current)
        return Effect.andThen(gate.runnable, this.#enter(gate))
      }
      const breaker = this.#breaker
      if (breaker !== undefined && this.#permit === undefined && !breaker.admits(gate.current)) {
        return this.#waitForBreaker(breaker, gate)
      }
      const nowMillis = this.clock.nowMillis()
      const missing = this.#leases.findIndex((each) => !each.acquire(nowMillis))
      const lease = this.#leases[missing]
      if (lease !== undefined) {
        if (!gate.mayWait) return Effect.interrupt
        // Never hold a permit while waiting for a slot: the holder of the slot may wait for it. It stays chosen for its trial: two records would pass choice and slot to each other for ever.
        this.releasePermit()
        this.#releaseSlotsFrom(missing + 1)
        return isHeldUp(gate, breaker) ? Effect.interrupt : Effect.andThen(lease.wait(gate, breaker), this.#enter(gate))
      }
      if (breaker === undefined || this.#tryAcquirePermit(breaker, nowMillis, gate)) return Effect.void
      return this.#waitForBreaker(breaker, gate)
    })
  }

  /** Holds no slot meanwhile: a record that cannot be tried now must not keep others from their trial. */
  #waitForBreaker(breaker: BreakerPermits.BreakerPermits, gate: StartGate): Effect.Effect<void> {
    if (!gate.mayWait || gate.ending) return Effect.interrupt
    this.releaseSlots()
    return Effect.andThen(breaker.waitForChoice(gate), this.#enter(gate))
  }
}
