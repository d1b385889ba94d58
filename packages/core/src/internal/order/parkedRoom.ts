/**
 * How many keys may be parked at once in all units of a consumer (`perKey.maxParkedKeys`).
 */
import type * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"

export class ParkedRoom {
  readonly #most: number
  readonly #latch = Latch.makeUnsafe(true)
  #keys = 0

  /** With `most` keys, no record of a main topic starts. */
  constructor(most: number) {
    this.#most = most
  }

  get isOpen(): boolean {
    return this.#keys < this.#most
  }

  /** Returns when there is room. */
  get open(): Effect.Effect<void> {
    return this.#latch.await
  }

  /** So many keys more are parked, or fewer. */
  add(keys: number): void {
    this.#keys += keys
    if (this.isOpen) this.#latch.openUnsafe()
    else this.#latch.closeUnsafe()
  }
}
