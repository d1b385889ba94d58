/** Dead letters and journal entries of strangers: who may write to these topics chooses what a record says, and neither where a replay writes nor what it knows. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, BrokerError, DeadLetter, type Replay, RetryPolicy } from "@eventbus/core"
import { FaultPlan, MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { advance, bytes, inTime, orders, scenario, start, text, valuesOf } from "../bus.ts"

const header = (key: string, value: string) => ({ key: `x-eventbus-${key}`, value: bytes(value) })

/** A dead letter that says it comes from a topic. */
const letter = (value: string, topic = "orders", timestamp?: number) => ({
  ...{ key: bytes(`taken/0/1/${orders.groupId}`), value: bytes(value) },
  ...(timestamp === undefined ? {} : { timestamp }),
  headers: [header("original-topic", topic), header("original-partition", "0"), header("original-offset", "7")]
})

const tiers = RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 second"] })
const plain = { ...orders, retry: tiers, autoStartup: false, handler: () => Effect.void }
const other = Binding.make("payments", { ...plain, topic: "payments", groupId: "others" })

const forbidden = [
  ...["orders.DLT.replays", "payments", "payments.DLT", "payments.DLT.replays", "payments.retry-1"],
  ...["__consumer_offsets", "__transaction_state", "gone"]
]

type Command = (letters: Replay.DeadLetters) => Effect.Effect<Replay.Report, { readonly _tag: string }>

const commands: Readonly<Record<string, Command>> = {
  replay: ({ replay }) => replay(Number.POSITIVE_INFINITY),
  replayWindow: ({ replayWindow }) => replayWindow(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY),
  replayRecords: ({ replayRecords }) =>
    replayRecords(Array.from({ length: 20 }, (_, offset) => ({ partition: 0, offset: BigInt(offset) })))
}

const strategies: Readonly<Record<string, DeadLetter.DeadLetter>> = {
  STORE_ONLY: DeadLetter.storeOnly,
  CUSTOM: DeadLetter.custom(() => Effect.void)
}

/** All topics exist, and the dead letter topic has these records. */
const withLetters = Effect.fnUntraced(function* (letters: ReadonlyArray<ReturnType<typeof letter>>) {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", "orders.DLT", ...forbidden]) if (topic !== "gone") yield* memory.createTopic(topic)
  yield* memory.append("orders.DLT", 0, letters)
  return memory
})

const valuesOfForbidden = Effect.map(
  Effect.forEach(
    forbidden.filter((topic) => topic !== "gone" && topic !== "orders.DLT.replays"),
    (topic) => valuesOf(topic)
  ),
  (values) => values.flat()
)

const journalOf = (memory: MemoryBroker.MemoryBroker["Service"]) =>
  Effect.map(memory.log("orders.DLT.replays", 0), (entries) => entries.map(({ value }) => text(value)))

const lettersOf = ({ connector }: { readonly connector: { readonly deadLetters: (name: string) => unknown } }) =>
  connector.deadLetters("orders") as Effect.Effect<Replay.DeadLetters>

