/**
 * Transactional bindings whose broker is slow, or whose transactions fail: that is no fault of the records.
 */
import { assert, describe, it } from "@effect/vitest"
import { Binding, Broker, CurrentTransaction, RetryPolicy, Route, Serde } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import { advance, append, bytes, inTime, layer, start, valuesOf } from "../bus.ts"

class Refused extends Schema.TaggedError<Refused>()("Refused", {}) {}

interface Setup {
  readonly failures?: number
  readonly maxBufferedRecords?: number
}

/** Publishes every value to `out`; the first calls fail as often as they are told. */
const copying = ({ failures = 0, maxBufferedRecords = 1_000 }: Setup = {}) => {
  let left = failures
  return Binding.makeTransactional("copying", {
    topic: "in",
    groupId: "copiers",
    value: Serde.string,
    maxPollRecords: 2,
    maxBufferedRecords,
    maxPollInterval: "10 seconds",
    retry: RetryPolicy.blocking({ jitter: 0 }),
    handler: ({ value }) =>
      Effect.gen(function* () {
        if (left-- > 0) return yield* new Refused()
        if (value === "slow") yield* Effect.sleep("5 seconds")
        yield* Effect.orDie(CurrentTransaction.send({ topic: "out", key: null, value: bytes(value) }))
      }),
    onError: { Refused: Route.retry }
  })
}

const letters = ["a", "b", "c", "d", "e", "f"]

const cluster = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("in")
  yield* memory.createTopic("out")
  return { memory, committed: memory.committed("copiers", "in", 0) }
})

/** The first is the claim to the transactional id, the second ends the first transaction. */
const ofTransactions = (nth: number, effect: FaultPlan.RequestEffect) =>
  FaultPlan.nth(nth, { operation: "endTransaction" }, effect)

const lost = { _tag: "LoseRequest" } as const

const troubled = (...faults: ReadonlyArray<FaultPlan.Fault>): MemoryBroker.Options => ({
  faults: FaultPlan.make(faults),
  requestTimeout: "5 seconds",
  maxRecordsPerChunk: 2
})

