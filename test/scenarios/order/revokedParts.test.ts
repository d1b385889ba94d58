/** Parts of a unit that are revoked one after the other, as by a leader that does not know units. */
import { assert, describe } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Queue } from "effect"
import { advance, scenario, start } from "../bus.ts"
import { keyed } from "./keys.ts"

const ready = Effect.flatMap(MemoryBroker.MemoryBroker, (memory) => memory.createTopic("orders"))

describe("parts of a unit that are revoked one after the other", () => {
  scenario("PKO-03 a part that is revoked while it opens again does not open", () =>
    Effect.gen(function* () {
      yield* ready
      const inner = yield* Broker.Broker
      let sessions: Queue.Queue<Broker.ConsumerEvent, never> | undefined
      let isSlow = false
      const released: Array<string> = []
      const revoked = (topic: string): Broker.ConsumerEvent => ({
        ...{ _tag: "Revoked", generation: 1, partitions: [{ topic, partition: 0 }] },
        release: Effect.sync(() => void released.push(topic))
      })
      const broker: Broker.Broker["Service"] = {
        ...inner,
        consumer: (options) =>
          Effect.gen(function* () {
            const session = yield* inner.consumer(options)
            const events = yield* Queue.unbounded<Broker.ConsumerEvent>()
            sessions = events
            yield* Queue.takeAll(session.events).pipe(
              Effect.flatMap((taken) => Queue.offerAll(events, taken)),
              Effect.forever,
              Effect.ignore,
              Effect.forkScoped
            )
            const resume: typeof session.resume = (partitions) =>
              Effect.andThen(Effect.sleep(isSlow ? "3 seconds" : 0), session.resume(partitions))
            return { ...session, resume, events }
          })
      }
      const { binding } = keyed({})
      const app = yield* Effect.provideService(start(binding), Broker.Broker, broker)
      yield* advance("5 seconds")
      isSlow = true
      yield* Queue.offer(sessions!, revoked("orders"))
      // The retry partition has ended with its unit, and opens again.
      yield* advance("1 second")
      yield* Queue.offer(sessions!, revoked("orders.retry-1"))
      yield* advance("10 seconds")
      assert.deepStrictEqual([...released].sort(), ["orders", "orders.retry-1"])
      const { partitions } = yield* app.connector.snapshot("orders")
      assert.deepStrictEqual(
        partitions.map(({ topic }) => topic),
        []
      )
    })
  )
})
