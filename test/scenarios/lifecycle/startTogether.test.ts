import { assert, describe } from "@effect/vitest"
import { Binding, Broker, EventBusConnector, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Context, Effect, Layer } from "effect"
import { advance, orders, scenario, settle } from "../bus.ts"

/** Reads a topic of its own, `source-{n}`, with two tiers. */
const binding = (n: number) =>
  Binding.make(`binding-${n}`, {
    ...orders,
    topic: `source-${n}`,
    groupId: `group-${n}`,
    retry: RetryPolicy.tiered({ tiers: ["1 minute", "5 minutes"] }),
    handler: () => Effect.void
  })

const retryTopics = (n: number) => [`source-${n}.retry-1`, `source-${n}.retry-2`]

interface Asked {
  readonly lists: Array<true>
  readonly creations: Array<ReadonlyArray<Broker.NewTopic>>
}

/** The cluster, with what it is asked for noted down; `change` stands in for parts of its administration. */
const watched = Effect.fnUntraced(function* (change: (admin: Broker.Admin) => Partial<Broker.Admin> = () => ({})) {
  const { broker } = yield* MemoryBroker.MemoryBroker
  const asked: Asked = { lists: [], creations: [] }
  const watchedBroker = Broker.Broker.of({
    ...broker,
    admin: Effect.map(broker.admin, (admin) => {
      const changed = { ...admin, ...change(admin) }
      return {
        ...changed,
        listTopics: Effect.tap(changed.listTopics, () => Effect.sync(() => asked.lists.push(true))),
        createTopics: (topics: ReadonlyArray<Broker.NewTopic>) =>
          Effect.andThen(
            Effect.sync(() => asked.creations.push(topics)),
            changed.createTopics(topics)
          )
      }
    })
  })
  const context = yield* Layer.build(
    EventBusConnector.layer.pipe(Layer.provideMerge(Layer.succeed(Broker.Broker, watchedBroker)))
  )
  const connector = Context.get(context, EventBusConnector.EventBusConnector)
  const register = (...numbers: ReadonlyArray<number>) =>
    Effect.provideContext(
      Effect.forEach(numbers, (n) => connector.register(binding(n)), { concurrency: "unbounded", discard: true }),
      context
    )
  /** How many partitions of main topic and retry topics each binding reads. */
  const partitions = Effect.map(connector.listBindings, (all) => all.map((each) => each.partitions.length))
  return { asked, register, partitions }
})

const range = (count: number) => Array.from({ length: count }, (_, n) => n)

describe("bindings that start together", () => {
  scenario("BND-07 fifty bindings make their retry topics with one request", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      for (const n of range(50)) yield* memory.createTopic(`source-${n}`, { partitions: 2 })
      const { asked, register, partitions } = yield* watched()
      yield* register(...range(50))
      yield* settle
      assert.deepStrictEqual(
        asked.creations.map((topics) => topics.map(({ topic }) => topic)),
        [range(50).flatMap(retryTopics)]
      )
      assert.lengthOf(asked.lists, 1)
      assert.deepStrictEqual(
        yield* partitions,
        range(50).map(() => 6)
      )
    })
  )

  scenario("BND-07 a binding that starts alone waits for no other, and requests no topic that exists", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("source-0")
      yield* memory.createTopic("source-0.retry-1")
      const { asked, register, partitions } = yield* watched()
      yield* register(0)
      yield* settle
      assert.deepStrictEqual(
        asked.creations.map((topics) => topics.map(({ topic }) => topic)),
        [["source-0.retry-2"]]
      )
      assert.deepStrictEqual(yield* partitions, [3])
    })
  )

  scenario(
    "BND-12 a source topic that is missing or does not answer does not keep other bindings from their topics",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        for (const n of [0, 2]) yield* memory.createTopic(`source-${n}`)
        const { register, partitions } = yield* watched((admin) => ({
          describeTopic: (topic) => (topic === "source-2" ? Effect.never : admin.describeTopic(topic))
        }))
        yield* register(0, 1, 2)
        yield* settle
        yield* advance("5 seconds")
        const [first, missing, silent] = yield* partitions
        assert.deepStrictEqual([first, missing, silent], [3, 0, 1])
        assert.strictEqual(yield* memory.partitionCount("source-0.retry-2"), 1)
      })
  )

  scenario("BND-07 a refused request delays no binding: the topics are made when they are needed", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      for (const n of range(3)) yield* memory.createTopic(`source-${n}`)
      const { asked, register, partitions } = yield* watched(() => ({ createTopics: () => Effect.die("unplugged") }))
      yield* register(...range(3))
      yield* settle
      assert.lengthOf(asked.creations, 1)
      assert.deepStrictEqual(yield* partitions, [1, 1, 1])
    })
  )

  scenario("BND-07 very many partitions are requested in several requests", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      for (const n of range(3)) yield* memory.createTopic(`source-${n}`, { partitions: 400 })
      const { asked, register } = yield* watched(() => ({ createTopics: () => Effect.void }))
      yield* register(...range(3))
      yield* settle
      assert.deepStrictEqual(
        asked.creations.map((topics) => topics.map(({ topic }) => topic)),
        range(3).map(retryTopics)
      )
    })
  )
})
