/**
 * Two bounded queues that are drained 2 hot : 1 cold while both have entries, so that neither starves. Whoever finds both empty
 * waits for a wake-up.
 */
import { Effect } from "effect"

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
  readonly take: () => A | undefined
  /** Waits until something may be there, or `wakeAll` was called. */
  readonly awaitItem: Effect.Effect<void>
  readonly wakeAll: () => void
  readonly size: (source: "HOT" | "COLD") => number
  /** Waits until the cold queue is at most half full. */
  readonly awaitColdRoom: Effect.Effect<void>
}

export const makeFairQueue = <A>(capacity: { readonly hot: number; readonly cold: number }): FairQueue<A> => {
  const hot = new Fifo<A>()
  const cold = new Fifo<A>()
  let turn = 0
  const idle: Array<() => void> = []
  const waitingForRoom: Array<() => void> = []
  const coldLowWater = Math.floor(capacity.cold / 2)

  // A resumed fiber runs at once and may wait anew, so the list is emptied before anyone is resumed.
  const release = (waiting: Array<() => void>): void => {
    for (const resume of waiting.splice(0)) resume()
  }
  const waitIn = (list: Array<() => void>) =>
    Effect.callback<void>((resume) => {
      const wake = () => resume(Effect.void)
      list.push(wake)
      return Effect.sync(() => {
        const at = list.indexOf(wake)
        if (at >= 0) list.splice(at, 1)
      })
    })

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
      idle.pop()?.()
      return true
    },
    take: () => {
      const item = take()
      if (waitingForRoom.length > 0 && cold.size <= coldLowWater) release(waitingForRoom)
      return item
    },
    awaitItem: Effect.suspend(() => (hot.size + cold.size > 0 ? Effect.void : waitIn(idle))),
    wakeAll: () => {
      release(idle)
      release(waitingForRoom)
    },
    size: (source) => (source === "HOT" ? hot : cold).size,
    awaitColdRoom: Effect.suspend(() => (cold.size <= coldLowWater ? Effect.void : waitIn(waitingForRoom)))
  }
}
