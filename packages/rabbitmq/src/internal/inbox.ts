/** Messages that were delivered to a consumer and wait for a handler. RabbitMQ's prefetch bounds them. */
import * as Effect from "effect/Effect"
import type { Delivery } from "./session.ts"

const maxTaken = 1_024

/** A queue in memory. It forgets messages whose channel is gone: they come again. */
export class Inbox {
  #deliveries: Array<Delivery> = []
  #head = 0
  readonly #waiting: Array<(delivery: Effect.Effect<Delivery | undefined>) => void> = []
  #isClosed = false

  /** Adds a message behind all others. */
  add(delivery: Delivery): void {
    if (this.#isClosed) return
    const waiting = this.#waiting.shift()
    if (waiting === undefined) this.#deliveries.push(delivery)
    else waiting(Effect.succeed(delivery))
  }

  /** Puts messages back in front of all others. */
  putBack(deliveries: ReadonlyArray<Delivery>): void {
    const rest = this.#deliveries.slice(this.#head)
    this.#deliveries = []
    this.#head = 0
    for (const delivery of [...deliveries, ...rest]) this.add(delivery)
  }

  /** The next message, once there is one. Undefined when the inbox is closed. */
  readonly take: Effect.Effect<Delivery | undefined> = Effect.suspend(() => {
    const next = this.#isClosed ? undefined : this.#next()
    if (next !== undefined || this.#isClosed) return Effect.succeed(next)
    return Effect.callback<Delivery | undefined>((resume) => {
      this.#waiting.push(resume)
      return Effect.sync(() => {
        const at = this.#waiting.indexOf(resume)
        if (at >= 0) this.#waiting.splice(at, 1)
      })
    })
  })

  /** Further messages of the same topic and channel that are there already, at most so many. */
  more(first: Delivery, most: number): ReadonlyArray<Delivery> {
    const found: Array<Delivery> = []
    while (found.length < most) {
      const next = this.#next()
      if (next === undefined) break
      if (next.plan !== first.plan || next.session !== first.session) {
        this.putBack([next])
        break
      }
      found.push(next)
    }
    return found
  }

  /** Ends all that wait, and drops the messages that no handler has. */
  close(): void {
    this.#isClosed = true
    this.#deliveries = []
    this.#head = 0
    for (const waiting of this.#waiting.splice(0)) waiting(Effect.succeed(undefined))
  }

  /** Messages that were taken are cut off now and then, so that an inbox that is never empty does not grow. */
  #cutTaken(): void {
    this.#deliveries = this.#deliveries.slice(this.#head)
    this.#head = 0
  }

  #next(): Delivery | undefined {
    while (this.#head < this.#deliveries.length) {
      const next = this.#deliveries[this.#head++]!
      if (this.#head === maxTaken) this.#cutTaken()
      if (next.session.isAlive) return next
    }
    this.#deliveries = []
    this.#head = 0
    return undefined
  }
}
