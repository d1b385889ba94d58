/**
 * Two bounded queues that are drained 2 hot : 1 cold while both have entries, so that neither starves. Whoever finds both empty
 * waits for a wake-up.
 */
import type { Effect } from "effect"
import { ConditionVariable } from "../base/conditionVariable.ts"

/** First in, first out, on one array whose taken front is cut off now and then. */
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

export interface FairQueue<A> {
  /** False when that queue is full. */
  readonly offer: (source: "HOT" | "COLD", item: A) => boolean
  /** Items that were offered are taken from now on: once for a batch, since a worker that finds one item runs it and waits anew. */
  readonly wake: () => void
  readonly take: () => A | undefined
  /** Waits until something may be there, or the queue is closed. */
  readonly awaitItem: Effect.Effect<void>
  /** Nobody waits any more. */
  readonly close: () => void
  readonly size: (source: "HOT" | "COLD") => number
  /** Waits until the cold queue is at most half full. */
  readonly awaitColdCapacity: Effect.Effect<void>
}

export const makeFairQueue = <A>(capacity: { readonly hot: number; readonly cold: number }): FairQueue<A> => {
  const hot = new Fifo<A>()
  const cold = new Fifo<A>()
  let turn = 0
  let closed = false
  const idle = new ConditionVariable()
  const waitingForRoom = new ConditionVariable()
  const coldLowWater = Math.floor(capacity.cold / 2)

  const take = (): A | undefined => {
    if (hot.size === 0) return cold.shift()
    if (cold.size === 0) return hot.shift()
    turn = (turn + 1) % 3
    return turn === 0 ? cold.shift() : hot.shift()
  }

  return {
    offer: (source, item) => {
      const [queue, limit] = source === "HOT" ? [hot, capacity.hot] : [cold, capacity.cold]
      if (queue.size >= limit) return false
      queue.push(item)
      return true
    },
    wake: () => {
      if (!idle.isEmpty) idle.notifyReady()
    },
    take: () => {
      const item = take()
      if (!waitingForRoom.isEmpty) waitingForRoom.notifyReady()
      return item
    },
    awaitItem: idle.await(() => closed || hot.size + cold.size > 0),
    close: () => {
      closed = true
      idle.notifyReady()
      waitingForRoom.notifyReady()
    },
    size: (source) => (source === "HOT" ? hot : cold).size,
    awaitColdCapacity: waitingForRoom.await(() => closed || cold.size <= coldLowWater)
  }
}
