/**
 * Lanes: work in order per aggregate, side by side over aggregates. An aggregate with events in memory has one lane. Lanes with work
 * are in a queue that workers take from.
 */
import { ConditionVariable } from "../base/conditionVariable.ts"

/** The events of one aggregate, oldest first. */
export interface Lane<A> {
  readonly key: string
  readonly events: Array<A>
  /** In the queue of ready lanes, or with a worker. */
  busy: boolean
}

export class Lanes<A> {
  readonly #lanes = new Map<string, Lane<A>>()
  #ready: Array<Lane<A>> = []
  #head = 0
  readonly #readyOrClosed = new ConditionVariable()
  #closed = false

  /** Waits until a lane is ready, or `close` was called. */
  readonly awaitReady = this.#readyOrClosed.await(() => this.#closed || this.hasWork)

  /** Appends an event to its aggregate's lane. */
  push(key: string, event: A): void {
    let lane = this.#lanes.get(key)
    if (lane === undefined) {
      lane = { key, events: [], busy: false }
      this.#lanes.set(key, lane)
    }
    lane.events.push(event)
    if (lane.busy) return
    lane.busy = true
    this.#enqueue(lane)
  }

  /** The next lane with work, for one worker. The worker hands it back with `done`. */
  take(): Lane<A> | undefined {
    const lane = this.#ready[this.#head]
    if (lane === undefined) return undefined
    this.#head++
    if (this.#head === this.#ready.length) {
      this.#ready = []
      this.#head = 0
    }
    return lane
  }

  /** Ends a worker's visit to the lane. A lane with events left is queued again. */
  done(lane: Lane<A>): void {
    if (lane.events.length > 0) {
      this.#enqueue(lane)
      return
    }
    lane.busy = false
    this.#lanes.delete(lane.key)
  }

  /** Removes events from a lane, for example those behind a failed one; returns them. */
  remove(lane: Lane<A>, which: (event: A) => boolean): ReadonlyArray<A> {
    const removed = lane.events.filter(which)
    lane.events.splice(0, lane.events.length, ...lane.events.filter((event) => !which(event)))
    return removed
  }

  get hasWork(): boolean {
    return this.#head < this.#ready.length
  }

  /** Ends all waits. */
  close(): void {
    this.#closed = true
    this.#readyOrClosed.notifyReady()
  }

  #enqueue(lane: Lane<A>): void {
    this.#ready.push(lane)
    this.#readyOrClosed.notifyOne()
  }
}
