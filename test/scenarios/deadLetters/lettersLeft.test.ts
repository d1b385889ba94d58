/** Dead letters that a replay passes without replaying them wait as before, and every command and figure says so. */
import { assert, describe } from "@effect/vitest"
import { Binding, type Broker, DeadLetter, RetryPolicy } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Deferred, Effect, Fiber } from "effect"
import { advance, bytes, inTime, orders, scenario, settle, start, text, valuesOf } from "../bus.ts"

const header = (key: string, value: string) => ({ key: `x-eventbus-${key}`, value: bytes(value) })

/** A dead letter of a record of a topic, made by a group. */
const letter = (value: string, { topic = "orders", owner = "orders" } = {}) => ({
  ...{ key: bytes(value), value: bytes(value) },
  headers: [
    header("original-topic", topic),
    header("original-partition", "0"),
    header("original-offset", "7"),
    header("dlt-timestamp", "1000"),
    header("copy-owner", `orders.DLT/${owner}`)
  ]
})

/** Its dead letters come from another topic, too. */
const deadLetter = DeadLetter.withSettings(DeadLetter.storeOnly, { origins: ["gone"] })

const plain = { ...orders, groupId: "orders", autoStartup: false, handler: () => Effect.void, deadLetter }

const app = (settings: object = {}) =>
  Effect.flatMap(start(Binding.make("orders", { ...plain, ...settings })), ({ connector }) =>
    connector.deadLetters("orders")
  )

const withTopics = Effect.fnUntraced(function* (letters: ReadonlyArray<ReturnType<typeof letter>>) {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", "orders.DLT"]) yield* memory.createTopic(topic)
  yield* memory.append("orders.DLT", 0, letters)
  return memory
})

const deleteTopic = (topic: string) =>
  MemoryBroker.MemoryBroker.use(({ broker }) =>
    Effect.scoped(Effect.flatMap(broker.admin, (admin) => admin.deleteTopics([topic])))
  )

type Letters = Effect.Success<ReturnType<typeof app>>

const statesOf = ({ list }: Letters) =>
  Effect.map(inTime(list({ partition: 0, count: 1_000 })), (listed) =>
    listed.map(({ letter, state }) => `${text(letter.value)} ${state}`)
  )

describe("DLT-23 dead letters whose copies the broker refuses", () => {
  scenario("DLT-23 ruling 75 wait on behind a replay in order, are counted, and are replayed once it is possible", () =>
    Effect.gen(function* () {
      const memory = yield* withTopics([letter("a"), letter("b", { topic: "gone" }), letter("c")])
      const letters = yield* app()
      assert.deepInclude(yield* inTime(letters.replay(10)), { replayed: 2, refused: 1 })
      assert.deepStrictEqual(yield* statesOf(letters), ["a dealt-with", "b waiting", "c dealt-with"])
      assert.strictEqual((yield* inTime(letters.stats)).count, 1)
      assert.deepInclude(yield* inTime(letters.replay(10)), { replayed: 0, refused: 1 })

      yield* memory.createTopic("gone")
      assert.deepInclude(yield* inTime(letters.replay(10)), { replayed: 1, refused: 0 })
      assert.deepStrictEqual(yield* valuesOf("gone"), ["b"])
      assert.strictEqual((yield* inTime(letters.stats)).count, 0)
      assert.deepInclude(yield* inTime(letters.replay(10)), { replayed: 0, refused: 0 })
    })
  )

  scenario("DLT-23 ruling 75 wait on when no copy of a whole replay to a tier is possible, and can be discarded", () =>
    Effect.gen(function* () {
      yield* withTopics([letter("a"), letter("b")])
      const tiers = RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: ["1 second"] })
      const letters = yield* app({ retry: tiers })
      assert.deepInclude(yield* inTime(letters.replayToTier(1, 10)), { replayed: 0, refused: 2 })
      assert.deepStrictEqual(yield* statesOf(letters), ["a waiting", "b waiting"])
      assert.strictEqual(yield* inTime(letters.discard([{ partition: 0, offset: 0n }], "no use")), 1)
      assert.deepStrictEqual(yield* statesOf(letters), ["a dealt-with", "b waiting"])
      assert.deepInclude(yield* inTime(letters.replay(10)), { replayed: 1, refused: 0 })
      assert.deepStrictEqual(yield* valuesOf("orders"), ["b"])
    })
  )

  scenario("DLT-23 ruling 75 wait on behind a scheduled replay, which tries each of them once", () =>
    Effect.gen(function* () {
      yield* withTopics([letter("a"), letter("b", { topic: "gone" })])
      const deadLetter = DeadLetter.withSettings(DeadLetter.scheduledReplay({ cooldown: "1 minute" }), {
        origins: ["gone"]
      })
      const { connector, of } = yield* start(Binding.make("orders", { ...plain, deadLetter, autoStartup: true }))
      yield* advance("10 minutes")
      const letters = yield* connector.deadLetters("orders")
      assert.deepStrictEqual(yield* statesOf(letters), ["a dealt-with", "b waiting"])
      const runs = of("ScheduledReplay").map(({ report }) => report.refused)
      assert.deepStrictEqual(
        runs.filter((refused) => refused > 0),
        [1]
      )
    })
  )
})

