import { assert, describe } from "@effect/vitest"
import { Binding, type BindingOptions, LogFormat, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Logger, Schema } from "effect"
import { advance, append, inTime, orders, scenario, settle, start, until, valuesOf } from "../bus.ts"

class Boom extends Schema.TaggedError<Boom>()("Boom", {}) {}

const values = (partition: number, count: number) =>
  Array.from({ length: count }, (_, index) => `${partition}/${index}`)

const fill = Effect.fnUntraced(function* (partitions: number, count: number) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions })
  for (let partition = 0; partition < partitions; partition++) {
    yield* append("orders", partition, values(partition, count))
  }
  return Array.from({ length: partitions }, (_, partition) => values(partition, count)).flat()
})

/** Handles each record in 100 ms and notes it. */
const slowly = (
  handled: Array<string>,
  settings: Partial<BindingOptions.Settings<Uint8Array | null, string>> = {}
): Binding.Binding<never> =>
  Binding.make("orders", {
    ...orders,
    ...settings,
    handler: ({ value }) =>
      Effect.andThen(
        Effect.sleep("100 millis"),
        Effect.sync(() => handled.push(value))
      )
  })

for (const assignment of ["cooperative-sticky", "eager"] as const) {
  describe(`a rebalance, ${assignment}`, () => {
    scenario(
      "REB-05 REB-12 members come and go: every record is handled once, since running handlers are drained and committed",
      () =>
        Effect.gen(function* () {
          const all = yield* fill(4, 20)
          const handled: Array<string> = []
          const first = yield* start(slowly(handled))
          yield* advance("250 millis")
          const second = yield* start(slowly(handled))
          yield* advance("350 millis")
          yield* inTime(first.close, "50 millis")
          const third = yield* start(slowly(handled))
          yield* until(() => handled.length >= all.length, "100 millis")
          yield* advance("1 second")
          assert.deepStrictEqual([...handled].sort(), [...all].sort())
          assert.isAbove(second.of("PartitionAssigned").length, 0)
          assert.isAbove(third.of("PartitionAssigned").length, 0)
        }),
      { assignment }
    )

    scenario(
      "NFR-02 within a partition the records are handled in order, whichever member owns it",
      () =>
        Effect.gen(function* () {
          yield* fill(3, 15)
          const handled: Array<string> = []
          yield* start(slowly(handled))
          yield* advance("500 millis")
          yield* start(slowly(handled))
          yield* until(() => handled.length === 45, "100 millis")
          for (const partition of [0, 1, 2]) {
            assert.deepStrictEqual(
              handled.filter((value) => value.startsWith(`${partition}/`)),
              values(partition, 15)
            )
          }
        }),
      { assignment }
    )
  })
}

