import { assert, describe, it } from "@effect/vitest"
import { Binding, Broker, CurrentTransaction, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { advance, append, bytes, layer, settle, start, text } from "../bus.ts"

class Refused extends Schema.TaggedError<Refused>()("Refused", {}) {}

/** Publishes every value to `out` in upper case; values for which `fails` holds fail after they were published. */
const shout = (fails: (value: string) => boolean) =>
  Binding.makeTransactional("shout", {
    topic: "in",
    groupId: "shouters",
    value: Serde.string,
    maxPollRecords: 4,
    retry: RetryPolicy.blocking({ jitter: 0 }),
    handler: ({ value, record }) =>
      Effect.gen(function* () {
        yield* Effect.orDie(
          CurrentTransaction.send({ topic: "out", key: record.key, value: bytes(value.toUpperCase()) })
        )
        if (fails(value)) return yield* new Refused()
      }),
    onError: { Refused: Route.retry }
  })

const cluster = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("in")
  yield* memory.createTopic("out")
  const out = Effect.map(memory.log("out", 0), (records) => records.map((record) => text(record.value)))
  return { memory, out, committed: memory.committed("shouters", "in", 0) }
})

/** The cluster as one process sees it, so that the process can be killed by its client id. */
const clientNamed = (clientId: string, broker: Broker.Broker["Service"]): Broker.Broker["Service"] => ({
  consumer: (options) => broker.consumer({ ...options, clientId }),
  producer: (options) => broker.producer({ ...options, clientId }),
  transactionalProducer: (options) => broker.transactionalProducer({ ...options, clientId }),
  reader: (options) => broker.reader({ ...options, clientId }),
  admin: broker.admin
})

const letters = ["a", "b", "c", "d", "e", "f"]

describe("transactional bindings", () => {
  it.effect("OFF-17 output and offsets are committed together, once per input", () =>
    Effect.gen(function* () {
      const { out, committed } = yield* cluster
      yield* append("in", 0, letters)
      yield* start(shout(() => false))
      assert.deepStrictEqual(yield* out, ["A", "B", "C", "D", "E", "F"])
      assert.strictEqual(yield* committed, 6n)
    }).pipe(Effect.provide(layer()))
  )

  it.effect("OFF-17 an abort leaves neither output nor commit; the other records go on in order", () =>
    Effect.gen(function* () {
      const { memory, out, committed } = yield* cluster
      let failures = 2
      yield* append("in", 0, letters)
      yield* start(shout((value) => value === "c" && failures-- > 0))
      assert.deepStrictEqual(yield* out, ["A", "B"])
      assert.strictEqual(yield* committed, 2n)
      yield* advance("100 millis")
      assert.deepStrictEqual(yield* out, ["A", "B", "C", "D", "E", "F"])
      assert.strictEqual(yield* committed, 6n)
      const attempted = yield* memory.log("out", 0, "read_uncommitted")
      assert.isAbove(attempted.length, 6)
    }).pipe(Effect.provide(layer()))
  )

  it.effect(
    "OFF-17 a record that always fails is dead-lettered in one transaction with its offset, and leaves no output",
    () =>
      Effect.gen(function* () {
        const { memory, out, committed } = yield* cluster
        yield* memory.createTopic("in.DLT")
        yield* append("in", 0, letters)
        yield* start(shout((value) => value === "d"))
        yield* advance("100 millis")
        yield* advance("200 millis")
        assert.deepStrictEqual(yield* out, ["A", "B", "C", "E", "F"])
        const dead = yield* memory.log("in.DLT", 0)
        assert.deepStrictEqual(
          dead.map((record) => text(record.value)),
          ["d"]
        )
        assert.strictEqual(yield* committed, 6n)
      }).pipe(Effect.provide(layer()))
  )

  it.effect(
    "OFF-17 the successor of a killed process aborts its open transaction: every input is in the output once",
    () =>
      Effect.gen(function* () {
        const { memory, out, committed } = yield* cluster
        yield* append("in", 0, letters)
        const hung = Binding.makeTransactional("shout", {
          topic: "in",
          groupId: "shouters",
          value: Serde.string,
          handler: ({ value, record }) =>
            Effect.andThen(
              Effect.orDie(
                CurrentTransaction.send({ topic: "out", key: record.key, value: bytes(value.toUpperCase()) })
              ),
              value === "c" ? Effect.never : Effect.void
            )
        })
        const first = yield* Effect.provideService(start(hung), Broker.Broker, clientNamed("first", memory.broker))
        assert.deepStrictEqual(yield* out, [])
        yield* memory.kill("first")
        yield* start(shout(() => false))
        yield* Effect.forkChild(first.close)
        for (let waited = 0; waited < 70; waited++) yield* advance("1 second")
        assert.deepStrictEqual(yield* out, ["A", "B", "C", "D", "E", "F"])
        assert.strictEqual(yield* committed, 6n)
      }).pipe(Effect.provide(layer()))
  )

  it.effect("OFF-17 lag reaches 0 after control records, and a graceful stop commits handled records", () =>
    Effect.gen(function* () {
      const { memory, out, committed } = yield* cluster
      yield* append("in", 0, ["a"])
      yield* memory.appendControl("in", 0, 2)
      const app = yield* start(shout(() => false))
      assert.strictEqual(yield* committed, 3n)
      yield* append("in", 0, ["b"])
      yield* settle
      yield* app.close
      assert.deepStrictEqual(yield* out, ["A", "B"])
      assert.strictEqual(yield* committed, 4n)
      assert.strictEqual((yield* memory.usage).producers, 0)
    }).pipe(Effect.provide(layer()))
  )
})