describe("DLT-23 ruling 70 a dead letter that names a topic which the binding does not", () => {
  for (const [strategy, deadLetter] of Object.entries(strategies)) {
    for (const [command, act] of Object.entries(commands)) {
      scenario(`DLT-23 ruling 70 ${command} under ${strategy} refuses it, says why, and takes the one behind it`, () =>
        Effect.gen(function* () {
          const memory = yield* withLetters([...forbidden.map((topic) => letter("forged", topic)), letter("good")])
          const app = yield* start(Binding.make("orders", { ...plain, deadLetter }), other)
          const { refusals, ...report } = yield* inTime(act(yield* lettersOf(app)))
          assert.deepInclude(report, { replayed: 1, refused: forbidden.length })
          const reasons = forbidden.map(
            (topic) => `Topic '${topic}' is neither the main topic of the binding nor one of its origins.`
          )
          assert.deepStrictEqual(
            Array.from(refusals ?? []),
            reasons.map((reason) => [reason, 1])
          )
          assert.deepStrictEqual([yield* valuesOf("orders"), yield* valuesOfForbidden], [["good"], []])
          assert.notInclude(yield* journalOf(memory), "forged")
          assert.strictEqual((yield* inTime((yield* lettersOf(app)).stats)).count, forbidden.length)
        })
      )
    }
  }

  scenario("DLT-25 ruling 70 a replay to a tier goes to the tier all the same, and discarding gives it up", () =>
    Effect.gen(function* () {
      const memory = yield* withLetters([letter("forged", "payments"), letter("given up", "__consumer_offsets")])
      yield* memory.createTopic("orders.retry-1")
      const letters = yield* lettersOf(yield* start(Binding.make("orders", plain)))
      assert.strictEqual(yield* inTime(letters.discard([{ partition: 0, offset: 1n }], "a stranger's")), 1)
      assert.deepInclude(yield* inTime(letters.replayToTier(1, 10)), { replayed: 1, refused: 0 })
      assert.deepStrictEqual(yield* valuesOf("orders.retry-1"), ["forged"])
      assert.strictEqual((yield* inTime(letters.stats)).count, 0)
    })
  )

  scenario("DLT-21 ruling 70 a scheduled replay takes the one behind it, and health stays UP", () =>
    Effect.gen(function* () {
      yield* withLetters([letter("forged", "__consumer_offsets"), letter("good")])
      const deadLetter = DeadLetter.scheduledReplay({ cooldown: "1 minute" })
      const { connector } = yield* start(Binding.make("orders", { ...plain, deadLetter, autoStartup: true }))
      yield* advance("10 minutes")
      assert.deepStrictEqual(yield* valuesOf("orders"), ["good"])
      assert.strictEqual((yield* connector.health).status, "UP")
    })
  )

  scenario(
    "DLT-23 an origin of the settings that may not be written to: its letters are refused, the others go on",
    () =>
      Effect.gen(function* () {
        const memory = yield* withLetters([letter("a", "payments"), letter("good"), letter("b", "payments")])
        const error = new BrokerError.AuthorizationFailed({ resource: "topic", name: "payments", operation: "write" })
        const refuse = { _tag: "Refuse", error } as const
        yield* memory.addFault(FaultPlan.chance(1, { operation: "produce", topic: "payments" }, refuse))
        const strategy = DeadLetter.scheduledReplay({ cooldown: "1 minute" })
        const deadLetter = DeadLetter.withSettings(strategy, { origins: ["payments"] })
        const app = yield* start(Binding.make("orders", { ...plain, deadLetter, autoStartup: true }))
        yield* advance("10 minutes")
        assert.deepStrictEqual(yield* valuesOf("orders"), ["good"])
        assert.strictEqual((yield* app.connector.health).status, "UP")
        const { refusals, ...report } = yield* inTime((yield* lettersOf(app)).replay(10))
        assert.deepInclude(report, { replayed: 0, refused: 2 })
        assert.deepStrictEqual(Array.from(refusals ?? []), [[error.message, 2]])
      })
  )

  it("CFG ruling 70 origins that no replay may write to are refused in code", () => {
    const refused = ["__consumer_offsets", "orders.DLT.replays", "a/b", "", 42, null]
    for (const origin of refused) {
      const settings = { origins: ["fine", origin as string] }
      assert.throws(() => DeadLetter.withSettings(DeadLetter.storeOnly, settings), "origins[1]")
    }
    assert.throws(() => DeadLetter.withSettings(DeadLetter.storeOnly, { origins: "orders" as never }), "origins")
    const own = DeadLetter.withSettings(DeadLetter.storeOnly, { origins: ["orders.retry-1", "payments.DLT"] })
    const problems = Binding.problems([Binding.make("orders", { ...plain, deadLetter: own }), other])
    const paths = Array.from(problems.values())
      .flat()
      .map(({ found }) => found)
    assert.deepStrictEqual(paths.sort(), ["'orders.retry-1'", "'payments.DLT'"])
  })
})

