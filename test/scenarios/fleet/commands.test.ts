/** Commands to a fleet: who obeys, who answers what, and who is named as missing. */
import { assert, describe } from "@effect/vitest"
import { Broker, BrokerError, type Fleet, type FleetView } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Fiber } from "effect"
import { advance, append, inTime, scenario, settle } from "../bus.ts"
import { acks, control, noting, operator, soon, startIn, target, write } from "./fleet.ts"

const reason = "the bank is down"
const held = { ...target, reason, by: "ann" } as const
const pause = { verb: "pause", binding: "orders", reason, by: "ann" } as const
const id = "6f1c1f6e-0000-4000-8000-000000000001"

const topic = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: 2 })
  return memory
})

/** A fleet of one process that has told of itself. */
const oneProcess = Effect.gen(function* () {
  const memory = yield* topic
  const fleet = yield* operator
  yield* inTime(fleet.createTopics)
  const app = yield* startIn({}, noting([]))
  yield* advance("6 seconds")
  return { memory, fleet, app }
})

const command = Effect.fnUntraced(function* (fleet: Fleet.Fleet["Service"], request: FleetView.CommandRequest) {
  return yield* inTime(fleet.command(request), "500 millis")
})

const unavailable = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "cut off by the test" })

const entry = { v: 1, minV: 1, verb: "pause", target: {}, by: "ann", reason, expiresAfter: 60_000 }

