/** Ruling 76: a record's time is the time of publishing, the event's own time is in a header, and a refused time costs no event. */
import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@eventbus/core"
import { Outbox, OutboxSchema } from "@eventbus/outbox"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import * as NodeSqlite from "@eventbus/outbox/NodeSqlite"
import { MemoryBroker } from "@eventbus/testkit"
import { Clock, Effect, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { skewed } from "../outbox/skewedClock.ts"
import { headersOf } from "../scenarios/bus.ts"

const hour = 3_600_000
const start = 100 * 24 * hour

const database = Layer.effectDiscard(Effect.orDie(OutboxSchema.migrate())).pipe(
  Layer.provideMerge(Layer.orDie(NodeSqlite.layer({ filename: ":memory:" })))
)

const captured = () => {
  const lines: Array<string> = []
  const logger = Logger.layer([Logger.make(({ message }) => void lines.push([message].flat().map(String).join(" ")))])
  return { lines, logger }
}

const writeAt = (...times: ReadonlyArray<number>) =>
  SqlClient.SqlClient.use((sql) =>
    sql.withTransaction(
      Outbox.writeAll(times.map((occurredAt, n) => ({ eventType: "orders", aggregateId: "a", occurredAt, payload: n })))
    )
  )

const isAllDone = SqlClient.SqlClient.use((sql) =>
  Effect.map(
    sql.unsafe<{ status: number; attempts: number }>("SELECT status, attempts FROM outbox_event"),
    (rows) => rows.length > 0 && rows.every(({ status, attempts }) => status === 1 && attempts === 0)
  )
)

const relay = (options: KafkaRelay.KafkaRelayOptions) =>
  Outbox.orderedNodes(KafkaRelay.orderedSettings).pipe(Layer.provide(KafkaRelay.layer(options)))

/** Sets the time before anything is built that would wake again and again on the way there. */
const fromStart = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.andThen(TestClock.setTime(start), effect)

const pass = (seconds: number) => Effect.repeat(TestClock.adjust("100 millis"), { times: seconds * 10 - 1 })

/** The relay, its writer and its producer, on a node whose clock is off. The broker's and the database's clocks are right. */
const onClock = (offMillis: number, options: KafkaRelay.KafkaRelayOptions) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const clock = skewed(yield* Clock.Clock, () => offMillis)
      const broker = yield* Broker.Broker
      const off: Broker.Broker["Service"] = {
        ...broker,
        producer: (given) => Effect.provideService(broker.producer(given), Clock.Clock, clock)
      }
      return Layer.provide(relay(options), Layer.succeed(Broker.Broker, off))
    })
  )

describe("C40 event older than the topic's retention; writer's clock ahead", () => {
  it.effect("ruling 76: the record of an old event outlives the retention, with the event's own time in a header", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders", { config: new Map([["retention.ms", "60000"]]) })
      yield* writeAt(start - 600_000)
      yield* pass(5)
      yield* memory.enforceRetention
      const [record, ...others] = yield* memory.log("orders", 0)
      assert.deepStrictEqual(others, [])
      assert.isAtLeast(record!.timestamp, start)
      assert.strictEqual(headersOf(record!).get("x-eventbus-occurred-at"), new Date(start - 600_000).toISOString())
      assert.isTrue(yield* isAllDone)
    }).pipe(
      Effect.provide(Layer.provideMerge(relay({}), Layer.provideMerge(MemoryBroker.layer(), database))),
      fromStart
    )
  )

  for (const [name, offHours] of [
    ["two hours ahead", 2],
    ["fifty hours ahead", 50],
    ["five hours behind", -5]
  ] as const) {
    it.effect(`ruling 76: a node whose clock is ${name} still publishes, and the log says so`, () => {
      const { lines, logger } = captured()
      return Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", {
          config: new Map([
            ["message.timestamp.after.max.ms", String(hour)],
            ...(offHours < 0 ? ([["message.timestamp.before.max.ms", String(hour)]] as const) : [])
          ])
        })
        yield* writeAt(...Array.from({ length: 20 }, (_, n) => start + offHours * hour + n))
        yield* pass(5)
        assert.isTrue(yield* isAllDone)
        const log = yield* memory.log("orders", 0)
        assert.deepStrictEqual(
          log.map(({ value }) => new TextDecoder().decode(value!)),
          Array.from({ length: 20 }, (_, n) => String(n))
        )
        for (const { timestamp } of log) assert.isAtMost(timestamp, start + hour + 5000)
      }).pipe(
        Effect.provide(
          Layer.provideMerge(
            onClock(offHours * hour, {}),
            Layer.provideMerge(Layer.provideMerge(MemoryBroker.layer(), database), logger)
          )
        ),
        fromStart,
        Effect.andThen(
          Effect.sync(() =>
            assert.isTrue(
              lines.some((line) => line.includes("refuses the time")),
              lines.join("\n")
            )
          )
        )
      )
    })
  }

  it.effect(
    "ruling 76, `occurred`: the event's time where the topic accepts it, the present time where it refuses",
    () => {
      const { lines, logger } = captured()
      return Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders", {
          config: new Map([
            ["message.timestamp.after.max.ms", String(hour)],
            ["message.timestamp.before.max.ms", String(hour)]
          ])
        })
        yield* writeAt(start - hour / 2, start + 2 * hour, start - 2 * hour, start + hour / 2)
        yield* pass(5)
        assert.isTrue(yield* isAllDone)
        const log = yield* memory.log("orders", 0)
        const times = log.map(({ timestamp }) => timestamp - start).sort((a, b) => a - b)
        assert.strictEqual(times[0], -hour / 2)
        assert.strictEqual(times[3], hour / 2)
        for (const millis of times.slice(1, 3)) assert.isTrue(millis >= 0 && millis < 10_000, String(millis))
        assert.sameMembers(
          log.map((record) => headersOf(record).get("x-eventbus-occurred-at")),
          [-hour / 2, 2 * hour, -2 * hour, hour / 2].map((off) => new Date(start + off).toISOString())
        )
        assert.strictEqual(
          lines.filter((line) => line.includes("refuses the time of a record")).length,
          1,
          lines.join("\n")
        )
      }).pipe(
        Effect.provide(
          Layer.provideMerge(
            relay({ timestamp: "occurred" }),
            Layer.provideMerge(Layer.provideMerge(MemoryBroker.layer(), database), logger)
          )
        ),
        fromStart
      )
    }
  )
})