describe("transactions that fail", () => {
  for (const maxBufferedRecords of [1, 1_000]) {
    it.effect(
      `OFF-17 OFF-04 a partition whose transaction failed resumes where it was, once and in order, with ${maxBufferedRecords} buffered`,
      () =>
        Effect.gen(function* () {
          const { committed } = yield* cluster
          yield* append("in", 0, letters)
          const app = yield* start(copying({ maxBufferedRecords }))
          yield* advance("5 seconds")
          assert.strictEqual(app.of("TransactionFailed").length, 1)
          yield* advance("1 second")
          // The claim of its next producer takes a while, in which the session reads on from where it was.
          yield* append("in", 0, ["g", "h"])
          for (let second = 0; second < 20; second++) yield* advance("1 second")
          assert.deepStrictEqual(yield* valuesOf("out"), [...letters, "g", "h"])
          assert.strictEqual(yield* committed, 8n)
        }).pipe(
          Effect.provide(
            layer(troubled(ofTransactions(2, lost), ofTransactions(3, { _tag: "Delay", duration: "2 seconds" })))
          )
        )
    )
  }

  it.effect("OFF-17 ruling 75 a commit whose answer is lost counts, also where no record follows it", () =>
    Effect.gen(function* () {
      const { committed } = yield* cluster
      yield* append("in", 0, ["a", "b"])
      const app = yield* start(copying())
      for (let second = 0; second < 30; second++) yield* advance("1 second")
      assert.strictEqual(app.of("TransactionFailed").length, 1)
      assert.deepStrictEqual([yield* committed, yield* valuesOf("out")], [2n, ["a", "b"]])
      const [partition] = (yield* app.connector.snapshot("copying")).partitions
      assert.deepInclude(partition, { committed: 2n, lag: 0n })
    }).pipe(Effect.provide(layer(troubled(ofTransactions(2, { _tag: "LoseResponse" })))))
  )

  it.effect("ruling 18 a broker that takes longer than the processing budget does not fail the record", () =>
    Effect.gen(function* () {
      const { memory, committed } = yield* cluster
      yield* append("in", 0, letters)
      const app = yield* start(copying())
      for (let second = 0; second < 20; second++) yield* advance("1 second")
      assert.deepStrictEqual(app.of("AttemptFailed"), [])
      assert.deepStrictEqual(yield* valuesOf("out"), letters)
      assert.strictEqual(yield* committed, 6n)
      assert.strictEqual(yield* memory.partitionCount("in.DLT"), 0)
    }).pipe(
      Effect.provide(
        layer({
          ...troubled(FaultPlan.nth(1, { operation: "produce" }, { _tag: "Delay", duration: "8 seconds" })),
          requestTimeout: "30 seconds"
        })
      )
    )
  )

  it.effect(
    "ruling 11 a pause that comes while a transaction begins: the record is really handled before it is reported",
    () =>
      Effect.gen(function* () {
        const { committed } = yield* cluster
        yield* append("in", 0, ["a"])
        const app = yield* start(copying({ failures: 1 }))
        // The abort is lost; the second attempt has to end it before it begins.
        yield* advance("5 seconds")
        yield* advance("100 millis")
        yield* inTime(app.connector.pause("copying"), "100 millis")
        yield* advance("5 seconds")
        assert.deepStrictEqual(app.of("Settled"), [])
        assert.isUndefined(yield* committed)
        yield* app.connector.resume("copying")
        yield* advance("1 second")
        assert.deepStrictEqual(
          app.of("Settled").map(({ settlement, attempts }) => [settlement, attempts]),
          [["Handled", 2]]
        )
        assert.deepStrictEqual(yield* valuesOf("out"), ["a"])
      }).pipe(
        Effect.provide(
          layer(troubled(ofTransactions(2, lost), ofTransactions(3, { _tag: "Delay", duration: "3 seconds" })))
        )
      )
  )

  it.effect(
    "REB-07 OFF-17 a member whose producer was fenced fences nobody before a heartbeat confirms its membership",
    () =>
      Effect.gen(function* () {
        const { memory, committed } = yield* cluster
        yield* append("in", 0, letters)
        const app = yield* start(copying({ failures: 1 }))
        const broker = yield* Broker.Broker
        const owner = yield* broker.transactionalProducer({ transactionalId: "copiers/in/0" })
        yield* advance("2 seconds")
        assert.deepStrictEqual(
          app.of("TransactionFailed").map(({ error }) => error._tag),
          ["ProducerFenced"]
        )
        // A heartbeat is sent every 10 seconds.
        yield* advance("8 seconds")
        yield* inTime(owner.transaction(({ send }) => send({ topic: "out", key: null, value: bytes("of the owner") })))
        yield* advance("2 seconds")
        yield* advance("1 second")
        assert.deepStrictEqual(yield* valuesOf("out"), ["of the owner", ...letters])
        assert.strictEqual(yield* committed, 6n)
        assert.strictEqual(yield* memory.partitionCount("in.DLT"), 0)
      }).pipe(Effect.scoped, Effect.provide(layer()))
  )

  it.effect(
    "REB-07 a partition that is revoked while it waits to begin anew does not begin; its next owner goes on",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("in", { partitions: 2 })
        yield* memory.createTopic("out")
        yield* append("in", 0, letters)
        yield* append("in", 1, ["slow"])
        const app = yield* start(copying())
        yield* advance("1 second")
        assert.strictEqual(app.of("TransactionFailed").length, 1)
        const other = yield* start(copying())
        // It keeps its session from releasing what was revoked for as long as its handler runs.
        yield* advance("1 second")
        yield* advance("10 seconds")
        const ofBroken = app.events.filter((event) => "partition" in event && event.partition === 0)
        const began = ofBroken.filter(({ _tag }) => _tag === "PartitionAssigned" || _tag.startsWith("PartitionRe"))
        assert.deepStrictEqual(
          began.slice(0, 3).map(({ _tag }) => _tag),
          ["PartitionAssigned", "PartitionRevoked", "PartitionReleased"]
        )
        assert.strictEqual(yield* memory.committed("copiers", "in", 0), 6n)
        assert.deepStrictEqual((yield* valuesOf("out")).toSorted(), [...letters, "slow"])
        yield* inTime(app.close)
        yield* inTime(other.close)
        assert.strictEqual((yield* memory.usage).producers, 0)
      }).pipe(
        Effect.provide(
          // The first two claim the transactional ids.
          layer({ ...troubled(ofTransactions(3, lost)), requestTimeout: "1 second", assignment: "eager" })
        )
      )
  )
})
