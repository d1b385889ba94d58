import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetter, Health, TopicName } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Exit } from "effect"
import { type App, advance, bytes, deadLetterDepth, inTime, orders, scenario, start, text } from "../bus.ts"

const maxBufferedBytes = 4_000
const dlt = "orders.DLT"

const headers = (millis: number, owner?: string) =>
  Object.entries({
    "x-eventbus-dlt-timestamp": String(millis),
    ...(owner === undefined ? {} : { "x-eventbus-copy-owner": `${dlt}/${owner}` })
  }).map(([key, value]) => ({ key, value: bytes(value) }))

/** A dead letter in a batch that a binding with `maxBufferedBytes` cannot read. */
const large = (millis: number, owner?: string) => ({
  ...{ key: null, value: bytes("x".repeat(5_000)), compression: "gzip" as const },
  headers: headers(millis, owner)
})
const small = (value: string, millis: number) => ({ key: null, value: bytes(value), headers: headers(millis) })

/** The dead letter topic of binding `orders` holds these, and nothing handles the main topic. */
const withLetters = Effect.fnUntraced(function* (
  letters: ReadonlyArray<ReturnType<typeof large> | ReturnType<typeof small>>,
  settings: { readonly maxBufferedBytes?: number } = { maxBufferedBytes }
) {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", dlt]) yield* memory.createTopic(topic)
  yield* memory.append(dlt, 0, letters)
  const bound = (changes: { readonly maxBufferedBytes?: number }) =>
    Effect.flatMap(
      start(Binding.make("orders", { ...orders, ...changes, autoStartup: false, handler: () => Effect.void })),
      ({ connector }) => connector.deadLetters("orders")
    )
  const commands = yield* bound(settings)
  const copies = Effect.map(memory.log("orders", 0), (records) =>
    records.map(({ value }) => (value!.length > 100 ? `${value!.length} bytes` : text(value)))
  )
  const states = Effect.map(inTime(commands.list({ partition: 0, count: 9 })), (all) =>
    all.map(({ letter, state }) => `${letter.record.offset} ${state}`)
  )
  const counts = Effect.map(inTime(commands.stats), ({ count, unreadable, stored }) => [count, unreadable, stored])
  const position = memory.committed(TopicName.deadLetterGroup("billing"), dlt, 0)
  return { memory, commands, bound, copies, states, counts, position }
})

