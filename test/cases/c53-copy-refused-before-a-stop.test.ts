import { assert, describe } from "@effect/vitest"
import {
  Binding,
  BrokerError,
  CurrentTransaction,
  type Delivery,
  EventBusError,
  RetryPolicy,
  Route
} from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import {
  advance,
  append,
  bytes,
  inTime,
  now,
  orders,
  scenario,
  settle,
  start,
  until,
  valuesOf
} from "../scenarios/bus.ts"

class Down extends Data.TaggedError("Down") {}

const behind = 500

/** How often the handler was called with each record. */
type Calls = Map<string, number>

const common = {
  ...orders,
  ackMode: "MANUAL",
  missingTopics: "wait",
  retry: RetryPolicy.none,
  onError: { Down: Route.retry }
} as const

const call = (calls: Calls, value: string): Effect.Effect<void, Down> =>
  Effect.suspend(() => {
    calls.set(value, (calls.get(value) ?? 0) + 1)
    return value.startsWith("bad") ? Effect.fail(new Down()) : Effect.void
  })

const each =
  (calls: Calls) =>
  ({ value }: Delivery.Delivery<unknown, string>) =>
    call(calls, value)

/** Each scheduler, with the first record of each partition refused and others behind it. */
const kinds = {
  "in order": (calls: Calls) => Binding.make("orders", { ...common, handler: each(calls) }),
  "STRICT, in order": (calls: Calls) =>
    Binding.make("orders", { ...common, orderingMode: "STRICT", handler: each(calls) }),
  "MANUAL_IMMEDIATE, in order": (calls: Calls) =>
    Binding.make("orders", { ...common, ackMode: "MANUAL_IMMEDIATE", handler: each(calls) }),
  "by key": (calls: Calls) => Binding.make("orders", { ...common, processingOrder: "key", handler: each(calls) }),
  unordered: (calls: Calls) =>
    Binding.make("orders", { ...common, processingOrder: "unordered", handler: each(calls) }),
  "in batches": (calls: Calls) =>
    Binding.make("orders", { ...common, listenerType: "BATCH", maxPollRecords: 1_000, handler: each(calls) }),
  "whole batches": (calls: Calls) =>
    Binding.makeBatch("orders", {
      ...common,
      maxPollRecords: 1_000,
      handleBatch: ({ deliveries }) =>
        Effect.gen(function* () {
          const results = yield* Effect.forEach(deliveries, (delivery) => Effect.result(each(calls)(delivery)))
          const [first, ...more] = results.flatMap((result, index) =>
            result._tag === "Failure" ? [{ index, error: result.failure }] : []
          )
          if (first !== undefined) return yield* EventBusError.BatchProcessing.these([first, ...more])
        })
    }),
  transactional: (calls: Calls) =>
    Binding.makeTransactional("orders", {
      ...common,
      handler: (delivery) =>
        Effect.andThen(
          Effect.orDie(CurrentTransaction.send({ topic: "out", key: null, value: bytes(delivery.value) })),
          each(calls)(delivery)
        )
    })
}

type Kind = keyof typeof kinds

/** A copy of the first record of each of two partitions is refused by now: its dead letter topic does not exist. */
const refused = Effect.fnUntraced(function* (kind: Kind) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: 2 })
  yield* memory.createTopic("out")
  for (const partition of [0, 1]) {
    const values = [`bad-${partition}`, ...Array.from({ length: behind }, (_, index) => `${partition}-${index}`)]
    yield* memory.append(
      "orders",
      partition,
      values.map((value) => ({ key: bytes(value), value: bytes(value) }))
    )
  }
  const calls: Calls = new Map()
  const app = yield* start(kinds[kind](calls))
  yield* until(() => app.of("PublishFailed").length >= 2, "1 second")
  // The pauses between two attempts have grown to ten seconds.
  for (let step = 0; step < 30; step++) yield* advance("1 second")
  return { memory, calls, app }
})

/** Every record is handled once, and each failed one has one copy. */
const nothingIsRepeated = Effect.fnUntraced(function* (calls: Calls) {
  const memory = yield* MemoryBroker.MemoryBroker
  assert.deepStrictEqual(
    [...calls].filter(([, times]) => times !== 1),
    []
  )
  assert.strictEqual(calls.size, 2 * (behind + 1))
  const letters = [...(yield* valuesOf("orders.DLT", 0)), ...(yield* valuesOf("orders.DLT", 1))]
  assert.deepStrictEqual(letters.toSorted(), ["bad-0", "bad-1"])
  for (const partition of [0, 1]) {
    assert.strictEqual(yield* memory.committed("billing", "orders", partition), BigInt(behind + 1))
  }
})

