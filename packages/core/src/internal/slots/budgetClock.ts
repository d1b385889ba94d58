/**
 * The clock of a delivery's processing budget: it runs while the handler is tried and between its attempts, and stands still in every other wait.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

export class BudgetClock {
  readonly #clock: Clock.Clock
  /** When the delivery began, moved on by all the time in which its clock was paused. */
  #startedMillis: number
  /** How often the clock was paused and not resumed since. */
  #pauses = 0
  #pausedSinceMillis = 0

  constructor(clock: Clock.Clock, startedMillis: number) {
    this.#clock = clock
    this.#startedMillis = startedMillis
  }

  restart(nowMillis: number): void {
    this.#startedMillis = nowMillis
    this.#pauses = 0
  }

  /** The clock stays paused until it is restarted. */
  stop(): void {
    this.#pauses++
  }

  /** When the delivery began, epoch milliseconds, without the time in which its clock was paused. */
  get startedMillis(): number {
    return this.#startedMillis
  }

  nowMillis(): number {
    return this.#clock.currentTimeMillisUnsafe()
  }

  /** How much of its processing budget the delivery has used. */
  spentMillis(): number {
    return this.spentMillisAt(this.nowMillis())
  }

  spentMillisAt(nowMillis: number): number {
    return (this.#pauses > 0 ? this.#pausedSinceMillis : nowMillis) - this.#startedMillis
  }

  /** Stops the use of the processing budget until `resume`. Pauses nest. */
  pause(): void {
    if (this.#pauses++ === 0) this.#pausedSinceMillis = this.nowMillis()
  }

  resume(): void {
    if (--this.#pauses === 0) this.#startedMillis += this.nowMillis() - this.#pausedSinceMillis
  }

  /** Pauses the clock while the effect runs: the record is not charged with the time that the broker takes for a transaction (ruling 18). */
  whilePaused<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      this.pause()
      return Effect.ensuring(
        effect,
        Effect.sync(() => this.resume())
      )
    })
  }

  /** Within `whilePaused`: the clock runs while the effect does. */
  whileRunning<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      this.resume()
      return Effect.ensuring(
        effect,
        Effect.sync(() => this.pause())
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
}