describe("commands to a fleet", () => {
  scenario("OPS-14 each live process obeys and answers, and the answer names it", () =>
    Effect.gen(function* () {
      yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      const apps = [yield* startIn({}, noting([])), yield* startIn({}, noting([])), yield* startIn({}, noting([]))]
      yield* advance("6 seconds")
      for (const [verb, state] of [
        ["pause", "PAUSED"],
        ["resume", "RUNNING"],
        ["stop", "STOPPED"],
        ["start", "RUNNING"]
      ] as const) {
        const { answers, missing } = yield* command(fleet, { ...pause, verb })
        assert.deepStrictEqual(missing, [])
        assert.deepStrictEqual(
          answers.map(({ state, bindings, error }) => [state, bindings, error]),
          Array.from(apps, () => ["done", 1, undefined])
        )
        assert.strictEqual(new Set(answers.map(({ process }) => process)).size, 3)
        for (const { connector } of apps) assert.strictEqual(yield* connector.getState("orders"), state)
      }
    })
  )

  scenario("OPS-14 a command right behind a release finds the hold released, though both are read at once", () =>
    Effect.gen(function* () {
      const { fleet, app } = yield* oneProcess
      yield* inTime(fleet.hold(held))
      yield* soon
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      const releasing = yield* Effect.forkChild(fleet.release({ ...target, reason: "the bank is back" }))
      yield* settle
      const { answers } = yield* command(fleet, { ...pause, verb: "resume" })
      assert.isTrue(yield* Fiber.join(releasing))
      assert.deepStrictEqual(
        answers.map(({ state, error }) => [state, error]),
        [["done", undefined]]
      )
    })
  )

  scenario("OPS-14 a command that is given again with its id runs once, and has the same answers", () =>
    Effect.gen(function* () {
      const { fleet, app } = yield* oneProcess
      const first = yield* command(fleet, { ...pause, id })
      yield* app.connector.resume("orders")
      assert.deepStrictEqual(yield* command(fleet, { ...pause, id }), first)
      // An entry that somebody has written twice is no other command either.
      yield* write(control, `command/${id}`, { ...entry, binding: "orders" })
      yield* soon
      assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
      assert.deepStrictEqual(yield* acks(id), ["accepted", "done", "done"])
      const error = yield* Effect.flip(command(fleet, { ...pause, id, verb: "stop" }))
      assert.strictEqual(error.message, `command: id is ${id}, expected the id of no other command. Nothing was done.`)
    })
  )

  scenario(
    "OPS-14 a process that still reads the control topic obeys what came after its first heartbeat, and nothing before",
    () =>
      Effect.gen(function* () {
        const { broker } = yield* topic
        const fleet = yield* operator
        yield* inTime(fleet.createTopics)
        yield* write(control, "command/before", { ...entry, verb: "stop" })
        yield* advance("1 second")
        let isCut = true
        const slow: Broker.Broker["Service"] = {
          ...broker,
          reader: (options) =>
            Effect.map(broker.reader(options), ({ read }) => ({
              read: (position) =>
                Effect.suspend(() => (isCut && position.topic === control ? Effect.fail(unavailable) : read(position)))
            }))
        }
        const app = yield* Effect.provideService(startIn({}, noting([])), Broker.Broker, slow)
        yield* advance("3 seconds")
        assert.isTrue((yield* app.connector.snapshot("orders")).readsHolds)
        const asking = yield* Effect.forkChild(fleet.command({ ...pause, id }))
        yield* advance("1 second")
        isCut = false
        yield* advance("3 seconds")
        const { answers, missing } = yield* Fiber.join(asking)
        assert.deepStrictEqual([answers.map(({ state }) => state), missing], [["done"], []])
        assert.deepStrictEqual(yield* acks("before"), [])
        assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      })
  )

  scenario("OPS-14 a process that died is missing, and named; one that is known to be stale is not waited for", () =>
    Effect.gen(function* () {
      const memory = yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      yield* startIn({}, noting([]))
      // A heartbeat of a process that writes no other one.
      const dead = { host: "b", pid: 7, version: "", configHash: "", control: "known", bindings: [], omitted: 0 }
      yield* write("__eventbus.fleet", "process/dead", { v: 1, minV: 1, ...dead, sentAt: 0 })
      yield* advance("6 seconds")
      const { answers, missing } = yield* command(fleet, { ...pause, wait: "3 seconds" })
      assert.strictEqual(answers.length, 1)
      assert.deepStrictEqual(missing, [{ process: "dead", host: "b", pid: 7, accepted: false }])
      yield* advance("10 seconds")
      assert.deepStrictEqual((yield* command(fleet, { ...pause, verb: "resume" })).missing, [])
      assert.isTrue((yield* memory.log("__eventbus.fleet", 0)).length > 0)
    })
  )

  scenario("OPS-14 a target is one host, one process, or the bindings of one group", () =>
    Effect.gen(function* () {
      const memory = yield* topic
      yield* memory.createTopic("audit")
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      const one = yield* startIn({}, noting([]), noting([], { topic: "audit", groupId: "audit" }, "audit"))
      const two = yield* startIn({}, noting([]))
      yield* advance("6 seconds")
      const states = Effect.gen(function* () {
        return [
          yield* one.connector.getState("orders"),
          yield* one.connector.getState("audit"),
          yield* two.connector.getState("orders")
        ]
      })
      const group = yield* command(fleet, { verb: "pause", reason, target: { group: "audit" } })
      assert.deepStrictEqual(group.answers.map(({ bindings }) => bindings).sort(), [0, 1])
      assert.deepStrictEqual(yield* states, ["RUNNING", "PAUSED", "RUNNING"])
      const [first] = (yield* inTime(fleet.view)).processes
      const process = yield* command(fleet, { verb: "pause", reason, target: { process: first!.id } })
      assert.deepStrictEqual(
        process.answers.map((answer) => answer.process),
        [first!.id]
      )
      assert.strictEqual((yield* states).filter((state) => state === "PAUSED").length, 2)
      const host = yield* command(fleet, { verb: "pause", reason, target: { host: "elsewhere" } })
      assert.deepStrictEqual([host.answers, host.missing], [[], []])
    })
  )

  scenario("OPS-14 a command that a process reads too late is expired, and does nothing", () =>
    Effect.gen(function* () {
      const { broker } = yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      let isCut = false
      const cutOff: Broker.Broker["Service"] = {
        ...broker,
        reader: (options) =>
          Effect.map(broker.reader(options), ({ read }) => ({
            read: (position) => Effect.suspend(() => (isCut ? Effect.fail(unavailable) : read(position)))
          }))
      }
      const app = yield* Effect.provideService(startIn({}, noting([])), Broker.Broker, cutOff)
      yield* advance("6 seconds")
      isCut = true
      yield* write(control, `command/${id}`, { ...entry, expiresAfter: 30_000 })
      yield* advance("20 seconds")
      yield* write(control, "command/later", { ...entry, verb: "stop", binding: "none", expiresAfter: 30_000 })
      yield* advance("20 seconds")
      isCut = false
      yield* advance("5 seconds")
      assert.deepStrictEqual([yield* acks(id), yield* acks("later")], [["expired"], ["accepted", "done"]])
      assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
    })
  )

  scenario("OPS-14 newer formats and unknown verbs are answered, and never ignored", () =>
    Effect.gen(function* () {
      const { app } = yield* oneProcess
      for (const [key, value, expected] of [
        ["newer", { ...entry, v: 9, minV: 9 }, "unsupported-version: format 9"],
        ["verb", { ...entry, verb: "rewind" }, "unsupported-version: verb 'rewind'"],
        ["broken", "{", "refused: the control topic has an entry for it that cannot be read"],
        ["fields", { ...entry, verb: "stop", binding: "none", v: 2, later: true }, "accepted,done"]
      ] as const) {
        yield* write(control, `command/${key}`, value)
        yield* soon
        assert.strictEqual((yield* acks(key)).join(), expected)
      }
      assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
    })
  )

  scenario("OPS-14 OPS-13 a resume under a hold is refused, with the owner of the hold", () =>
    Effect.gen(function* () {
      yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.hold({ ...target, reason, by: "bob" }))
      yield* startIn({}, noting([]))
      yield* advance("6 seconds")
      const { answers } = yield* command(fleet, { ...pause, verb: "resume" })
      assert.deepStrictEqual(
        answers.map(({ state }) => state),
        ["refused"]
      )
      assert.include(answers[0]?.error, "bob holds it in the whole fleet: the bank is down")
    })
  )

  scenario(
    "OPS-14 a process that starts after a command does not obey it; an entry of the fleet topic commands nobody",
    () =>
      Effect.gen(function* () {
        yield* topic
        const fleet = yield* operator
        yield* inTime(fleet.createTopics)
        yield* command(fleet, { ...pause, expiresAfter: "1 day" })
        const handled: Array<string> = []
        const app = yield* startIn({}, noting(handled))
        yield* advance("6 seconds")
        yield* write("__eventbus.fleet", `command/${id}`, entry)
        yield* write("__eventbus.fleet", "hold/default/billing/orders", { v: 1, minV: 1, by: "eve", reason })
        yield* advance("6 seconds")
        yield* append("orders", 0, ["a"])
        yield* settle
        assert.deepStrictEqual(handled, ["a"])
        assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
      })
  )

  scenario("OPS-14 a control topic with the times of its writers: commands are refused", () =>
    Effect.gen(function* () {
      const memory = yield* topic
      yield* memory.createTopic(control, { config: new Map([["cleanup.policy", "compact"]]) })
      const app = yield* startIn({}, noting([]))
      yield* advance("6 seconds")
      yield* write(control, `command/${id}`, entry)
      yield* soon
      assert.include((yield* acks(id)).join(), "refused: the control topic keeps the times of its writers")
      assert.strictEqual(yield* app.connector.getState("orders"), "RUNNING")
    })
  )

  scenario("OPS-14 answers wait for a fleet topic that cannot be written", () =>
    Effect.gen(function* () {
      const { memory, fleet, app } = yield* oneProcess
      yield* Effect.scoped(
        Effect.flatMap(memory.broker.admin, ({ deleteTopics }) => deleteTopics(["__eventbus.fleet"]))
      )
      yield* write(control, `command/${id}`, { ...entry, binding: "orders" })
      yield* advance("20 seconds")
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      assert.deepStrictEqual((yield* acks(id)).at(-1), "done")
      assert.strictEqual((yield* inTime(fleet.view)).processes.length, 1)
    })
  )

  scenario("OPS-14 commands are forgotten after seven days", () =>
    Effect.gen(function* () {
      const memory = yield* topic
      const fleet = yield* operator
      yield* inTime(fleet.createTopics)
      yield* command(fleet, { ...pause, id })
      yield* advance("7 days")
      yield* advance("1 minute")
      yield* command(fleet, { ...pause, verb: "resume" })
      const last = (yield* memory.log(control, 0)).findLast(
        ({ key }) => new TextDecoder().decode(key!) === `command/${id}`
      )
      assert.isNull(last?.value)
    })
  )

  scenario("OPS-14 arguments of another kind are refused by path and value", () =>
    Effect.gen(function* () {
      const fleet = yield* operator
      const refused = (request: object) =>
        Effect.map(Effect.flip(fleet.command(request as never)), ({ message }) => message)
      assert.include(yield* refused({ ...pause, verb: "rewind" }), "command: verb is 'rewind', expected \"pause\", ")
      assert.include(yield* refused({ ...pause, verb: "stop", tier: 1 }), "command: tier is 1, expected nothing")
      assert.include(yield* refused({ ...pause, target: { group: "a", host: "b" } }), "command: target is {")
      assert.include(yield* refused({ ...pause, id: "1" }), "command: id is '1', expected a UUID in small letters")
      assert.include(yield* refused({ ...pause, expiresAfter: "8 days" }), "command: expiresAfter is")
      assert.include(yield* refused({ ...pause, reason: "" }), "command: reason is ''")
      assert.include(yield* refused({ verb: "pause" }), "command: reason is undefined")
    })
  )
})