describe("C53 a copy is refused, and its partition is given up", () => {
  for (const kind of Object.keys(kinds) as ReadonlyArray<Kind>) {
    scenario(
      `C53 ruling 83 ${kind}: a stop publishes it when the topic appears two seconds later, and repeats nothing`,
      () =>
        Effect.gen(function* () {
          const { memory, calls, app } = yield* refused(kind)
          const stoppedAt = yield* now
          const stopping = yield* Effect.forkChild(app.close, { startImmediately: true })
          yield* advance("2 seconds")
          assert.isUndefined(stopping.pollUnsafe())
          yield* memory.createTopic("orders.DLT", { partitions: 2 })
          yield* until(() => stopping.pollUnsafe() !== undefined, "100 millis")
          // The pauses begin anew with the stop: the attempt after 3.1 seconds succeeds.
          assert.isAtMost((yield* now) - stoppedAt, 4_000)
          const next = yield* start(kinds[kind](calls))
          yield* advance("5 seconds")
          yield* nothingIsRepeated(calls)
          assert.strictEqual(yield* next.connector.getState("orders"), "RUNNING")
        })
    )

    scenario(`C53 ruling 83 ${kind}: a revocation does the same`, () =>
      Effect.gen(function* () {
        const { memory, calls } = yield* refused(kind)
        const joined = yield* start(kinds[kind](calls))
        yield* advance("2 seconds")
        assert.deepStrictEqual(joined.of("PartitionAssigned"), [])
        yield* memory.createTopic("orders.DLT", { partitions: 2 })
        yield* until(() => joined.of("PartitionAssigned").length === 1, "1 second")
        for (let step = 0; step < 20; step++) yield* advance("1 second")
        yield* nothingIsRepeated(calls)
      })
    )

    scenario(
      `C53 ruling 83 LIF-12 ${kind}: a copy that is refused until the end holds a stop up no longer than \`shutdownTimeout\``,
      () =>
        Effect.gen(function* () {
          const { memory, app } = yield* refused(kind)
          const before = yield* now
          yield* inTime(app.connector.stop("orders"), "250 millis")
          assert.isAtMost((yield* now) - before, 30_000)
          assert.strictEqual((yield* memory.committed("billing", "orders", 0)) ?? 0n, 0n)
          const sent = app.of("PublishFailed").length
          yield* memory.createTopic("orders.DLT", { partitions: 2 })
          yield* advance("1 minute")
          assert.strictEqual(app.of("PublishFailed").length, sent)
          assert.deepStrictEqual(yield* valuesOf("orders.DLT", 0), [])
        })
    )

    scenario(
      `C53 ruling 83 LIF-12 ${kind}: a broker that answers nothing holds a stop up no longer than \`shutdownTimeout\``,
      () =>
        Effect.gen(function* () {
          const { memory, app } = yield* refused(kind)
          for (const operation of ["commit", "produce", "heartbeat", "endTransaction", "sendOffsets", "admin"] as const)
            yield* memory.addFault(FaultPlan.chance(1, { operation }, { _tag: "LoseRequest" }))
          const before = yield* now
          yield* inTime(app.close, "250 millis")
          assert.isAtMost((yield* now) - before, 30_000)
        })
    )
  }

  scenario("C53 ruling 83 no copy is sent behind the drain: the record would be handled again beside it", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* append("orders", 0, ["first", "bad", "behind"])
      // The last commit takes as long as it may.
      yield* memory.addFault(FaultPlan.chance(1, { operation: "commit" }, { _tag: "LoseRequest" }))
      const calls: Calls = new Map()
      // The drain takes 12.6 seconds of it, and the copy is due again after 12.7.
      const app = yield* start(Binding.make("orders", { ...common, shutdownTimeout: 15_750, handler: each(calls) }))
      yield* until(() => app.of("PublishFailed").length > 0 && calls.size === 3, "1 second")
      const stopping = yield* Effect.forkChild(app.connector.stop("orders"), { startImmediately: true })
      yield* settle
      for (let step = 0; step < 126; step++) yield* advance("100 millis")
      assert.lengthOf(app.of("DrainTimedOut"), 1)
      assert.isUndefined(stopping.pollUnsafe())
      yield* memory.createTopic("orders.DLT")
      yield* until(() => stopping.pollUnsafe() !== undefined, "100 millis")
      assert.deepStrictEqual(yield* valuesOf("orders.DLT"), [])
    })
  )

  scenario(
    "C53 ruling 83 transactional: a drain does not repeat a copy whose transaction may have been committed",
    () =>
      Effect.gen(function* () {
        const { memory, calls, app } = yield* refused("transactional")
        const error = new BrokerError.RequestTimedOut({ operation: "endTransaction", millis: 1_000 })
        yield* memory.addFault(FaultPlan.nth(1, { operation: "endTransaction" }, { _tag: "ApplyThenFail", error }))
        yield* memory.createTopic("orders.DLT", { partitions: 2 })
        yield* inTime(app.connector.stop("orders"), "250 millis")
        yield* app.connector.start("orders")
        for (let second = 0; second < 10; second++) yield* advance("1 second")
        yield* nothingIsRepeated(calls)
      })
  )
})
