/** `eventbus.dlt.depth` after any sequence of what records and operators do, compared with the broker's log (ruling 75). */
import { assert, describe, it } from "@effect/vitest"
import { Binding, DeadLetter, RetryPolicy, Route } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect, Exit, Metric } from "effect"
import * as fc from "fast-check"
import {
  type App,
  advance,
  append,
  bytes,
  headersOf,
  inTime,
  now,
  orders,
  runScenario,
  start,
  text
} from "../scenarios/bus.ts"

class Down extends Data.TaggedError("Down") {}

const partitions = [0, 1]

type Step =
  | { readonly _tag: "write"; readonly partition: number; readonly records: number }
  | { readonly _tag: "replay"; readonly count: number; readonly isDown: boolean; readonly ignoreMaxReplays: boolean }
  | { readonly _tag: "replayToTier"; readonly count: number; readonly isDown: boolean }
  | { readonly _tag: "replayWindow"; readonly fromMinute: number; readonly minutes: number }
  | { readonly _tag: "discard"; readonly partition: number; readonly offset: number }
  | { readonly _tag: "purge"; readonly minute: number }
  | { readonly _tag: "foreign"; readonly partition: number }
  | { readonly _tag: "restart" }

const small = fc.integer({ min: 0, max: 6 })
const partition = fc.constantFrom(...partitions)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ _tag: fc.constant("write" as const), partition, records: small }) },
  {
    weight: 3,
    arbitrary: fc.record({
      _tag: fc.constant("replay" as const),
      count: small,
      isDown: fc.boolean(),
      ignoreMaxReplays: fc.boolean()
    })
  },
  fc.record({ _tag: fc.constant("replayToTier" as const), count: small, isDown: fc.boolean() }),
  fc.record({ _tag: fc.constant("replayWindow" as const), fromMinute: small, minutes: small }),
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("discard" as const), partition, offset: small }) },
  fc.record({ _tag: fc.constant("purge" as const), minute: small }),
  fc.record({ _tag: fc.constant("foreign" as const), partition }),
  fc.record({ _tag: fc.constant("restart" as const) })
)

/** Every record of a topic that is there. */
const logOf = Effect.fnUntraced(function* (topic: string) {
  const memory = yield* MemoryBroker.MemoryBroker
  const logs = yield* Effect.forEach(partitions, (at) => Effect.exit(memory.log(topic, at)))
  return logs.flatMap((log) => (Exit.isSuccess(log) ? log.value : []))
})

/** A dead letter, or a copy of it that was replayed, by value and number of the replay. */
const nameOf = (
  record: Parameters<typeof headersOf>[0] & { readonly value: Uint8Array | null },
  replay: number
): string => `${text(record.value)} ${replay}`

const replaysOf = (record: Parameters<typeof headersOf>[0]): number =>
  Number(headersOf(record).get("x-eventbus-replay-count") ?? 0)

/** The logs tell which of the group's own dead letters are there, were not replayed, and were not discarded, whether a replay has left them because of `maxReplays` or not. */
const waiting = Effect.fnUntraced(function* (discarded: ReadonlySet<string>) {
  const copies = [...(yield* logOf("orders")), ...(yield* logOf("orders.retry-1"))]
  const replayed = new Set(copies.map((copy) => nameOf(copy, replaysOf(copy))))
  const letters = yield* logOf("orders.DLT")
  return letters
    .filter((letter) => !text(letter.value)!.startsWith("foreign"))
    .filter((letter) => !discarded.has(`${letter.partition}@${letter.offset}`))
    .filter((letter) => !replayed.has(nameOf(letter, replaysOf(letter) + 1)))
    .map((letter) => `${nameOf(letter, replaysOf(letter))} at ${letter.partition}@${letter.offset}`)
})

/** The gauge as somebody sees it who reads it regularly. */
const depth = Effect.gen(function* () {
  const read = Effect.map(Metric.snapshot, (all) =>
    all.flatMap((series) =>
      series.id === "eventbus.dlt.depth" && series.type === "Gauge"
        ? [{ value: Number(series.state.value), labels: { ...series.attributes } }]
        : []
    )
  )
  yield* read
  yield* advance("15 seconds")
  yield* advance("10 seconds")
  return yield* read
})

const sequence = (steps: ReadonlyArray<Step>) =>
  Effect.gen(function* () {
    const memory = yield* MemoryBroker.MemoryBroker
    for (const topic of ["orders", "orders.retry-1", "orders.DLT"]) yield* memory.createTopic(topic, { partitions: 2 })
    let isDown = true
    let written = 0
    const discarded = new Set<string>()
    const binding = Binding.make("orders", {
      ...orders,
      retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 second"] }),
      onError: { Down: Route.deadLetter() },
      // So that most sequences come to it.
      deadLetter: DeadLetter.withSettings(DeadLetter.storeOnly, { maxReplays: 1 }),
      handler: () => Effect.suspend(() => (isDown ? Effect.fail(new Down()) : Effect.void))
    })
    let app: App = yield* start(binding)
    const takes = Effect.fnUntraced(function* (each: Step) {
      const letters = yield* app.connector.deadLetters("orders")
      switch (each._tag) {
        case "write":
          for (let record = 0; record < each.records; record++)
            yield* append("orders", each.partition, [`v${written++}`])
          return
        case "replay":
          isDown = each.isDown
          return yield* inTime(letters.replay(each.count, { ignoreMaxReplays: each.ignoreMaxReplays }))
        case "replayToTier":
          isDown = each.isDown
          return yield* inTime(letters.replayToTier(1, each.count))
        case "replayWindow": {
          isDown = false
          const from = each.fromMinute * 60_000
          return yield* inTime(letters.replayWindow(from, from + each.minutes * 60_000))
        }
        case "discard": {
          const at = { partition: each.partition, offset: BigInt(each.offset) }
          if ((yield* inTime(letters.discard([at], "test data"))) > 0) discarded.add(`${at.partition}@${at.offset}`)
          return
        }
        case "purge": {
          // Only what is older than the present may go.
          const before = Math.min(each.minute * 60_000, yield* now)
          return yield* inTime(Effect.ignore(letters.purge(before)))
        }
        case "foreign": {
          const owner = { key: "x-eventbus-copy-owner", value: bytes("orders.DLT/audit") }
          const foreign = { key: bytes("k"), value: bytes(`foreign ${written++}`), headers: [owner] }
          return yield* memory.append("orders.DLT", each.partition, [foreign])
        }
        case "restart":
          yield* inTime(app.close)
          app = yield* start(binding)
      }
    })
    for (const each of steps) {
      yield* takes(each)
      yield* advance("20 seconds")
      isDown = true
      const left = yield* waiting(discarded)
      assert.deepStrictEqual(
        yield* depth,
        [{ value: left.length, labels: { cluster: "default", binding: "orders" } }],
        `after ${JSON.stringify(each)}: ${left.join(", ")}`
      )
    }
  }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))

describe("OBS-10 the depth of the dead letter topic", () => {
  it("OBS-10 ruling 75 is what the log says, exactly, after any sequence of failures, replays, discards, purges and restarts", () =>
    fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 10 }), (steps) => runScenario(sequence(steps))),
      { numRuns: 40 }
    ))
})
