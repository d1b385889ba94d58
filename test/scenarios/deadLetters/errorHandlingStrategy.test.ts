import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetter, Route, Serde, TopicName } from "@eventbus/core"
import * as Profile from "@eventbus/core/presets/Profile"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Schema } from "effect"
import {
  advance,
  append,
  bytes,
  headersOf,
  inTime,
  now,
  scenario,
  settle,
  start,
  text,
  until,
  valuesOf
} from "../bus.ts"

class Invalid extends Schema.TaggedError<Invalid>()("Invalid", {}) {}
class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", {}) {}

const Event = Schema.Struct({ id: Schema.String, kind: Schema.Literals(["good", "invalid", "unavailable"]) })

/** The ten consumers of the strategy. Two groups read the same topic twice: their dead letters are named apart. */
const consumers = [
  ["cg-deal-events", "deal.events", Profile.standard],
  ["cg-deposit-watcher", "escrow.commands", Profile.financial],
  ["cg-payout-executor", "escrow.commands", Profile.financial],
  ["cg-deposit-handler", "escrow.confirmations", Profile.financial],
  ["cg-auto-publisher", "delivery.commands", Profile.standard],
  ["cg-delivery-verifier", "delivery.commands", Profile.standard],
  ["cg-delivery-handler", "delivery.results", Profile.standard],
  ["cg-notification-sender", "notifications.outbox", Profile.notification],
  ["cg-deadline-handler", "deal.deadlines", Profile.standard],
  ["cg-reconciliation", "reconciliation.triggers", Profile.reconciliation]
] as const
const shared: ReadonlySet<string> = new Set(["escrow.commands", "delivery.commands"])
const topics = [...new Set(consumers.map(([, topic]) => topic))]
const event = (kind: string) => JSON.stringify({ id: "e-1", kind })

interface Call {
  readonly group: string
  readonly atMillis: number
}

const bindings = (calls: Array<Call>) =>
  consumers.map(([group, topic, profile]) =>
    Binding.make(group, {
      ...profile,
      topic,
      groupId: group,
      value: Serde.json(Event),
      naming: shared.has(topic) ? TopicName.perGroup : TopicName.standard,
      deadLetter: DeadLetter.withSettings(DeadLetter.storeOnly, { headers: { spring: "plain" } }),
      onError: { Invalid: Route.deadLetter("validation"), Unavailable: Route.retry },
      handler: ({ value }) =>
        Effect.gen(function* () {
          calls.push({ group, atMillis: yield* now })
          if (value.kind === "invalid") return yield* new Invalid()
          if (value.kind === "unavailable") return yield* new Unavailable()
        })
    })
  )

const waitsOf = (calls: ReadonlyArray<Call>, group: string) => {
  const times = calls.filter((call) => call.group === group).map(({ atMillis }) => atMillis)
  return times.slice(1).map((at, index) => (at - times[index]!) / 1_000)
}

describe("the error handling strategy of the ten consumers", () => {
  scenario(
    "ERR-01 ERR-02 ERR-03 ERR-04 ERR-05 ERR-06 ERR-10 each consumer retries by its profile, then dead-letters",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        for (const topic of topics) yield* memory.createTopic(topic)
        const calls: Array<Call> = []
        const app = yield* start(...bindings(calls))
        for (const topic of topics) yield* append(topic, 0, [event("unavailable")])
        yield* until(() => app.of("Settled").length === consumers.length, "1 second")
        const expected = new Map<string, ReadonlyArray<number>>([
          ["cg-deal-events", [1, 2, 4]],
          ["cg-payout-executor", [5, 10, 20, 40, 60]],
          ["cg-deposit-handler", [5, 10, 20, 40, 60]],
          ["cg-notification-sender", [1, 2, 4]],
          ["cg-reconciliation", []]
        ])
        for (const [group, waits] of expected) assert.deepStrictEqual(waitsOf(calls, group), waits, group)
        assert.isTrue(app.of("Settled").every(({ settlement }) => settlement === "DeadLettered"))
        for (const [group, topic] of consumers) assert.strictEqual(yield* memory.committed(group, topic, 0), 1n, group)
      })
  )

  scenario(
    "ERR-07 ERR-08 ERR-09 ERR-11 malformed and invalid events are dead-lettered at once, with Spring's headers, and not delivered again",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        for (const topic of topics) yield* memory.createTopic(topic)
        const calls: Array<Call> = []
        const app = yield* start(...bindings(calls))
        const bad = ['{"id":', '{"id":"e-1"}', event("unknown"), event("invalid"), event("good")]
        for (const topic of topics) yield* append(topic, 0, bad)
        yield* settle
        yield* inTime(app.close, "1 second")
        const again = yield* start(...bindings([]))
        yield* advance("1 minute")
        assert.deepStrictEqual(again.of("Settled"), [])
        for (const topic of topics) {
          const groups = consumers.flatMap(([group, of]) => (of === topic ? [group] : []))
          for (const group of groups) {
            const letters = shared.has(topic) ? `${topic}.${group}.DLT` : `${topic}.DLT`
            assert.deepStrictEqual(yield* valuesOf(letters), bad.slice(0, 4), letters)
            // Only the two that decode reach the handler: the invalid one once, the good one once.
            assert.strictEqual(calls.filter((call) => call.group === group).length, 2, group)
            const [, , , last] = yield* memory.log(letters, 0)
            const headers = headersOf(last)
            assert.strictEqual(headers.get("kafka_dlt-original-topic"), topic)
            assert.strictEqual(headers.get("kafka_dlt-exception-fqcn"), "Invalid")
            const names = ["message", "stacktrace"].map((name) => `kafka_dlt-exception-${name}`)
            for (const name of [
              ...names,
              ...["partition", "offset", "timestamp"].map((n) => `kafka_dlt-original-${n}`)
            ]) {
              assert.isTrue(headers.has(name), name)
            }
          }
        }
      })
  )

  scenario(
    "ERR-16 cooperative for all ten: a second process gets half of the partitions, the others are untouched",
    () =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        for (const topic of topics) yield* memory.createTopic(topic, { partitions: 4 })
        const app = yield* start(...bindings([]))
        const before = app.of("PartitionAssigned").length
        yield* start(...bindings([]))
        yield* advance("30 seconds")
        for (const [group] of consumers) {
          const { members } = yield* memory.group(group)
          assert.deepStrictEqual(
            members.map(({ assignment }) => assignment.length),
            [2, 2],
            group
          )
          const revoked = app.of("PartitionRevoked").filter(({ binding }) => binding === group)
          assert.strictEqual(revoked.length, 2, group)
        }
        assert.strictEqual(before, consumers.length * 4)
        assert.strictEqual(app.of("PartitionAssigned").length, before)
      })
  )

  scenario("ERR-12 a crash before the commit delivers again", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("deal.events")
      yield* memory.append("deal.events", 0, [{ key: bytes("k"), value: bytes("x") }])
      const seen: Array<string | null> = []
      yield* start(
        Binding.make("deals", {
          ...Profile.standard,
          topic: "deal.events",
          groupId: "cg-deal-events",
          value: Serde.bytes,
          handler: ({ value }) =>
            Effect.andThen(
              Effect.sync(() => seen.push(text(value))),
              Effect.sleep("1 second")
            )
        })
      )
      yield* memory.inject({ _tag: "ConnectionDropped" })
      yield* until(() => seen.length === 2, "1 second")
      yield* advance("5 seconds")
      assert.strictEqual(yield* memory.committed("cg-deal-events", "deal.events", 0), 1n)
      assert.deepStrictEqual(seen, ["x", "x"])
    })
  )
})
