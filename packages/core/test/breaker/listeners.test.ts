import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import * as CircuitBreaker from "../../src/CircuitBreaker.ts"
import * as EventHub from "../../src/internal/observe/eventHub.ts"
import { onePartition } from "../onePartition.ts"

const partition = () => Effect.runSync(onePartition(0n))

const breaker = () => Effect.runSync(Effect.scoped(CircuitBreaker.make()))

const event = {
  _tag: "StateChanged",
  binding: "orders",
  cluster: "default",
  from: "STOPPED",
  to: "RUNNING",
  reasons: []
} as const

/** Each source of notifications: how to add a listener, and how to notify all. */
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

describe("listeners that are added and removed during a notification", () => {
  for (const [name, make] of Object.entries(tellers)) {
    it(`${name}: a listener that subscribes again during its call is called once`, () => {
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

    it(`${name}: a listener that another one removes during its call is not called`, () => {
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
