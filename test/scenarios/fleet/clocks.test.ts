/** Clocks of processes and operators that are an hour off: times are the cluster's, so each status is right all the same. */
import { assert, describe } from "@effect/vitest"
import { Broker, BrokerError } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Clock, Effect } from "effect"
import { advance, inTime, scenario } from "../bus.ts"
import { acks, control, fleetTopic, noting, operator, operatorOff, soon, startIn, target, write } from "./fleet.ts"

const hour = 3_600_000
const off = [hour, -hour]

const topic = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: 2 })
  yield* inTime((yield* operator).createTopics)
  return memory
})

/** The only heartbeat that a process writes before it dies. */
const lastBeat = write(fleetTopic, "process/dead", {
  ...{ v: 1, minV: 1, host: "b", pid: 7, version: "2", configHash: "00", sentAt: 0 },
  ...{ control: "known", bindings: [], omitted: 0 }
})

const unavailable = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "cut off by the test" })

const entry = { v: 1, minV: 1, target: {}, binding: "orders", by: "ann", reason: "test", expiresAfter: 30_000 }

describe("clocks that are an hour off", () => {
  scenario("OPS-13 `until` of a hold is the cluster's time", () =>
    Effect.gen(function* () {
      yield* topic
      const until = (yield* Clock.currentTimeMillis) + 600_000
      yield* inTime((yield* operator).hold({ ...target, reason: "test", until }))
      const apps = yield* Effect.forEach(off, (offMillis) => startIn({ offMillis }, noting([])))
      const states = Effect.forEach(apps, ({ connector }) => connector.getState("orders"))
      yield* advance("9 minutes")
      assert.deepStrictEqual(yield* states, ["PAUSED", "PAUSED"])
      yield* advance("2 minutes")
      assert.deepStrictEqual(yield* states, ["RUNNING", "RUNNING"])
    })
  )

  for (const offMillis of off) {
    const by = `${offMillis > 0 ? "+" : "-"}1 hour`

    scenario(
      `OPS-14 a process that is off by ${by} obeys a command in time, and calls one that it reads late expired`,
      () =>
        Effect.gen(function* () {
          const { broker } = yield* topic
          let isCut = false
          const cutOff: Broker.Broker["Service"] = {
            ...broker,
            reader: (options) =>
              Effect.map(broker.reader(options), ({ read }) => ({
                read: (position) => Effect.suspend(() => (isCut ? Effect.fail(unavailable) : read(position)))
              }))
          }
          const app = yield* Effect.provideService(startIn({ offMillis }, noting([])), Broker.Broker, cutOff)
          yield* advance("6 seconds")
          yield* write(control, "command/in-time", { ...entry, verb: "pause" })
          yield* soon
          isCut = true
          yield* write(control, "command/late", { ...entry, verb: "resume" })
          yield* advance("40 seconds")
          isCut = false
          yield* advance("5 seconds")
          assert.deepStrictEqual([yield* acks("in-time"), yield* acks("late")], [["accepted", "done"], ["expired"]])
          assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
        })
    )

    scenario(`OPS-15 an operator who is off by ${by} sees who lives and who is stale, the second time at once`, () =>
      Effect.gen(function* () {
        yield* topic
        yield* lastBeat
        yield* advance("1 minute")
        yield* startIn({}, noting([]))
        yield* advance("6 seconds")
        const fleet = yield* operatorOff(offMillis)
        const statuses = Effect.map(fleet.view, ({ processes }) => processes.map(({ status }) => status).sort())
        assert.deepStrictEqual(yield* inTime(statuses, "500 millis"), ["live", "stale"])
        const from = yield* Clock.currentTimeMillis
        assert.deepStrictEqual(yield* inTime(statuses, "10 millis"), ["live", "stale"])
        assert.isBelow((yield* Clock.currentTimeMillis) - from, 1_000)
      })
    )

    scenario(`OPS-15 an operator who is off by ${by} sees that a fleet is stale whose processes have all died`, () =>
      Effect.gen(function* () {
        yield* topic
        yield* lastBeat
        yield* advance("10 minutes")
        const { processes } = yield* inTime((yield* operatorOff(offMillis)).view, "500 millis")
        assert.deepStrictEqual(
          processes.map(({ status }) => status),
          ["stale"]
        )
      })
    )
  }
})
