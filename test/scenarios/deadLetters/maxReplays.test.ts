/** `maxReplays` holds for every strategy and every replay; the records that reached it stay, and every figure shows them. */
import { assert, describe } from "@effect/vitest"
import { Configuration, Handler, Handlers } from "@eventbus/config"
import { Binding, DeadLetter, type Replay, RetryPolicy, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Metric } from "effect"
import {
  type App,
  advance,
  append,
  deadLetterDepth,
  headersOf,
  inTime,
  orders,
  scenario,
  start,
  text,
  valuesOf
} from "../bus.ts"

/** Each record fails at once, and again after each replay. */
const failing = {
  ...orders,
  retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 second"] }),
  handler: () => Effect.die("no")
}

const strategies: Readonly<Record<string, DeadLetter.DeadLetter>> = {
  STORE_ONLY: DeadLetter.storeOnly,
  ALERT_AND_STORE: DeadLetter.alertAndStore(() => Effect.void),
  // Nothing becomes due.
  SCHEDULED_REPLAY: DeadLetter.scheduledReplay({ cooldown: "30 days" }),
  CUSTOM: DeadLetter.custom(() => Effect.fail("no"))
}

type Command = (
  letters: Replay.DeadLetters,
  options?: Replay.ReplayOptions
) => Effect.Effect<Replay.Report, { readonly _tag: string }>

/** All dead letters of partition 0, in each way that replays. */
const commands: Readonly<Record<string, Command>> = {
  replay: ({ replay }, options) => replay(100, options),
  replayWindow: ({ replayWindow }, options) => replayWindow(0, Number.POSITIVE_INFINITY, options),
  replayToTier: ({ replayToTier }, options) => replayToTier(1, 100, options),
  replayRecords: ({ list, replayRecords }, options) =>
    Effect.flatMap(list({ partition: 0, count: 100 }), (all) =>
      replayRecords(
        all.map(({ letter }) => letter.record),
        options
      )
    )
}

const withTopics = Effect.fnUntraced(function* (values: ReadonlyArray<string>) {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", "orders.retry-1", "orders.DLT"]) yield* memory.createTopic(topic)
  yield* append("orders", 0, values)
  return memory
})

const running = Effect.fnUntraced(function* (deadLetter: DeadLetter.DeadLetter) {
  const app = yield* start(Binding.make("orders", { ...failing, deadLetter }))
  yield* advance("1 minute")
  return app
})

const lettersOf = ({ connector }: App) => connector.deadLetters("orders")

/** `count` and `exhausted` of the statistics, then each listed letter by its replays and its state. */
const figures = Effect.fnUntraced(function* (app: App) {
  const { list, stats } = yield* lettersOf(app)
  const { count, exhausted } = yield* inTime(stats)
  const listed = yield* inTime(list({ partition: 0, count: 100 }))
  return [count, exhausted, ...listed.map(({ letter, state }) => `${letter.replayCount} ${state}`)]
})

const measured = <A, E, R>(body: Effect.Effect<A, E, R>) =>
  Effect.provideService(body, Metric.MetricRegistry, new Map())