describe("a rebalance (TST-06: rebalance)", () => {
  scenario("REB-11 CARD-09 a partition that stays is untouched: a long handler runs through the rebalance", () =>
    Effect.gen(function* () {
      yield* fill(2, 3)
      const events: Array<string> = []
      const binding = Binding.make("orders", {
        ...orders,
        handler: ({ value }) =>
          Effect.sleep("1 second").pipe(
            Effect.andThen(Effect.sync(() => events.push(value))),
            Effect.onInterrupt(() => Effect.sync(() => events.push(`${value} interrupted`)))
          )
      })
      const first = yield* start(binding)
      yield* advance("500 millis")
      yield* start(binding)
      yield* until(() => events.length === 6, "250 millis")
      assert.deepStrictEqual([...events].sort(), ["0/0", "0/1", "0/2", "1/0", "1/1", "1/2"])
      assert.strictEqual(first.of("PartitionRevoked").length, 1)
      assert.strictEqual(first.of("PartitionAssigned").length, 2)
    })
  )

  scenario("REB-05 a revoked partition is released when its running handler is done and committed", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* fill(2, 5)
      const handled: Array<string> = []
      const first = yield* start(slowly(handled, { ackMode: "MANUAL", commitInterval: "1 hour" }))
      yield* advance("250 millis")
      const second = yield* start(slowly([]))
      const revoked = first.of("PartitionRevoked")[0]!.partition
      assert.strictEqual(second.of("PartitionAssigned").length, 0)
      yield* advance("100 millis")
      assert.deepStrictEqual(
        first.of("PartitionReleased").map(({ partition, committed }) => [partition, committed]),
        [[revoked, 3n]]
      )
      assert.deepStrictEqual(
        second.of("PartitionAssigned").map(({ partition, position }) => [partition, position]),
        [[revoked, 3n]]
      )
      assert.strictEqual(yield* memory.committed("billing", "orders", revoked), 3n)
    })
  )

  scenario(
    "REB-05 revoking cancels the retries of that partition only, and the log names it with its committed offset",
    () => {
      const lines: Array<string> = []
      const keep = Logger.map(LogFormat.text, (line) => void lines.push(line))
      return Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", { partitions: 2 })
        for (const partition of [0, 1]) yield* append("orders", partition, ["good", "bad"])
        const binding = Binding.make("orders", {
          ...orders,
          ackMode: "MANUAL",
          commitInterval: "1 hour",
          maxPollRecords: 1,
          retry: RetryPolicy.blocking({
            ...{ maxAttempts: 3, initialBackoff: "1 minute", maxBackoff: "1 minute", multiplier: 1, jitter: 0 }
          }),
          handler: ({ value }) => (value === "bad" ? Effect.die("no") : Effect.void)
        })
        const first = yield* start(binding)
        // Both partitions have one attempt behind them and wait for the second.
        yield* advance("30 seconds")
        const second = yield* start(binding)
        const attemptsIn = (partition: number) =>
          first.of("AttemptFailed").flatMap((event) => (event.partition === partition ? [event.attempt] : []))
        const moved = first.of("PartitionRevoked")[0]!.partition
        // Released at once, with what was finished: nobody waits for the backoff.
        assert.deepStrictEqual(
          second.of("PartitionAssigned").map(({ partition, position }) => [partition, position]),
          [[moved, 1n]]
        )
        assert.strictEqual(yield* memory.committed("billing", "orders", moved), 1n)
        const [line, ...others] = lines.filter((text) => text.includes("Partition revoked"))
        assert.deepStrictEqual(others, [])
        assert.match(line ?? "", new RegExp(`\\|orders\\|${moved}\\|.*Partition revoked; committed offset 1$`))
        yield* advance("30 seconds")
        assert.deepStrictEqual(attemptsIn(1 - moved), [1, 2])
        yield* advance("1 minute")
        assert.deepStrictEqual(attemptsIn(1 - moved), [1, 2, 3])
        assert.deepStrictEqual(attemptsIn(moved), [1])
        yield* advance("1 hour")
        assert.strictEqual(
          first
            .of("Settled")
            .filter(({ partition }) => partition === moved)
            .at(-1)?.settlement,
          "Abandoned"
        )
      }).pipe(Effect.provide(Logger.layer([keep])))
    }
  )

  scenario(
    "REB-05 LIF-12 a handler longer than the drain bound is interrupted; its record goes to the next owner",
    () =>
      Effect.gen(function* () {
        yield* fill(2, 1)
        const forever = Binding.make("orders", { ...orders, shutdownTimeout: "5 seconds", handler: () => Effect.never })
        const first = yield* start(forever)
        const handled: Array<string> = []
        yield* start(slowly(handled))
        yield* advance("4 seconds")
        assert.deepStrictEqual(handled, [])
        yield* advance("1 second")
        yield* advance("1 second")
        const moved = first.of("PartitionRevoked")[0]!.partition
        assert.deepStrictEqual(
          first.of("DrainTimedOut").map(({ partition, unfinished }) => [partition, unfinished]),
          [[moved, 1]]
        )
        assert.deepStrictEqual(handled, [`${moved}/0`])
      })
  )

  scenario(
    "REB-06 a dead letter publish that has started is finished before the partition is given up, and counted",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* fill(2, 1)
        yield* memory.createTopic("orders.DLT", { partitions: 2 })
        const failing = Binding.make("orders", {
          ...orders,
          retry: RetryPolicy.none,
          handler: () => Effect.fail(new Boom()),
          onError: { Boom: Route.retry }
        })
        yield* start(failing)
        const handled: Array<string> = []
        yield* start(slowly(handled))
        for (let second = 0; second < 10; second++) yield* advance("1 second")
        const letters = [...(yield* valuesOf("orders.DLT", 0)), ...(yield* valuesOf("orders.DLT", 1))]
        assert.deepStrictEqual(letters.sort(), ["0/0", "1/0"])
        assert.deepStrictEqual(handled, [])
      }),
    { latency: { produce: "2 seconds" } }
  )

  scenario("BND-13 RES-10 concurrency n: n members in the group, each partition with one of them", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      const all = yield* fill(6, 2)
      const handled: Array<string> = []
      const app = yield* start(slowly(handled, { concurrency: 3 }))
      const group = yield* memory.group("billing")
      assert.deepStrictEqual(
        group.members.map(({ assignment }) => assignment.length),
        [2, 2, 2]
      )
      yield* until(() => handled.length === all.length, "100 millis")
      assert.deepStrictEqual([...handled].sort(), [...all].sort())
      assert.deepStrictEqual(new Set(app.of("Started").map(({ consumer }) => consumer)), new Set([0, 1, 2]))
    })
  )

  scenario("REB-12 partitions that are added at run time are read from their beginning", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* fill(1, 2)
      const handled: Array<string> = []
      yield* start(slowly(handled))
      yield* Effect.scoped(Effect.flatMap(memory.broker.admin, (admin) => admin.createPartitions("orders", 3)))
      yield* append("orders", 2, values(2, 2))
      yield* until(() => handled.length === 4, "1 second")
      assert.deepStrictEqual([...handled].sort(), ["0/0", "0/1", "2/0", "2/1"])
    })
  )
})