describe("DLT-23 dead letters of a former name", () => {
  const adopting = { adopts: ["former"] }
  const both = [letter("a"), letter("f", { owner: "former" }), letter("b")]
  const statesAfter = ["a dealt-with", "f dealt-with", "b dealt-with"]

  scenario("DLT-23 ruling 71 wait when the group adopts the name after a replay has passed them, and come once", () =>
    Effect.gen(function* () {
      yield* withTopics(both)
      const before = yield* app()
      assert.deepInclude(yield* inTime(before.replay(10)), { replayed: 2, foreign: new Map([["former", 1]]) })
      const after = yield* app(adopting)
      assert.deepStrictEqual(yield* statesOf(after), ["a dealt-with", "f waiting", "b dealt-with"])
      assert.deepInclude(yield* inTime(after.replay(10)), { replayed: 1, foreign: new Map() })
      assert.deepStrictEqual(yield* statesOf(after), statesAfter)
      assert.strictEqual((yield* inTime(after.replay(10))).replayed, 0)
      // A release without the setting in between changes nothing.
      assert.strictEqual((yield* inTime((yield* app()).replay(10))).replayed, 0)
      const again = yield* app(adopting)
      assert.deepStrictEqual(yield* statesOf(again), statesAfter)
      assert.deepStrictEqual(yield* valuesOf("orders"), ["a", "b", "f"])
    })
  )

  scenario("DLT-23 ruling 71 count once a custom handler has handled them, and not because it passed them before", () =>
    Effect.gen(function* () {
      const memory = yield* withTopics([letter("f", { owner: "former" }), letter("a")])
      const handled: Array<string | null> = []
      const deadLetter = DeadLetter.custom(({ value }) => Effect.sync(() => void handled.push(text(value))))
      const custom = (settings: object) => start(Binding.make("orders", { ...plain, deadLetter, ...settings }))
      const before = yield* custom({ autoStartup: true })
      yield* advance("10 seconds")
      yield* before.close
      const { connector } = yield* custom({ ...adopting, autoStartup: true })
      yield* memory.append("orders.DLT", 0, [letter("g", { owner: "former" })])
      yield* advance("10 seconds")
      assert.deepStrictEqual(handled, ["a", "g"])
      const states = yield* statesOf(yield* connector.deadLetters("orders"))
      assert.deepStrictEqual(states, ["f waiting", "a dealt-with", "g dealt-with"])
    })
  )
})

