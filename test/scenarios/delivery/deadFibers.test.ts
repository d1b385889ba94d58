/** Ruling 86: a fiber beside the loop of a partition that dies ends the session, as any other defect does, and the next session handles its records. */
import { assert, describe } from "@effect/vitest"
import { Binding, Broker, RetryPolicy } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, append, orders, scenario, start, valuesOf } from "../bus.ts"

const dead = Effect.die(new Error("the adapter has a mistake"))

/** Calls of the adapter, the first of which dies. */
const firstDies = <Arguments extends ReadonlyArray<unknown>, A, E>(
  call: (...given: Arguments) => Effect.Effect<A, E>
) => {
  let calls = 0
  return (...given: Arguments) => Effect.suspend(() => (calls++ === 0 ? dead : call(...given)))
}

type Service = Broker.Broker["Service"]

/** Every producer of the adapter has the same mistake. */
const withProducers = (change: (producer: Broker.Producer) => Partial<Broker.Producer>) => (broker: Service) => ({
  ...broker,
  producer: (options?: Broker.ProducerOptions) =>
    Effect.map(broker.producer(options), (producer) => ({ ...producer, ...change(producer) }))
})

interface Calls {
  made: number
}

/** All sessions of the adapter have one mistake in common. */
const withSessions =
  (change: (session: Broker.ConsumerSession, calls: Calls) => Partial<Broker.ConsumerSession>) =>
  (broker: Service): Service => {
    const calls = { made: 0 }
    return {
      ...broker,
      consumer: (options) =>
        Effect.map(broker.consumer(options), (session) => ({ ...session, ...change(session, calls) }))
    }
  }

const mistakes: Readonly<Record<string, readonly [object, (broker: Service) => Service]>> = {
  "the lane of a record": [
    { processingOrder: "unordered", ackMode: "MANUAL_IMMEDIATE" },
    withProducers(({ send }) => ({ send: firstDies(send) }))
  ],
  "the lane of a key": [
    { processingOrder: "key", ackMode: "MANUAL_IMMEDIATE" },
    withProducers(({ send }) => ({ send: firstDies(send) }))
  ],
  "pending copies": [{ ackMode: "MANUAL" }, withProducers(({ sendEach }) => ({ sendEach: firstDies(sendEach) }))],
  "pending copies of lanes": [
    { processingOrder: "unordered", ackMode: "MANUAL" },
    withProducers(({ sendEach }) => ({ sendEach: firstDies(sendEach) }))
  ],
  "the committer": [
    {},
    withSessions((session, calls) => ({
      commit: (offsets) => Effect.suspend(() => (calls.made++ === 0 ? dead : session.commit(offsets)))
    }))
  ]
}

describe("ruling 86: a fiber beside the loop of a partition dies", () => {
  for (const [name, [settings, withMistake]] of Object.entries(mistakes)) {
    scenario(`LIF-17 ${name}: the session ends, and the next one handles what is left`, () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["first", "bad", "behind"])
        const handler = ({ value }: { readonly value: string }) =>
          value === "bad" ? Effect.fail("declined" as never) : Effect.void
        const app = yield* start(
          Binding.make("orders", { ...orders, ...settings, retry: RetryPolicy.none, handler })
        ).pipe(Effect.provideService(Broker.Broker, withMistake(memory.broker)))
        for (let second = 0; second < 30; second++) yield* advance("1 second")
        assert.lengthOf(app.of("SessionCrashed"), 1)
        assert.include(String(app.of("SessionCrashed")[0]?.error.message), "the adapter has a mistake")
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["bad"])
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
      })
    )
  }

  scenario("LIF-17 ruling 85 the look for the first offset of an added partition: the next session begins there", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const handled: Array<string> = []
      const binding = Binding.make("orders", {
        ...{ ...orders, autoOffsetReset: "latest" },
        handler: ({ value }) => Effect.sync(() => handled.push(value))
      })
      const app = yield* start(binding)
      yield* advance("1 second")
      yield* app.close
      yield* Effect.scoped(Effect.flatMap(memory.broker.admin, (admin) => admin.createPartitions("orders", 2)))
      yield* append("orders", 1, ["a", "b"])
      const { broker } = memory
      let looks = 0
      const mistaken: Service = {
        ...broker,
        admin: Effect.map(broker.admin, (admin) => ({
          ...admin,
          offsetsForTimestamp: (topic, millis) =>
            Effect.suspend(() => (looks++ === 0 ? dead : admin.offsetsForTimestamp(topic, millis)))
        }))
      }
      const again = yield* Effect.provideService(start(binding), Broker.Broker, mistaken)
      for (let second = 0; second < 10; second++) yield* advance("1 second")
      assert.lengthOf(again.of("SessionCrashed"), 1)
      assert.deepStrictEqual(handled, ["a", "b"])
    })
  )

  scenario(
    "LIF-17 the restart of a partition whose transaction failed: the next session handles it",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        yield* append("orders", 0, ["a"])
        const handler = () => Effect.void
        const mistaken = withSessions(({ resume }, calls) => ({
          resume: (partitions) => Effect.suspend(() => (calls.made++ === 1 ? dead : resume(partitions)))
        }))(memory.broker)
        const app = yield* start(Binding.makeTransactional("orders", { ...orders, handler })).pipe(
          Effect.provideService(Broker.Broker, mistaken)
        )
        for (let second = 0; second < 60; second++) yield* advance("1 second")
        assert.lengthOf(app.of("TransactionFailed"), 1)
        assert.lengthOf(app.of("SessionCrashed"), 1)
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
      }),
    {
      faults: FaultPlan.make([FaultPlan.nth(2, { operation: "endTransaction" }, { _tag: "LoseRequest" })]),
      requestTimeout: "5 seconds"
    }
  )
})
