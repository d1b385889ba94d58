import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import * as CircuitBreaker from "../src/CircuitBreaker.ts"
import * as Distribution from "../src/internal/distribution.ts"
import * as EventHub from "../src/internal/eventHub.ts"
import * as Partition from "../src/internal/partition.ts"

const partition = () =>
  Effect.runSync(
    Partition.make({
      topic: "orders",
      partition: 0,
      generation: 1,
      position: 0n,
      committed: -1n,
      logEnd: 0n,
      tier: undefined,
      tally: { processed: 0, otherwise: 0, retries: Distribution.make([]) },
      highWater: () => ({ records: 10, bytes: 10 }),
      session: { pause: () => Effect.void, resume: () => Effect.void },
      onFetchPaused: () => {},
      onFetchResumed: () => {}
    })
  )

const breaker = () => Effect.runSync(Effect.scoped(CircuitBreaker.make()))

const event = {
  _tag: "StateChanged",
  binding: "orders",
  cluster: "default",
  from: "STOPPED",
  to: "RUNNING",
  reasons: []
} as const

/** Who calls listeners: how one is added, and how all are told. */
const tellers = {
  "the stop of a partition": () => {
    const at = partition()
    return { add: (listener: () => void) => at.onStop(listener), tell: () => at.stop() }
  },
  "a circuit breaker": () => {
    const of = breaker()
    return { add: (listener: () => void) => of.onChange(listener), tell: () => Effect.runSync(of.forceOpen) }
  },
  events: () => {
    const hub = EventHub.make(() => {})
    return { add: (listener: () => void) => hub.subscribe(listener), tell: () => hub.emit(event) }
  }
}

describe("listeners that come and go while they are told", () => {
  for (const [name, make] of Object.entries(tellers)) {
    it(`${name}: one that listens anew in its call is called once`, () => {
      const { add, tell } = make()
      let calls = 0
      const listen = () => {
        const remove = add(() => {
          if (++calls > 100) throw new Error("called for ever")
          remove()
          listen()
        })
      }
      listen()
      tell()
      expect(calls).toBe(1)
    })

    it(`${name}: one that another one removes in its call is not called`, () => {
      const { add, tell } = make()
      const called: Array<string> = []
      let remove = () => {}
      add(() => {
        called.push("first")
        remove()
      })
      remove = add(() => called.push("second"))
      tell()
      expect(called).toEqual(["first"])
    })
  }
})
