import { assert, describe } from "@effect/vitest"
import { Binding, CurrentTransaction, type Delivery, EventBusError, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { advance, bytes, now, orders, scenario, start, until, valuesOf } from "../scenarios/bus.ts"

class Down extends Data.TaggedError("Down") {}

const before = 100
const behind = 3_000
const maxInFlight = 8
const batchSize = 20

/** One call of the handler. */
interface Call {
  readonly value: string
  readonly atMillis: number
  /** The committed offset when it began. */
  readonly committed: bigint
}

const common = {
  ...orders,
  ackMode: "MANUAL_IMMEDIATE",
  missingTopics: "wait",
  maxPollRecords: batchSize,
  maxInFlight,
  retry: RetryPolicy.none,
  onError: { Down: Route.retry }
} as const

const each =
  (calls: Array<Call>, memory: MemoryBroker.MemoryBroker["Service"]) =>
  ({ value }: Delivery.Delivery<unknown, string>): Effect.Effect<void, Down> =>
    Effect.gen(function* () {
      calls.push({
        ...{ value, atMillis: yield* now },
        committed: (yield* memory.committed("billing", "orders", 0)) ?? 0n
      })
      if (value === "bad") return yield* new Down()
      yield* Effect.sleep("10 millis")
    })

type Make = (handler: ReturnType<typeof each>) => Binding.Binding<never>

/** Each scheduler, and how many handled records a crash may repeat: those that were in flight when the copy was refused. */
const kinds: Readonly<Record<string, readonly [repeats: number, make: Make]>> = {
  "in order": [0, (handler) => Binding.make("orders", { ...common, handler })],
  "STRICT, in order": [0, (handler) => Binding.make("orders", { ...common, orderingMode: "STRICT", handler })],
  "by key": [maxInFlight - 1, (handler) => Binding.make("orders", { ...common, processingOrder: "key", handler })],
  unordered: [
    maxInFlight - 1,
    (handler) => Binding.make("orders", { ...common, processingOrder: "unordered", handler })
  ],
  "in batches": [batchSize - 1, (handler) => Binding.make("orders", { ...common, listenerType: "BATCH", handler })],
  "whole batches": [
    batchSize - 1,
    (handler) =>
      Binding.makeBatch("orders", {
        ...common,
        handleBatch: ({ deliveries }) =>
          Effect.gen(function* () {
            const results = yield* Effect.forEach(deliveries, (delivery) => Effect.result(handler(delivery)))
            const index = results.findIndex(({ _tag }) => _tag === "Failure")
            if (index >= 0) return yield* EventBusError.BatchProcessing.these([{ index, error: new Down() }])
          })
      })
  ],
  transactional: [
    0,
    (handler) =>
      Binding.makeTransactional("orders", {
        ...common,
        handler: (delivery) =>
          Effect.andThen(
            Effect.orDie(CurrentTransaction.send({ topic: "out", key: null, value: bytes(delivery.value) })),
            handler(delivery)
          )
      })
  ]
}

const values = [
  ...Array.from({ length: before }, (_, index) => `before-${index}`),
  "bad",
  ...Array.from({ length: behind }, (_, index) => `behind-${index}`)
]

const filled = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", "out"]) yield* memory.createTopic(topic)
  yield* memory.append(
    "orders",
    0,
    values.map((value) => ({ key: bytes(value), value: bytes(value) }))
  )
  return memory
})