describe("the stream of a partition", () => {
  scenario("CARD-04 it opens with the assignment, passes records in offset order, and ends with the revocation", () =>
    Effect.gen(function* () {
      yield* fill(2, 20)
      const [ofFirst, ofSecond]: [Array<string>, Array<string>] = [[], []]
      const first = yield* start(slowly(ofFirst))
      yield* advance("550 millis")
      const second = yield* start(slowly(ofSecond))
      yield* until(() => ofFirst.length + ofSecond.length === 40, "100 millis")
      assert.strictEqual(first.of("PartitionAssigned").length, 2)
      const [moved] = second.of("PartitionAssigned")
      const { partition } = moved!
      assert.deepStrictEqual(
        first.of("PartitionReleased").map((released) => [released.partition, released.committed]),
        [[partition, moved!.position]]
      )
      const before = ofFirst.filter((value) => value.startsWith(`${partition}/`))
      assert.strictEqual(BigInt(before.length), moved!.position)
      assert.deepStrictEqual([...before, ...ofSecond], values(partition, 20))
      assert.deepStrictEqual(
        ofFirst.filter((value) => !value.startsWith(`${partition}/`)),
        values(1 - partition, 20)
      )
    })
  )
})

describe("lost partitions", () => {
  scenario("CLS-11 OFF-09 work of a lost partition is interrupted, and neither committed nor dead-lettered", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* fill(1, 1)
      let interrupted = 0
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          handler: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))
        })
      )
      yield* memory.inject({ _tag: "SessionExpired", groupId: "billing" })
      yield* until(() => app.of("PartitionAssigned").length === 2, "1 second")
      assert.strictEqual(interrupted, 1)
      assert.deepStrictEqual(yield* memory.commits("billing"), [])
      assert.deepStrictEqual(app.of("AttemptFailed"), [])
      assert.strictEqual(app.of("PartitionLost").length, 1)
    })
  )

  scenario("REB-07 a partition that comes back waits for an old handler that cannot be interrupted", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* fill(1, 1)
      let running = 0
      let most = 0
      let done = 0
      yield* start(
        Binding.make("orders", {
          ...orders,
          handler: () =>
            Effect.uninterruptible(
              Effect.gen(function* () {
                most = Math.max(most, ++running)
                yield* Effect.sleep("30 seconds")
                running--
                done++
              })
            )
        })
      )
      yield* memory.inject({ _tag: "PartitionLost", topic: "orders", partition: 0 })
      yield* until(() => done === 2, "5 seconds")
      assert.strictEqual(most, 1)
      yield* settle
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
    })
  )
})

describe("membership", () => {
  scenario("REB-08 a static member that returns in time causes no rebalance for the others", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* fill(2, 1)
      const other = yield* start(slowly([], {}))
      const binding = Binding.make("invoices", { ...orders, staticMembership: true, handler: () => Effect.void })
      const before = yield* start(binding)
      yield* advance("1 second")
      const { generation } = yield* memory.group("billing")
      yield* inTime(before.close)
      const after = yield* start(binding)
      yield* advance("1 second")
      assert.strictEqual((yield* memory.group("billing")).generation, generation)
      assert.strictEqual(other.of("PartitionAssigned").length, 2)
      assert.strictEqual(after.of("PartitionAssigned").length, 1)
    })
  )

  scenario("REB-08 a static member that stays away longer than the session timeout is replaced", () =>
    Effect.gen(function* () {
      yield* fill(2, 1)
      const other = yield* start(slowly([], {}))
      const binding = Binding.make("invoices", { ...orders, staticMembership: true, handler: () => Effect.void })
      const before = yield* start(binding)
      yield* advance("1 second")
      yield* inTime(before.close)
      yield* until(() => other.of("PartitionAssigned").length === 3, "10 seconds")
    })
  )

  scenario("REB-01 a handler longer than the session timeout keeps its partition: heartbeats go on by themselves", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* fill(1, 1)
      let handled = 0
      const app = yield* start(
        Binding.make("orders", {
          ...orders,
          sessionTimeout: "6 seconds",
          heartbeatInterval: "2 seconds",
          handler: () =>
            Effect.andThen(
              Effect.sleep("5 minutes"),
              Effect.sync(() => handled++)
            )
        })
      )
      yield* until(() => handled === 1, "10 seconds")
      yield* settle
      assert.strictEqual(app.of("PartitionAssigned").length, 1)
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
    })
  )
})