describe("dead letters that cannot be read (ruling 79)", () => {
  scenario("DLT-23 DLT-30 CLN-05 the commands read every dead letter that the binding itself reads", () =>
    Effect.gen(function* () {
      const value = new Uint8Array(17 * 1024 * 1024)
      const letter = { ...large(1), value }
      const { commands, copies, counts } = yield* withLetters([small("a", 1), letter, small("c", 1)], {
        maxBufferedBytes: 64 * 1024 * 1024
      })
      assert.deepStrictEqual(yield* counts, [3, 0, 3])
      assert.deepInclude(yield* inTime(commands.replay(Infinity)), { replayed: 3, unreadable: 0 })
      assert.sameMembers([...(yield* copies)], ["a", `${value.length} bytes`, "c"])
      assert.strictEqual(yield* inTime(commands.purge(2)), 3)
    })
  )

  scenario("DLT-23 DLT-26 DLT-30 ruling 75 a replay never moves past one: it counts until it can be read", () =>
    Effect.gen(function* () {
      const letters = [small("a", 1), large(1), small("c", 1), small("d", 1)]
      const { commands, bound, copies, states, counts, position } = yield* withLetters(letters)
      assert.deepStrictEqual(yield* states, ["0 waiting", "1 unreadable", "2 waiting", "3 waiting"])
      assert.deepStrictEqual(yield* counts, [4, 1, 4])
      const report = yield* inTime(commands.replay(2))
      assert.deepInclude(report, { replayed: 2, passedOver: 0, refused: 0, unreadable: 1 })
      assert.deepStrictEqual(yield* copies, ["a", "c"])
      assert.strictEqual(yield* position, 1n)
      assert.deepStrictEqual(yield* states, ["0 dealt-with", "1 unreadable", "2 dealt-with", "3 waiting"])
      assert.deepStrictEqual(yield* counts, [2, 1, 4])
      assert.deepInclude(yield* inTime(commands.replay(Infinity)), { replayed: 1, unreadable: 1 })
      assert.deepInclude(yield* inTime(commands.replay(Infinity)), { replayed: 0, unreadable: 1 })
      assert.deepStrictEqual(yield* counts, [1, 1, 4])
      // A release that reads larger records, as the remedy says.
      const larger = yield* bound({ maxBufferedBytes: 10_000 })
      assert.deepInclude(yield* inTime(larger.replay(Infinity)), { replayed: 1, unreadable: 0 })
      assert.deepStrictEqual(yield* copies, ["a", "c", "d", "5000 bytes"])
      assert.strictEqual(yield* position, 4n)
      assert.deepInclude(yield* inTime(larger.stats), { count: 0, unreadable: 0 })
    })
  )

  scenario("DLT-23 ruling 75 a replay of chosen records or of a window says that it could not read one", () =>
    Effect.gen(function* () {
      const { commands, copies } = yield* withLetters([small("a", 1), large(1), small("c", 1)])
      const at = (offset: bigint) => [{ partition: 0, offset }]
      assert.deepInclude(yield* inTime(commands.replayRecords(at(1n))), { replayed: 0, unreadable: 1 })
      assert.deepInclude(yield* inTime(commands.replayRecords(at(2n))), { replayed: 1, unreadable: 0 })
      assert.strictEqual(yield* inTime(commands.discard(at(1n), "lost")), 0)
      assert.deepInclude(yield* inTime(commands.replayWindow(0, 9)), { replayed: 1, unreadable: 1 })
      assert.deepStrictEqual(yield* copies, ["c", "a"])
    })
  )

  scenario("C46 ruling 75 the depth counts one until it is gone", () =>
    Effect.gen(function* () {
      const { memory, commands } = yield* withLetters([small("a", 1), large(1), small("c", 1)])
      yield* inTime(commands.replay(Infinity))
      yield* start(Binding.make("orders", { ...orders, maxBufferedBytes, handler: () => Effect.void }))
      assert.deepStrictEqual(yield* deadLetterDepth, [1])
      yield* Effect.flatMap(memory.broker.admin, (admin) => admin.deleteRecords(dlt, [{ partition: 0, before: 2n }]))
      assert.deepStrictEqual(yield* deadLetterDepth, [0])
    })
  )

  scenario("DLT-29 rulings 32 and 71 a purge ends before one, whose age and owner nobody knows", () =>
    Effect.gen(function* () {
      const { memory, commands } = yield* withLetters([small("a", 1), large(99, "another-group"), small("c", 1)])
      assert.strictEqual(yield* inTime(commands.purge(50)), 1)
      const left = memory.log(dlt, 0)
      assert.lengthOf(yield* left, 2)
      assert.strictEqual(yield* inTime(commands.purge(50)), 0)
      assert.lengthOf(yield* left, 2)
      assert.strictEqual(yield* inTime(commands.purge(50, { deleteUnreadable: true })), 2)
      assert.lengthOf(yield* left, 0)
    })
  )

  scenario("DLT-29 a purge that the operator tells to deletes one that is the last of its partition", () =>
    Effect.gen(function* () {
      const { memory, commands } = yield* withLetters([small("a", 1), large(1)])
      assert.strictEqual(yield* inTime(commands.purge(50, { deleteUnreadable: true })), 2)
      assert.lengthOf(yield* memory.log(dlt, 0), 0)
    })
  )
})