describe("DLT-23 ruling 70 journal entries that no replay can have written", () => {
  scenario("DLT-23 outside of a transaction they count for nothing; a handler's notes are written so, and count", () =>
    Effect.gen(function* () {
      const memory = yield* withLetters(["a", "b", "c", "d"].map((value) => letter(value, "orders", 1_000)))
      const at = (kind: string, offset: number) => `${kind}/0/${offset}/${orders.groupId}`
      const entries = [
        [at("taken", 0), "1000"],
        [at("exhausted", 1), "1000 3"],
        [at("adopted", 2), "1000"],
        [at("failed", 3), "1000"],
        [`position/0/${orders.groupId}`, "3 2 1000"]
      ]
      yield* memory.append(
        "orders.DLT.replays",
        0,
        entries.map(([key, value]) => ({ key: bytes(key!), value: bytes(value!) }))
      )
      const letters = yield* lettersOf(yield* start(Binding.make("orders", plain)))
      const states = Effect.map(inTime(letters.list({ partition: 0, count: 9 })), (all) =>
        all.map(({ state }) => state)
      )
      assert.deepStrictEqual(yield* states, ["waiting", "waiting", "waiting", "failed"])
      assert.strictEqual((yield* inTime(letters.replay(10))).replayed, 4)
      assert.deepStrictEqual(yield* states, ["dealt-with", "dealt-with", "dealt-with", "dealt-with"])
      assert.strictEqual((yield* inTime(letters.replay(10))).replayed, 0)
    })
  )
})

/** In nanoseconds, the last one of 64 bits, and the first one. */
const times = [1_700_000_000_000_000_000, 2 ** 63, -(2 ** 63)]

describe("DLT-24 DLT-30 dead letters whose time is none of a calendar", () => {
  for (const [command, act] of Object.entries(commands)) {
    scenario(`DLT-24 ${command} takes each once, whatever its time is`, () =>
      Effect.gen(function* () {
        yield* withLetters(times.map((time) => letter(String(time), "orders", time)).slice(0, 2))
        const letters = yield* lettersOf(yield* start(Binding.make("orders", plain)))
        assert.strictEqual((yield* inTime(letters.stats)).count, 2)
        assert.strictEqual((yield* inTime(act(letters))).replayed, 2)
        assert.strictEqual((yield* inTime(act(letters))).replayed, 0)
        assert.strictEqual((yield* inTime(letters.stats)).count, 0)
      })
    )
  }

  scenario("DLT-26 ruling 75 notes about them are kept: refused, exhausted and failed ones, and the position", () =>
    Effect.gen(function* () {
      const memory = yield* withLetters([])
      yield* memory.append(
        "orders.DLT",
        0,
        times.flatMap((time) => {
          const mark = header("copy-owner", `orders.DLT/${orders.groupId}`)
          const exhausted = letter("exhausted", "orders", time)
          const headers = [...exhausted.headers, mark, header("replay-count", "3")]
          return [letter("refused", "gone", time), { ...exhausted, headers }, letter("taken", "orders", time)]
        })
      )
      const handler = DeadLetter.custom(() => Effect.fail("no"))
      const bound = (deadLetter: DeadLetter.DeadLetter, autoStartup = false) =>
        start(Binding.make("orders", { ...plain, deadLetter, autoStartup }))
      const app = yield* bound(DeadLetter.storeOnly)
      const letters = yield* lettersOf(app)
      assert.deepInclude(yield* inTime(letters.replay(100)), { replayed: 3, refused: 3, passedOver: 3 })
      assert.deepInclude(yield* inTime(letters.stats), { count: 6, exhausted: 3 })
      assert.strictEqual((yield* inTime(letters.replay(100))).replayed, 0)
      yield* Effect.scoped(
        Effect.flatMap(memory.broker.admin, (admin) => admin.deleteGroups([`${orders.groupId}.dlt`]))
      )
      assert.strictEqual((yield* inTime(letters.replay(100))).replayed, 0)
      assert.deepInclude(yield* inTime(letters.stats), { count: 6, exhausted: 3 })
      yield* app.close
      const failing = yield* bound(handler, true)
      yield* memory.append(
        "orders.DLT",
        0,
        times.map((time) => letter("fails", "orders", time))
      )
      yield* advance("1 minute")
      assert.strictEqual((yield* inTime((yield* lettersOf(failing)).stats)).failed, 12)
    })
  )
})
