/** `replay(count)`: which dead letters go back, in which order, where to, and with what bytes. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, DeadLetter, type EventBusConnector, RetryPolicy, TopicName } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import * as fc from "fast-check"
import { advance, bytes, inTime, orders, publish, runScenario, scenario, start, text } from "../bus.ts"

type Connector = EventBusConnector.EventBusConnector["Service"]

const settings = { ...orders, autoStartup: false, handler: () => Effect.void }
const reader = Binding.make("orders", settings)

const replay = (connector: Connector, count: number) =>
  Effect.flatMap(connector.deadLetters("orders"), (commands) => inTime(commands.replay(count)))

const header = (key: string, value: string) => ({ key: `x-eventbus-${key}`, value: bytes(value) })

/** A dead letter of a record at offset 7 of a partition. */
const letter = (
  record: { readonly key: Uint8Array | null; readonly value: Uint8Array | null },
  topic = "orders",
  partition = 0
) => ({
  ...record,
  headers: [
    header("original-topic", topic),
    header("original-partition", String(partition)),
    header("original-offset", "7"),
    header("original-timestamp", "42"),
    header("dlt-reason", "RETRIES_EXHAUSTED"),
    header("dlt-timestamp", "1000")
  ]
})

const named = (value: string) => ({ key: bytes(`key of ${value}`), value: bytes(value) })

const valuesIn = (topic: string, partition = 0) =>
  Effect.map(
    Effect.flatMap(MemoryBroker.MemoryBroker, (memory) => memory.log(topic, partition)),
    (records) => records.map(({ value }) => text(value))
  )

describe("DLT-23 a replay of so many dead letters", () => {
  scenario("DLT-23 takes as many as it is told, in the order of their positions, and answers how many it took", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.DLT", { partitions: 3 })
      // The last partition has the oldest ones: the order is that of the positions, not of the times.
      for (const partition of [2, 0, 1]) {
        for (const offset of [0, 1, 2, 3]) {
          yield* memory.append("orders.DLT", partition, [letter(named(`${partition}@${offset}`))])
          yield* advance("1 minute")
        }
      }
      const { connector } = yield* start(reader)
      assert.strictEqual((yield* replay(connector, 0)).replayed, 0)
      assert.deepStrictEqual(yield* valuesIn("orders"), [])
      assert.strictEqual((yield* replay(connector, 5)).replayed, 5)
      const first = ["0@0", "0@1", "0@2", "0@3", "1@0"]
      assert.deepStrictEqual(yield* valuesIn("orders"), first)
      assert.strictEqual((yield* replay(connector, 1)).replayed, 1)
      assert.strictEqual((yield* replay(connector, 3)).replayed, 3)
      const next = ["1@1", "1@2", "1@3", "2@0"]
      assert.deepStrictEqual(yield* valuesIn("orders"), [...first, ...next])
      // More than there are.
      assert.strictEqual((yield* replay(connector, 1_000)).replayed, 3)
      assert.deepStrictEqual(yield* valuesIn("orders"), [...first, ...next, "2@1", "2@2", "2@3"])
      assert.strictEqual((yield* replay(connector, 1_000)).replayed, 0)
    })
  )

  scenario("DLT-23 takes more than one transaction holds, in order", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic("orders.DLT")
      const values = Array.from({ length: 350 }, (_, index) => String(index))
      yield* memory.append(
        "orders.DLT",
        0,
        values.map((value) => letter(named(value)))
      )
      const { connector } = yield* start(reader)
      assert.strictEqual((yield* replay(connector, 250)).replayed, 250)
      assert.deepStrictEqual(yield* valuesIn("orders"), values.slice(0, 250))
    })
  )

  scenario("DLT-23 sends each one to the topic and partition that its headers name; one that has no topic stays", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { partitions: 2 })
      yield* memory.createTopic("returns", { partitions: 4 })
      yield* memory.createTopic("orders.DLT")
      yield* memory.append("orders.DLT", 0, [
        letter(named("order"), "orders", 1),
        letter(named("return"), "returns", 3),
        letter(named("gone"), "deleted", 0),
        letter(named("another return"), "returns", 2),
        { ...named("of nobody"), headers: [] }
      ])
      const deadLetter = DeadLetter.withSettings(DeadLetter.storeOnly, { origins: ["returns", "deleted"] })
      const { connector } = yield* start(Binding.make("orders", { ...settings, deadLetter }))
      assert.deepInclude(yield* replay(connector, 10), { replayed: 4, refused: 1 })
      assert.include(yield* valuesIn("orders", 1), "order")
      assert.deepStrictEqual(yield* valuesIn("returns", 3), ["return"])
      assert.deepStrictEqual(yield* valuesIn("returns", 2), ["another return"])
      // It names no topic: it goes to the topic of the binding.
      const unnamed = [...(yield* valuesIn("orders", 0)), ...(yield* valuesIn("orders", 1))]
      assert.sameMembers(unnamed, ["order", "of nobody"])
      assert.deepStrictEqual(yield* valuesIn("orders.DLT"), ["order", "return", "gone", "another return", "of nobody"])
    })
  )

  it("DLT-23 leaves key and value as they are, byte for byte", () => {
    const any = fc.option(fc.uint8Array({ maxLength: 50 }))
    const records = fc.array(fc.record({ key: any, value: any }), { minLength: 1, maxLength: 12 })
    return fc.assert(
      fc.asyncProperty(records, (given) =>
        runScenario(
          Effect.gen(function* () {
            const memory = yield* MemoryBroker.MemoryBroker
            yield* memory.createTopic("orders")
            yield* memory.createTopic("orders.DLT")
            yield* memory.append(
              "orders.DLT",
              0,
              given.map((record) => letter(record))
            )
            const { connector } = yield* start(reader)
            assert.strictEqual((yield* replay(connector, given.length)).replayed, given.length)
            const copies = yield* memory.log("orders", 0)
            assert.deepStrictEqual(
              copies.map(({ key, value }) => ({ key, value })),
              given
            )
          })
        )
      ),
      { numRuns: 25 }
    )
  })

  scenario("DLT-23 ruling 61 the own group handles what comes back, and a group beside it skips it", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const seen: Array<string> = []
      let isDown = true
      const settings = { ...orders, retry: RetryPolicy.none, naming: TopicName.perGroup }
      const billing = Binding.make("orders", {
        ...settings,
        handler: ({ value }) =>
          Effect.suspend(() => {
            if (isDown) return Effect.die("down")
            seen.push(`billing ${value}`)
            return Effect.void
          })
      })
      const audit = Binding.make("audit", {
        ...{ ...settings, groupId: "audit" },
        handler: ({ value }) => Effect.sync(() => seen.push(`audit ${value}`))
      })
      const app = yield* start(billing, audit)
      yield* publish("orders", ["a", "b"], () => "k")
      yield* advance("1 second")
      isDown = false
      assert.strictEqual((yield* replay(app.connector, 2)).replayed, 2)
      yield* advance("1 minute")
      assert.deepStrictEqual(seen, ["audit a", "audit b", "billing a", "billing b"])
      const ofAudit = app.of("Settled").filter(({ binding }) => binding === "audit")
      assert.deepStrictEqual(
        ofAudit.map(({ settlement, record }) => `${settlement} ${record.offset}`),
        ["Handled 0", "Handled 1", "Skipped 2", "Skipped 3"]
      )
      assert.strictEqual(
        yield* memory.committed("audit", "orders", 0),
        (yield* memory.committed("billing", "orders", 0))!
      )
    })
  )
})