describe("DLT-23 a dead letter topic that is deleted and made again", () => {
  scenario("DLT-23 ruling 75 is recognised, also behind a replay that found nothing but a transaction's end", () =>
    Effect.gen(function* () {
      const { append, broker, createTopic } = yield* withTopics([])
      const producer = yield* broker.transactionalProducer({ transactionalId: "orders of a transactional binding" })
      const records = ["a", "b", "c"].map((value) => ({ ...letter(value), topic: "orders.DLT", partition: 0 }))
      yield* inTime(producer.transaction(({ sendAll }) => sendAll(records)))
      const letters = yield* app()
      assert.strictEqual((yield* inTime(letters.replay(3))).replayed, 3)
      assert.strictEqual((yield* inTime(letters.replay(10))).replayed, 0)
      yield* deleteTopic("orders.DLT")
      yield* settle
      yield* createTopic("orders.DLT")
      const values = ["d", "e", "f", "g", "h", "i"]
      yield* append(
        "orders.DLT",
        0,
        values.map((value) => letter(value))
      )
      assert.strictEqual((yield* inTime(letters.stats)).count, values.length)
      assert.strictEqual((yield* inTime(letters.replay(10))).replayed, values.length)
      assert.deepStrictEqual(yield* valuesOf("orders"), ["a", "b", "c", ...values])
    })
  )

  scenario(
    "DLT-23 ruling 75 is recognised when its log has a transaction's end where the last replayed record was",
    () =>
      Effect.gen(function* () {
        const { append, broker, createTopic } = yield* withTopics([letter("a"), letter("b")])
        const letters = yield* app()
        assert.strictEqual((yield* inTime(letters.replay(10))).replayed, 2)
        yield* deleteTopic("orders.DLT")
        yield* settle
        yield* createTopic("orders.DLT")
        const producer = yield* broker.transactionalProducer({ transactionalId: "orders of a transactional binding" })
        const first = { ...letter("c"), topic: "orders.DLT", partition: 0 }
        yield* inTime(producer.transaction(({ send }) => send(first)))
        yield* append("orders.DLT", 0, [letter("d")])
        assert.strictEqual((yield* inTime(letters.stats)).count, 2)
        assert.strictEqual((yield* inTime(letters.replay(10))).replayed, 2)
      })
  )
})

describe("DLT-23 a transaction of another service in the shared journal", () => {
  /** Writes to the journal and ends its transaction when told to. */
  const open = Effect.fnUntraced(function* (broker: Broker.Broker["Service"]) {
    const [begun, end] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const producer = yield* broker.transactionalProducer({ transactionalId: "other", transactionTimeout: "10 minutes" })
    const entry = { topic: "orders.DLT.replays", key: bytes("x"), value: bytes("x") }
    yield* Effect.forkScoped(
      producer.transaction(({ send }) =>
        send(entry).pipe(Effect.andThen(Deferred.succeed(begun, undefined)), Effect.andThen(Deferred.await(end)))
      )
    )
    yield* Deferred.await(begun)
    return Deferred.succeed(end, undefined)
  })

  scenario("DLT-23 ruling 75 makes no count 0: a count waits for its end, and says so when it takes too long", () =>
    Effect.gen(function* () {
      const { broker } = yield* withTopics([letter("a"), letter("b", { topic: "gone" }), letter("c")])
      const letters = yield* app()
      yield* inTime(letters.replay(1))
      const end = yield* open(broker)
      // Its notes are behind the other transaction, and its committed offset is not.
      const replay = yield* Effect.forkChild(letters.replay(10), { startImmediately: true })
      const count = yield* Effect.forkChild(letters.stats, { startImmediately: true })
      yield* advance("20 seconds")
      assert.isUndefined(count.pollUnsafe())
      yield* end
      yield* advance("1 second")
      assert.deepInclude(yield* Fiber.join(replay), { replayed: 1, refused: 1 })
      yield* Fiber.join(count)
      assert.strictEqual((yield* inTime(letters.stats)).count, 1)

      yield* Effect.asVoid(open(broker))
      const failed = yield* inTime(Effect.flip(letters.stats))
      assert.match(failed.message, /open transaction of some producer .*try again then/)
    })
  )
})
