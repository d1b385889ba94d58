import { assert, describe } from "@effect/vitest"
import * as Configuration from "@eventbus/config/Configuration"
import { Binding, Broker, DeadLetter, EventBusError, Plan, Replay, Route, Serde, Trail } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect, Logger } from "effect"
import { type App, advance, bytes, headersOf, inTime, now, publish, scenario, start, text } from "../scenarios/bus.ts"

class Down extends Data.TaggedError("Down") {}

/** A service in a process of its own, with default tiers and names. Its handler fails its first `failures` calls. */
const service = Effect.fnUntraced(function* (
  groupId: string,
  failures: number,
  options: { readonly deadLetter?: DeadLetter.DeadLetter; readonly adopts?: ReadonlyArray<string> } = {}
) {
  const state = { calls: 0, failures }
  const app = yield* start(
    Binding.make(groupId, {
      ...{ topic: "orders", groupId, value: Serde.string, onError: { Down: Route.retry } },
      ...options,
      handler: () => Effect.suspend(() => (++state.calls <= state.failures ? Effect.fail(new Down()) : Effect.void))
    })
  )
  return { app, state }
})

/** Long enough for the default tiers. */
const throughTheTiers = Effect.repeat(advance("10 minutes"), { times: 60 })

const commandsOf = (app: App, binding: string) => app.connector.deadLetters(binding)

/** Both services dead-letter the record of offset 0. */
const bothGiveUp = Effect.fnUntraced(function* (options?: { readonly deadLetter?: DeadLetter.DeadLetter }) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders")
  const billing = yield* service("billing", Number.POSITIVE_INFINITY, options)
  const shipping = yield* service("shipping", Number.POSITIVE_INFINITY)
  yield* publish("orders", ["o-1"])
  yield* throughTheTiers
  return { memory, billing, shipping }
})

const owners = Effect.gen(function* () {
  const memory = yield* MemoryBroker.MemoryBroker
  return (yield* memory.log("orders.DLT", 0)).map((record) => headersOf(record).get("x-eventbus-copy-owner")).sort()
})