describe("maxReplays", () => {
  for (const [strategy, deadLetter] of Object.entries(strategies)) {
    for (const [command, replayAll] of Object.entries(commands)) {
      scenario(
        `DLT-26 ruling 30 OBS-10 ${strategy}: ${command} takes a record once of maxReplays 1, and says what it leaves`,
        () =>
          measured(
            Effect.gen(function* () {
              yield* withTopics(["a"])
              const app = yield* running(DeadLetter.withSettings(deadLetter, { maxReplays: 1 }))
              const letters = yield* lettersOf(app)
              const replayed = Effect.fnUntraced(function* (options?: Replay.ReplayOptions) {
                const report = yield* inTime(replayAll(letters, options))
                yield* advance("1 minute")
                return [report.replayed, report.passedOver]
              })
              assert.deepStrictEqual(yield* replayed(), [1, 0])
              // The second dead letter is the same record after its replay: it stays, and each further command says so.
              for (let round = 0; round < 3; round++) assert.deepStrictEqual(yield* replayed(), [0, 1])
              assert.lengthOf(yield* valuesOf("orders.DLT"), 2)
              const [count, ...others] = yield* figures(app)
              const left = strategy === "CUSTOM" ? "failed" : "exhausted"
              assert.deepStrictEqual([count, ...others.slice(1)], [1, "0 dealt-with", `1 ${left}`])
              assert.deepStrictEqual(yield* deadLetterDepth, [1])
              // Somebody who insists gets one more replay.
              assert.deepStrictEqual(yield* replayed({ ignoreMaxReplays: false }), [0, 1])
              assert.deepStrictEqual(yield* replayed({ ignoreMaxReplays: true }), [1, 0])
              assert.deepStrictEqual((yield* figures(app)).slice(2), ["0 dealt-with", "1 dealt-with", `2 ${left}`])
              assert.deepStrictEqual(yield* deadLetterDepth, [1])
            })
          )
      )
    }
  }

  scenario(
    "DLT-26 ruling 75 the position leaves the records behind, and they count on: after a restart, without offsets, until somebody decides",
    () =>
      measured(
        Effect.gen(function* () {
          const memory = yield* withTopics(["a", "b", "c"])
          const limit = DeadLetter.withSettings(DeadLetter.storeOnly, { maxReplays: 0 })
          const first = yield* running(limit)
          assert.deepInclude(yield* inTime((yield* lettersOf(first)).replay(100)), { replayed: 0, passedOver: 3 })
          assert.strictEqual(yield* memory.committed("billing.dlt", "orders.DLT", 0), 3n)
          const all = [3, 3, "0 exhausted", "0 exhausted", "0 exhausted"]
          assert.deepStrictEqual(yield* figures(first), all)
          yield* first.close
          yield* Effect.scoped(Effect.flatMap(memory.broker.admin, (admin) => admin.deleteGroups(["billing.dlt"])))
          const app = yield* running(limit)
          assert.deepStrictEqual(yield* figures(app), all)
          assert.deepStrictEqual(yield* deadLetterDepth, [3])
          const { discard, purge, replay, replayRecords } = yield* lettersOf(app)
          assert.strictEqual(yield* inTime(discard([{ partition: 0, offset: 0n }], "a test order")), 1)
          assert.deepStrictEqual(yield* figures(app), [2, 2, "0 dealt-with", "0 exhausted", "0 exhausted"])
          assert.deepStrictEqual(yield* deadLetterDepth, [2])
          const second = [{ partition: 0, offset: 1n }]
          assert.deepInclude(yield* inTime(replayRecords(second)), { replayed: 0, passedOver: 1 })
          yield* app.connector.pause("orders")
          assert.deepInclude(yield* inTime(replayRecords(second, { ignoreMaxReplays: true })), {
            replayed: 1,
            passedOver: 0
          })
          assert.deepStrictEqual(yield* figures(app), [1, 1, "0 dealt-with", "0 dealt-with", "0 exhausted"])
          // A replay in order forgets which records were taken out of turn, and these stay dealt with.
          assert.deepInclude(yield* inTime(replay(100)), { replayed: 0, passedOver: 1 })
          assert.deepStrictEqual((yield* figures(app)).slice(2), ["0 dealt-with", "0 dealt-with", "0 exhausted"])
          // A purge counts what it deletes, whatever was done about it.
          assert.strictEqual(yield* inTime(purge(Number.POSITIVE_INFINITY)), 3)
          assert.deepStrictEqual(yield* figures(app), [0, 0])
          assert.deepStrictEqual(yield* deadLetterDepth, [0])
          // The journal forgets what is gone from the topic.
          yield* memory.append("orders.DLT", 0, [{ key: null, value: null }])
          yield* inTime(replay(100))
          const entries = yield* memory.log("orders.DLT.replays", 0)
          const newest = new Map(entries.map(({ key, value }) => [text(key), text(value)]))
          assert.deepStrictEqual(
            [...newest].filter(([key, value]) => key!.startsWith("exhausted/") && value !== null).map(([key]) => key),
            ["exhausted/0/3/billing"]
          )
        })
      )
  )

  scenario("DLT-26 a later replay in order takes only the new ones, and none of the old ones twice", () =>
    Effect.gen(function* () {
      const memory = yield* withTopics(["a"])
      const app = yield* running(DeadLetter.withSettings(DeadLetter.storeOnly, { maxReplays: 1 }))
      const { replay } = yield* lettersOf(app)
      yield* inTime(replay(100))
      yield* advance("1 minute")
      yield* append("orders", 0, ["b"])
      yield* advance("1 minute")
      assert.deepInclude(yield* inTime(replay(100)), { replayed: 1, passedOver: 1 })
      yield* advance("1 minute")
      yield* app.connector.pause("orders")
      assert.deepInclude(yield* inTime(replay(1, { ignoreMaxReplays: true })), { replayed: 1, passedOver: 0 })
      assert.deepStrictEqual(yield* valuesOf("orders"), ["a", "a", "b", "b", "a"])
      const last = (yield* memory.log("orders", 0)).at(-1)
      assert.strictEqual(headersOf(last).get("x-eventbus-replay-count"), "2")
      assert.deepInclude(yield* inTime(replay(100)), { replayed: 0, passedOver: 1 })
      assert.deepStrictEqual(yield* figures(app), [1, 1, "0 dealt-with", "1 dealt-with", "0 dealt-with", "1 exhausted"])
    })
  )

  scenario("DLT-19 DLT-26 a scheduled replay says once what it leaves; with a higher maxReplays it takes them", () =>
    Effect.gen(function* () {
      yield* withTopics(["a", "b"])
      const scheduled = (maxReplays: number) => DeadLetter.scheduledReplay({ cooldown: "1 minute", maxReplays })
      const first = yield* running(scheduled(0))
      yield* Effect.repeat(advance("1 minute"), { times: 10 })
      assert.deepStrictEqual(
        first.of("ScheduledReplay").map(({ report }) => [report.replayed, report.passedOver]),
        [[0, 2]]
      )
      assert.deepStrictEqual(yield* figures(first), [2, 2, "0 exhausted", "0 exhausted"])
      yield* first.close
      const app = yield* running(scheduled(1))
      yield* Effect.repeat(advance("1 minute"), { times: 10 })
      assert.deepStrictEqual(
        app.of("ScheduledReplay").map(({ report }) => [report.replayed, report.passedOver]),
        [
          [2, 0],
          [0, 2]
        ]
      )
      assert.deepStrictEqual(yield* figures(app), [2, 2, "0 dealt-with", "0 dealt-with", "1 exhausted", "1 exhausted"])
    })
  )

  scenario("DLT-26 ruling 71 what the former name of a group left because of maxReplays is not dealt with", () =>
    Effect.gen(function* () {
      yield* withTopics(["a"])
      const limit = DeadLetter.withSettings(DeadLetter.storeOnly, { maxReplays: 0 })
      const former = yield* running(limit)
      yield* inTime((yield* lettersOf(former)).replay(100))
      yield* former.close
      const app = yield* start(
        Binding.make("orders", {
          ...failing,
          groupId: "invoicing",
          adopts: ["billing"],
          autoStartup: false,
          deadLetter: limit
        })
      )
      assert.deepStrictEqual(yield* figures(app), [1, 1, "0 exhausted"])
      assert.deepInclude(yield* inTime((yield* lettersOf(app)).replay(100)), { replayed: 0, passedOver: 1 })
      assert.deepStrictEqual(yield* figures(app), [1, 1, "0 exhausted"])
    })
  )

  for (const strategy of Object.keys(strategies)) {
    scenario(`DLT-21 DLT-26 CFG-05 ${strategy} in a file: dlt.replay.maxReplays holds for replays by command`, () =>
      Effect.gen(function* () {
        yield* withTopics(["a"])
        const configuration = yield* Effect.orDie(
          Configuration.parse(`
            eventbus: { bindings: { orders: { topic: orders, group-id: billing, retry: { tiers: [] },
              dlt: { strategy: ${strategy}, replay: { max-replays: 1 } } } } }`)
        )
        const handler = Handler.make({
          ...{ value: Serde.string, handler: () => Effect.die("no") },
          ...(strategy === "CUSTOM" || strategy === "ALERT_AND_STORE" ? { onDeadLetter: () => Effect.fail("no") } : {})
        })
        const bindings = yield* Effect.orDie(Configuration.bindings(configuration, Handlers.make({ orders: handler })))
        const app = yield* start(...bindings)
        yield* advance("1 minute")
        const { replay } = yield* lettersOf(app)
        const reports: Array<readonly [number, number]> = []
        for (let round = 0; round < 2; round++) {
          const { replayed, passedOver } = yield* inTime(replay(100))
          reports.push([replayed, passedOver])
          yield* advance("1 minute")
        }
        assert.deepStrictEqual(reports, [
          [1, 0],
          [0, 1]
        ])
      })
    )
  }
})
