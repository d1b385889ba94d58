/** An in-memory broker with a fault plan, on virtual time. */
import { Broker, BrokerError } from "@eventbus/core"
import { FaultPlan, MemoryBroker, VirtualClock } from "@eventbus/testkit"
import { Effect, Layer } from "effect"
import { record, text } from "../../src/contract/harness.ts"

export const onBroker =
  (faults: ReadonlyArray<FaultPlan.Fault> = [], options: MemoryBroker.Options = {}) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    test.pipe(
      Effect.scoped,
      Effect.provide(
        Layer.provideMerge(MemoryBroker.layer({ ...options, faults: FaultPlan.make(faults) }), VirtualClock.layer)
      )
    )

export const values = (topic: string) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, (memory) =>
    Effect.map(memory.log(topic, 0), (log) => log.map((one) => text(one.value)))
  )

export const setUp = Effect.fnUntraced(function* (partitions = 1) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("t", { partitions })
  return memory
})

export const send = (value: string, options: Broker.ProducerOptions = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      const broker = yield* Broker.Broker
      const producer = yield* broker.producer(options)
      return yield* producer.send(record("t", value))
    })
  )

export const down = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "as planned" })
export const produce = { operation: "produce", topic: "t" } as const