describe("C34 two services in two processes read one topic with default names", () => {
  scenario("C34 ruling 71 a record that fails in both is delivered 30 times to each, and leaves two dead letters", () =>
    Effect.gen(function* () {
      const { billing, shipping } = yield* bothGiveUp()
      assert.deepStrictEqual([billing.state.calls, shipping.state.calls], [30, 30])
      assert.deepStrictEqual(yield* owners, ["orders.DLT/billing", "orders.DLT/shipping"])
    })
  )

  scenario("C34 ruling 71 a record that fails twice in billing only is handled once by shipping", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const billing = yield* service("billing", 12)
      const shipping = yield* service("shipping", 0)
      yield* publish("orders", ["o-1"])
      yield* throughTheTiers
      assert.deepStrictEqual([billing.state.calls, shipping.state.calls], [13, 1])
      const settled = [...billing.app.of("Settled"), ...shipping.app.of("Settled")]
      assert.notInclude(
        settled.map(({ settlement }) => settlement),
        "DeadLettered"
      )
    })
  )

  scenario("C34 ruling 71 a purge that would delete the other group's dead letter refuses, and says whose it is", () =>
    Effect.gen(function* () {
      const { billing } = yield* bothGiveUp()
      const commands = yield* commandsOf(billing.app, "billing")
      const refused = yield* Effect.flip(inTime(commands.purge(Number.MAX_SAFE_INTEGER)))
      assert.instanceOf(refused, Replay.ForeignDeadLetters)
      assert.deepInclude({ ...refused }, { topic: "orders.DLT", owners: { shipping: 1 } })
      assert.include(refused.message, "1 of group 'shipping'")
      assert.deepStrictEqual(yield* owners, ["orders.DLT/billing", "orders.DLT/shipping"])
    })
  )

  scenario(
    "C34 ruling 71 replay, window, tier, single records and discard take the group's own, and count the other's",
    () =>
      Effect.gen(function* () {
        const { memory, billing, shipping } = yield* bothGiveUp()
        const { replay, replayRecords, replayToTier, replayWindow, discard } = yield* commandsOf(billing.app, "billing")
        const log = yield* memory.log("orders.DLT", 0)
        const foreign = log.find((record) => headersOf(record).get("x-eventbus-copy-owner")?.endsWith("shipping"))!
        const theirs = [{ partition: 0, offset: foreign.offset }]
        const one = new Map([["shipping", 1]])
        assert.deepInclude(yield* inTime(replayRecords(theirs)), { replayed: 0, foreign: one })
        assert.strictEqual(yield* inTime(discard(theirs, "not needed")), 0)
        assert.deepInclude(yield* inTime(replayWindow(0, Number.MAX_SAFE_INTEGER)), { replayed: 1, foreign: one })
        yield* throughTheTiers
        assert.deepStrictEqual([billing.state.calls, shipping.state.calls], [60, 30])
        // The window took the first of them. The second is the one that the replayed record left.
        assert.deepInclude(yield* inTime(replayToTier(1, 9)), { replayed: 1, foreign: one })
        assert.deepInclude(yield* inTime(replay(9)), { replayed: 0, foreign: new Map() })
        yield* throughTheTiers
        assert.strictEqual(shipping.state.calls, 30)
        const others = yield* commandsOf(shipping.app, "shipping")
        assert.deepInclude(yield* inTime(others.replay(9)), { replayed: 1, foreign: new Map([["billing", 3]]) })
      })
  )

  scenario("C34 ruling 71 statistics and lists show the group's own, and the other's by owner", () =>
    Effect.gen(function* () {
      const { billing } = yield* bothGiveUp()
      const { list, stats } = yield* commandsOf(billing.app, "billing")
      const told = yield* inTime(stats)
      assert.deepInclude(told, { count: 1, stored: 1, foreign: new Map([["shipping", 1]]) })
      assert.deepStrictEqual(told.byExceptionClass, new Map([["Down", 1]]))
      const listed = yield* inTime(list({ partition: 0, count: 9 }))
      assert.deepStrictEqual(listed.map(({ letter, state }) => `${letter.owner}: ${state}`).sort(), [
        "billing: waiting",
        "shipping: foreign"
      ])
    })
  )

  scenario("C34 ruling 71 a custom handler gets the group's own dead letters, and the rest is reported", () =>
    Effect.gen(function* () {
      const seen: Array<string | undefined> = []
      const deadLetter = DeadLetter.custom(({ owner }) => Effect.sync(() => void seen.push(owner)))
      const { billing } = yield* bothGiveUp({ deadLetter })
      assert.deepStrictEqual(seen, ["billing"])
      assert.deepStrictEqual(
        billing.app.of("ForeignLettersPassedOver").map(({ topic, owner, records }) => ({ topic, owner, records })),
        [{ topic: "orders.DLT", owner: "shipping", records: 1 }]
      )
    })
  )

  scenario(
    "C34 ruling 71 a scheduled replay leaves the other group's dead letters, however young, and replays its own",
    () =>
      Effect.gen(function* () {
        const deadLetter = DeadLetter.scheduledReplay({ cooldown: "1 hour", maxReplays: 1 })
        const { memory, billing, shipping } = yield* bothGiveUp({ deadLetter })
        yield* memory.append("orders.DLT", 0, [
          { key: bytes("k"), value: bytes("theirs"), headers: [mark("shipping"), at(4_000_000_000_000)] },
          { key: bytes("k"), value: bytes("ours"), headers: [mark("billing"), at(0)] }
        ])
        billing.state.failures = 0
        yield* throughTheTiers
        assert.strictEqual(shipping.state.calls, 30)
        const sources = (yield* memory.log("orders", 0)).map(({ value }) => text(value))
        assert.deepStrictEqual(sources.sort(), ["o-1", "o-1", "ours"])
      })
  )

  scenario("C34 ruling 71 a renamed group takes over dead letters, and what its former name has dealt with", () =>
    Effect.gen(function* () {
      const { billing } = yield* bothGiveUp()
      yield* inTime((yield* commandsOf(billing.app, "billing")).replay(1))
      yield* throughTheTiers
      yield* billing.app.close
      yield* copyOffsets("billing", "invoicing")
      const renamed = yield* service("invoicing", 0, { adopts: ["billing"] })
      const { purge, replay, stats } = yield* commandsOf(renamed.app, "invoicing")
      // Two of billing: the first one was replayed by billing, the second one is what that replay left.
      assert.deepInclude(yield* inTime(stats), { count: 1, stored: 2, foreign: new Map([["shipping", 1]]) })
      assert.deepInclude(yield* inTime(replay(9)), { replayed: 1, foreign: new Map([["shipping", 1]]) })
      yield* advance("1 minute")
      assert.strictEqual(renamed.state.calls, 1)
      assert.deepStrictEqual((yield* Effect.flip(inTime(purge(Number.MAX_SAFE_INTEGER))))._tag, "ForeignDeadLetters")
    })
  )
})