/** A custom handler on partition 0 of the dead letter topic: a small letter, one that cannot be read, and `behind`. */
const handled = Effect.fnUntraced(function* (behind: ReadonlyArray<string>, millisPerLetter = 0) {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", dlt]) yield* memory.createTopic(topic)
  yield* memory.append(dlt, 0, [small("before", 1), large(1), ...behind.map((value) => small(value, 1))])
  const got: Array<string | null> = []
  const deadLetter = DeadLetter.custom(({ value }) =>
    Effect.andThen(
      Effect.sleep(millisPerLetter),
      Effect.sync(() => got.push(value!.length > 100 ? "large" : text(value)))
    )
  )
  const binding = (changes: { readonly maxBufferedBytes?: number } = { maxBufferedBytes }) =>
    Binding.make("orders", { ...orders, ...changes, deadLetter, handler: () => Effect.void })
  const app = yield* start(binding())
  yield* advance("20 seconds")
  const health = Effect.map(app.connector.health, ({ status, reasons }) => [status, ...reasons.map(({ _tag }) => _tag)])
  const purge = Effect.flatMap(app.connector.deadLetters("orders"), (commands) =>
    inTime(commands.purge(50, { deleteUnreadable: true }))
  )
  const committed = memory.committed("billing.dlt", dlt, 0)
  const admin = yield* memory.broker.admin
  const deleteBefore = (before: bigint) => admin.deleteRecords(dlt, [{ partition: 0, before }])
  return { memory, app, binding, got, health, purge, committed, deleteBefore }
})

const failing = ["DOWN", "DeadLetterStrategyFailing"]
const at1 = { topic: dlt, partition: 0, offset: 1n }

