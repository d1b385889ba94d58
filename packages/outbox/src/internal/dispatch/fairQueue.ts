/** Two bounded queues. While both have entries, two hot events are taken for one cold event, so that neither queue starves (outbox seed §9). */
import type * as Effect from "effect/Effect"
import { ConditionVariable } from "../base/conditionVariable.ts"

/** First in, first out, on one array whose used front is cut off now and then. */
class Fifo<A> {
  #items: Array<A | undefined> = []
  #head = 0
  get size(): number {
    return this.#items.length - this.#head
  }
  push(item: A): void {
    this.#items.push(item)
  }
  shift(): A | undefined {
    if (this.size === 0) return undefined
    const item = this.#items[this.#head]
    this.#items[this.#head++] = undefined
    if (this.#head === this.#items.length) {
      this.#items = []
      this.#head = 0
    } else if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }
}

/** How an event arrived: by the hot path after commit, or by the poller. */
export type Source = "HOT" | "COLD"

export interface FairQueue<A> {
  /** Adds an item. False when that queue is full. */
  readonly offer: (source: Source, item: A) => boolean
  /** Wakes idle workers. Called once after a batch of offers: a worker that finds one item runs it and looks again. */
  readonly wake: () => void
  /** Takes the next item; undefined when both queues are empty. */
  readonly take: () => A | undefined
  /** Waits until a queue has an item or the queues are closed. */
  readonly awaitItem: Effect.Effect<void>
  /** Ends all waits. */
  readonly close: () => void
  readonly size: (source: Source) => number
  /** Waits until the cold queue is at most half full. */
  readonly awaitColdCapacity: Effect.Effect<void>
}

export const makeFairQueue = <A>(capacity: { readonly hot: number; readonly cold: number }): FairQueue<A> => {
  const hot = new Fifo<A>()
  const cold = new Fifo<A>()
  let taken = 0
  let closed = false
  const items = new ConditionVariable()
  const coldCapacity = new ConditionVariable()
  const coldLowWater = Math.floor(capacity.cold / 2)

  const take = (): A | undefined => {
    if (hot.size === 0) return cold.shift()
    if (cold.size === 0) return hot.shift()
    taken = (taken + 1) % 3
    return taken === 0 ? cold.shift() : hot.shift()
  }

  return {
    offer: (source, item) => {
      const [queue, limit] = source === "HOT" ? [hot, capacity.hot] : [cold, capacity.cold]
      if (queue.size >= limit) return false
      queue.push(item)
      return true
    },
    wake: () => {
      if (!items.isEmpty) items.notifyReady()
    },
    take: () => {
      const item = take()
      if (!coldCapacity.isEmpty) coldCapacity.notifyReady()
      return item
    },
    awaitItem: items.await(() => closed || hot.size + cold.size > 0),
    close: () => {
      closed = true
      items.notifyReady()
      coldCapacity.notifyReady()
    },
    size: (source) => (source === "HOT" ? hot : cold).size,
    awaitColdCapacity: coldCapacity.await(() => closed || cold.size <= coldLowWater)
  }
}