describe("C34 the other group is named before a record is lost in its copies", () => {
  scenario("C34 ruling 71 a start warns of the group whose copies lie in the topics, once in the log", () =>
    Effect.gen(function* () {
      yield* bothGiveUp()
      const lines: Array<string> = []
      const capture = Logger.make(({ message }) => void lines.push(String(message)))
      const next = yield* service("billing", 0).pipe(Effect.provide(Logger.layer([capture])))
      yield* advance("1 second")
      const shared = next.app.of("TopicsShared")[0]?.shared ?? []
      assert.deepInclude([...shared], { topic: "orders.DLT", groups: ["shipping"] })
      assert.deepInclude([...shared], { topic: "orders.retry-1", groups: ["shipping"] })
      const warnings = lines.filter((line) => line.includes("Other groups use the same topics"))
      assert.lengthOf(warnings, 1)
      assert.include(warnings[0]!, "'orders.DLT' (group 'shipping')")
      assert.include(warnings[0]!, "TopicName.perGroup")
      const audit = yield* service("audit", 0, { adopts: ["billing", "shipping"] })
      yield* advance("1 second")
      assert.lengthOf(audit.app.of("TopicsShared"), 0)
    })
  )

  scenario("C34 ruling 71 plan --check names the group and perGroup", () =>
    Effect.gen(function* () {
      const { memory } = yield* bothGiveUp()
      const planned = Binding.make("billing", {
        ...{ topic: "orders", groupId: "billing", value: Serde.string },
        handler: () => Effect.void
      })
      const find = Effect.provideService(Plan.check(Plan.make(planned)), Broker.Broker, memory.broker)
      const shared = (yield* inTime(find)).filter(({ code }) => code === "shared-topic")
      assert.include(
        shared.map(({ subject }) => subject),
        "orders.DLT"
      )
      for (const { message, severity } of shared) {
        assert.strictEqual(severity, "warning")
        assert.include(message, "group 'shipping'")
        assert.include(message, "perGroup")
      }
    })
  )

  scenario("C34 ruling 71 the look ends after a second, whatever the cluster does", () =>
    Effect.gen(function* () {
      const { memory } = yield* bothGiveUp()
      const slow: Broker.Broker["Service"] = {
        ...memory.broker,
        admin: Effect.map(memory.broker.admin, (admin) => ({ ...admin, tail: () => Effect.never }))
      }
      const planned = Binding.make("billing", {
        ...{ topic: "orders", groupId: "billing", value: Serde.string },
        handler: () => Effect.void
      })
      const find = Effect.provideService(Plan.check(Plan.make(planned)), Broker.Broker, slow)
      const began = yield* now
      yield* inTime(find, "100 millis")
      assert.isAtMost((yield* now) - began, 1_100)
    })
  )
})

describe("C34 former names of a group", () => {
  scenario("C34 ruling 71 a trail shows the copies of its group, and of the names that it adopts", () =>
    Effect.gen(function* () {
      yield* bothGiveUp()
      const first = { partition: 0, offset: 0n }
      const hopsOf = (groupId: string, adopts: ReadonlyArray<string> = []) =>
        inTime(Trail.trail({ topic: "orders", groupId, adopts }, first))
      const billing = yield* hopsOf("billing")
      assert.deepStrictEqual([billing.length, billing.at(-1)?.kind], [11, "dead-letter"])
      assert.lengthOf(yield* hopsOf("invoicing", ["billing"]), billing.length)
      assert.lengthOf(yield* hopsOf("invoicing", ["billing", "shipping"]), 2 * billing.length - 1)
      assert.lengthOf(yield* hopsOf("invoicing"), 1)
    })
  )

  scenario("C34 ruling 71 a name that is empty or the group's own is refused", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      const refused = yield* Effect.flip(service("billing", 0, { adopts: ["", "billing"] }))
      assert.instanceOf(refused, EventBusError.ConfigurationValidation)
      assert.deepStrictEqual(
        refused.issues.map(({ path }) => path),
        ["adopts[0]", "adopts[1]"]
      )
    })
  )

  scenario("C34 ruling 71 a configuration file names them", () =>
    Effect.gen(function* () {
      const file =
        "eventbus: { bindings: { orders: { topic: orders, group-id: invoicing, adopts: [billing, old-billing] } } }"
      const configuration = yield* Configuration.parse(file)
      const [binding] = Configuration.withoutHandlers(configuration)
      assert.deepStrictEqual(binding?.definition.adopts, ["billing", "old-billing"])
    }).pipe(Effect.orDie)
  )
})

const copyOffsets = Effect.fnUntraced(function* (from: string, to: string) {
  const { broker } = yield* MemoryBroker.MemoryBroker
  const admin = yield* broker.admin
  const topics = (yield* admin.listTopics).filter((topic) => topic === "orders" || topic.startsWith("orders.retry"))
  yield* admin.setCommittedOffsets(to, yield* admin.committedOffsets(from, topics))
})

const mark = (groupId: string) => ({ key: "x-eventbus-copy-owner", value: bytes(`orders.DLT/${groupId}`) })
const at = (millis: number) => ({ key: "x-eventbus-dlt-timestamp", value: bytes(String(millis)) })