describe("a custom handler before a dead letter that cannot be read (ruling 79)", () => {
  scenario("DLT-20 ruling 74 health names the remedy, and an operator passes it: the handler goes on behind it", () =>
    Effect.gen(function* () {
      const { app, got, health, committed } = yield* handled(["behind"])
      assert.deepStrictEqual([got, yield* health], [["before"], failing])
      const { reasons, live } = yield* app.connector.health
      assert.isTrue(live)
      assert.match(Health.describe(reasons[0]!), /orders\.DLT-0 at offset 1.*maxBufferedBytes.*`skip`/)
      const wrong = yield* Effect.flip(app.connector.skip("orders", { ...at1, offset: 2n }, "wrong"))
      assert.strictEqual(wrong._tag === "RecordNotHeld" && wrong.held.join(), "orders.DLT-0@1")
      assert.strictEqual(
        (yield* Effect.flip(app.connector.deadLetter("orders", at1, "no record")))._tag,
        "RecordNotHeld"
      )
      yield* app.connector.skip("orders", at1, "a test of load")
      yield* advance("1 second")
      assert.deepStrictEqual([got, yield* health], [["before", "behind"], ["UP"]])
      assert.strictEqual(yield* committed, 3n)
      const [skipped] = app.of("UnreadableLettersSkipped")
      assert.deepInclude(skipped, { reason: "a test of load" })
      assert.deepInclude(skipped!.batch, { ...at1, lastOffset: 1n, problem: "tooLarge" })
    })
  )

  scenario(
    "OPS-11 DLT-20 the snapshot lists each that an operator can pass, since when and why, while it is held",
    () =>
      Effect.gen(function* () {
        const { app } = yield* handled(["behind"])
        const listed = Effect.map(app.connector.snapshot("orders"), ({ unreadableLetters }) => unreadableLetters)
        const [batch, ...others] = yield* listed
        assert.lengthOf(others, 0)
        assert.deepInclude(batch, { ...at1, lastOffset: 1n, problem: "tooLarge" })
        assert.match(batch!.remedy, /maxBufferedBytes/)
        assert.isAtMost(batch!.sinceMillis, 20_000)
        yield* app.connector.skip("orders", at1, "a test of load")
        assert.deepStrictEqual(yield* listed, [])
      })
  )

  scenario("DLT-20 the last of its partition is passed, too, and stays dealt with after a restart", () =>
    Effect.gen(function* () {
      const { memory, app, binding, got, committed } = yield* handled([])
      yield* app.connector.skip("orders", at1, "gone for good")
      yield* advance("1 second")
      assert.strictEqual(yield* committed, 2n)
      const commands = yield* app.connector.deadLetters("orders")
      assert.deepInclude(yield* inTime(commands.stats), { count: 0, unreadable: 0, stored: 2 })
      yield* app.close
      const again = yield* start(binding())
      yield* memory.append(dlt, 0, [small("new", 1)])
      yield* advance("20 seconds")
      assert.deepStrictEqual(got, ["before", "new"])
      assert.deepStrictEqual((yield* again.connector.health).reasons, [])
    })
  )

  scenario("DLT-20 the pass waits for the letter before it: the commit never passes one in the handler", () =>
    Effect.gen(function* () {
      const { app, got, committed } = yield* handled(["behind"], 60_000)
      assert.deepStrictEqual(got, [])
      const skipping = yield* Effect.exit(app.connector.skip("orders", at1, "early"))
      assert.isTrue(Exit.isSuccess(skipping))
      yield* advance("20 seconds")
      assert.strictEqual(yield* committed, undefined)
      yield* advance("3 minutes")
      assert.deepStrictEqual(got, ["before", "behind"])
      assert.strictEqual(yield* committed, 3n)
    })
  )

  for (const by of ["retention", "a purge"] as const) {
    scenario(`DLT-20 DLT-29 goes on, and health is up, within seconds after ${by} has removed it`, () =>
      Effect.gen(function* () {
        const { app, memory, got, health, purge, deleteBefore } = yield* handled(["behind"])
        if (by === "retention") yield* deleteBefore(2n)
        else {
          yield* memory.append(dlt, 0, [small("young", 99)])
          assert.strictEqual(yield* purge, 3)
        }
        yield* advance("10 seconds")
        const [next] = by === "retention" ? ["behind"] : ["young"]
        assert.deepStrictEqual([got, yield* health], [["before", next], ["UP"]])
        assert.deepStrictEqual((yield* app.connector.snapshot("orders")).unreadableLetters, [])
      })
    )
  }

  scenario("DLT-20 when a partition moves to another process, the former one no longer fails for it", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.createTopic(dlt, { partitions: 2 })
      for (const partition of [0, 1]) yield* memory.append(dlt, partition, [large(1), small(`behind ${partition}`, 1)])
      const got: Array<string | null> = []
      const deadLetter = DeadLetter.custom(({ value }) => Effect.sync(() => got.push(text(value))))
      const binding = Binding.make("orders", { ...orders, maxBufferedBytes, deadLetter, handler: () => Effect.void })
      const former = yield* start(binding)
      yield* advance("20 seconds")
      const other = yield* start(binding)
      yield* advance("1 minute")
      const skip = (partition: number, { connector }: App) =>
        Effect.exit(connector.skip("orders", { topic: dlt, partition, offset: 0n }, "passed"))
      const skipped = yield* Effect.forEach([0, 1], (partition) => skip(partition, former))
      assert.strictEqual(skipped.filter(Exit.isSuccess).length, 1)
      yield* advance("10 seconds")
      assert.strictEqual((yield* former.connector.health).status, "UP")
      assert.strictEqual((yield* other.connector.health).status, "DOWN")
      yield* Effect.forEach([0, 1], (partition) => skip(partition, other))
      yield* advance("10 seconds")
      assert.strictEqual((yield* other.connector.health).status, "UP")
      assert.sameMembers(got, ["behind 0", "behind 1"])
    })
  )

  scenario("DLT-20 CLN-05 a handler gets every dead letter that the binding itself reads", () =>
    Effect.gen(function* () {
      const { app, binding, got } = yield* handled(["behind"])
      yield* app.close
      yield* start(binding({ maxBufferedBytes: 10_000 }))
      yield* advance("20 seconds")
      assert.deepStrictEqual(got, ["before", "large", "behind"])
    })
  )
})