describe("C63 MANUAL_IMMEDIATE behind a copy that is not acknowledged", () => {
  for (const [kind, [repeats, make]] of Object.entries(kinds)) {
    scenario(`C63 ruling 73 OFF-03 ${kind}: a crash repeats at most ${repeats} handled records, and loses none`, () =>
      Effect.gen(function* () {
        const memory = yield* filled
        const calls: Array<Call> = []
        const crashing = yield* start(make(each(calls, memory)))
        yield* until(() => crashing.of("PublishFailed").length > 0, "250 millis")
        for (let step = 0; step < 60; step++) yield* advance("500 millis")
        const [member] = (yield* memory.group("billing")).members
        yield* memory.kill(member!.clientId)
        const first = calls.splice(0)
        yield* start(make(each(calls, memory)))
        yield* advance("1 minute")
        yield* memory.createTopic("orders.DLT")
        const last = `behind-${behind - 1}`
        yield* until(() => calls.some(({ value }) => value === last), "1 second")
        yield* advance("15 seconds")
        const again = new Set(calls.map(({ value }) => value))
        const repeated = new Set(first.flatMap(({ value }) => (value !== "bad" && again.has(value) ? [value] : [])))
        assert.isAtMost(repeated.size, repeats)
        assert.deepStrictEqual(
          values.filter((value) => !again.has(value) && !first.some((call) => call.value === value)),
          []
        )
        assert.deepStrictEqual(yield* valuesOf("orders.DLT"), ["bad"])
        assert.strictEqual(yield* memory.committed("billing", "orders", 0), BigInt(values.length))
      })
    )
  }

  for (const kind of ["in order", "STRICT, in order", "by key", "unordered"]) {
    scenario(
      `C63 ruling 73 OFF-03 ${kind}: the next record starts when the copy is acknowledged and committed`,
      () =>
        Effect.gen(function* () {
          const memory = yield* filled
          yield* memory.createTopic("orders.DLT")
          const calls: Array<Call> = []
          const [, make] = kinds[kind]!
          yield* start(make(each(calls, memory)))
          yield* until(() => calls.some(({ value }) => value === "bad"), "1 second")
          yield* until(() => calls.length > before + 2 * maxInFlight, "250 millis")
          const failedAt = calls.find(({ value }) => value === "bad")!.atMillis
          const later = calls.filter(({ atMillis }) => atMillis > failedAt)
          assert.isNotEmpty(later)
          for (const { value, atMillis, committed } of later) {
            // Two seconds for the copy, and one for the commit.
            assert.isAtLeast(atMillis - failedAt, 3_000, value)
            assert.isAtLeast(Number(committed), before + 1, value)
          }
        }),
      { latency: { produce: "2 seconds", commit: "1 second" } }
    )
  }

  for (const kind of ["by key", "unordered"]) {
    scenario(
      `C63 ruling 73 OFF-03 ${kind}: where partitions share the slots and one record in ten fails, none starts far behind the committed offset`,
      () =>
        Effect.gen(function* () {
          const memory = yield* MemoryBroker.MemoryBroker
          const partitions = [0, 1, 2, 3]
          const perPartition = 600
          for (const topic of ["orders", "orders.DLT"]) yield* memory.createTopic(topic, { partitions: 4 })
          for (const partition of partitions) {
            const records = Array.from({ length: perPartition }, (_, n) => bytes(`${partition}/${n}`))
            yield* memory.append(
              "orders",
              partition,
              records.map((value) => ({ key: value, value }))
            )
          }
          let calls = 0
          let furthest = 0n
          const handler = ({ record }: Delivery.Delivery<unknown, string>): Effect.Effect<void, Down> =>
            Effect.gen(function* () {
              calls++
              const committed = (yield* memory.committed("billing", "orders", record.partition)) ?? 0n
              if (record.offset - committed > furthest) furthest = record.offset - committed
              yield* Effect.sleep(`${5 + (calls % 3)} millis`)
              if (calls % 10 === 3) return yield* new Down()
            })
          const [, make] = kinds[kind]!
          yield* start(make(handler))
          yield* until(() => calls === partitions.length * perPartition, "100 millis")
          assert.isAtMost(Number(furthest), 4 * maxInFlight)
        }),
      { latency: { produce: "3 millis", commit: "2 millis" } }
    )
  }

  scenario(
    "C63 ruling 73 OFF-03 by key in a tier: one record in ten fails again, and none starts far behind the committed offset",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        const partitions = [0, 1, 2, 3]
        const perPartition = 150
        for (const topic of ["orders", "orders.retry-1", "orders.DLT"]) {
          yield* memory.createTopic(topic, { partitions: partitions.length })
        }
        for (const partition of partitions) {
          const records = Array.from({ length: perPartition }, (_, n) => bytes(`${partition}/${n}`))
          yield* memory.append(
            "orders.retry-1",
            partition,
            records.map((value) => ({ key: value, value }))
          )
        }
        let calls = 0
        let furthest = 0n
        const retry = RetryPolicy.tiered({
          blocking: { maxAttempts: 1 },
          tiers: [{ delay: "100 millis", maxAttempts: 1 }]
        })
        yield* start(
          Binding.make("orders", {
            ...common,
            ...{ retry, processingOrder: "key" },
            handler: ({ record }) =>
              Effect.gen(function* () {
                calls++
                const { topic, partition, offset } = record
                const committed = (yield* memory.committed("billing", topic, partition)) ?? 0n
                if (offset - committed > furthest) furthest = offset - committed
                yield* Effect.sleep(`${5 + (calls % 3)} millis`)
                if (calls % 10 === 3) return yield* new Down()
              })
          })
        )
        yield* until(() => calls === partitions.length * perPartition, "100 millis")
        // A tier handles one record at a time.
        assert.isAtMost(Number(furthest), 4)
      }),
    { latency: { produce: "3 millis", commit: "2 millis" } }
  )
})
