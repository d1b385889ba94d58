/** Parked keys as operators see them, and their decisions about those that are held. */
import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetterRecord, Outside, type ParkedKeys, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Data, Effect } from "effect"
import { type App, advance, bytes, inTime, scenario, settle, start, text, until } from "../bus.ts"

class Down extends Data.TaggedError("Down") {
  override readonly message = "the account is closed"
}

type Tiers = ReadonlyArray<`${number} seconds`>

interface Given {
  /** Values whose handler fails, for as long as they are in here. */
  readonly failing?: Set<string>
  /** Values whose handler takes a minute. */
  readonly slow?: ReadonlySet<string>
  readonly onDeadLetter?: "continue" | "hold"
  readonly tiers?: Tiers
  readonly autoStartup?: boolean
  readonly orderingMode?: "PER_KEY" | "RELAXED_IN_RETRY"
}

/** A process with a binding that notes what it has handled. */
const process = Effect.fnUntraced(function* (given: Given) {
  const {
    orderingMode = "PER_KEY",
    failing = new Set(),
    onDeadLetter = "hold",
    tiers,
    autoStartup = true,
    slow = new Set()
  } = given
  const handled: Array<string> = []
  const binding = Binding.make("orders", {
    ...{ topic: "orders", groupId: "billing", key: Serde.string, value: Serde.string },
    ...{ autoStartup, processingOrder: "key", orderingMode },
    ...(orderingMode === "PER_KEY" ? { perKey: { onDeadLetter, holdFor: "1 hour" } } : {}),
    retry: RetryPolicy.tiered({
      tiers: (tiers ?? ["10 seconds"]).map((delay) => ({ delay, maxAttempts: 1, concurrency: 4 })),
      blocking: { maxAttempts: 1 }
    }),
    onError: { Down: Route.nextTier },
    handler: ({ value }) => {
      if (failing.has(value)) return Effect.fail(new Down())
      const noted = Effect.sync(() => void handled.push(value))
      return slow.has(value) ? Effect.delay(noted, "1 minute") : noted
    }
  })
  const app = yield* start(binding)
  const parked = yield* app.connector.parked("orders")
  return { app, binding, handled, parked }
})

const cluster = Effect.flatMap(MemoryBroker.MemoryBroker, ({ createTopic }) =>
  Effect.andThen(createTopic("orders"), createTopic("orders.DLT"))
)

const publish = (...values: ReadonlyArray<string>) =>
  Effect.flatMap(MemoryBroker.MemoryBroker, (memory) =>
    memory.append(
      "orders",
      0,
      values.map((value) => ({ key: bytes(value.slice(0, 1)), value: bytes(value) }))
    )
  )

/** Each key of a list. */
const shown = (parked: ParkedKeys.ParkedKeys) =>
  Effect.map(inTime(parked.list), (all) =>
    all.map(({ key, state, offset, followers }) => [text(key), state, Number(offset), followers])
  )

/** The dead letters: their values, and why each is one. */
const letters = Effect.gen(function* () {
  const { log } = yield* MemoryBroker.MemoryBroker
  const records = yield* log("orders.DLT", 0)
  return records.map((record) => {
    const { value, lastExceptionClass, headers } = DeadLetterRecord.read(record)
    const reason = headers.find(({ key }) => key === "x-eventbus-dlt-reason")
    return [text(value), text(reason?.value), lastExceptionClass]
  })
})

const decisionsOf = (app: App) => app.of("KeyDecided").map(({ at, decision }) => [Number(at.offset), decision.kind])

/** Key a is held by a1, and a2 and a3 wait behind it. */
const held = Effect.fnUntraced(function* (given: Given = {}) {
  yield* cluster
  const failing = new Set(["a1"])
  const one = yield* process({ failing, ...given })
  yield* publish("a1", "b1", "a2", "a3")
  yield* advance("15 seconds")
  assert.deepStrictEqual(one.handled, ["b1"])
  return { ...one, failing }
})

describe("PKO-05 parked keys", () => {
  scenario("PKO-05 a list shows what waits, behind which record, since when, until when, and why", () =>
    Effect.gen(function* () {
      yield* cluster
      const { parked } = yield* process({ failing: new Set(["a1"]) })
      yield* publish("b1", "a1", "a2", "a3")
      yield* advance("1 second")
      const [{ key, ...found } = assert.fail(), ...others] = yield* parked.list
      assert.deepStrictEqual([text(key), others], ["a", []])
      assert.deepStrictEqual(found, {
        ...{ topic: "orders", partition: 0, state: "waiting", offset: 1n, sinceMillis: 0, dueMillis: 10_000 },
        ...{ retryTopic: "orders.retry-1", tier: 1, failure: { className: "Down", message: "" } },
        ...{ followers: 2, hasMoreFollowers: false, isOwnedHere: true }
      })
      yield* advance("10 seconds")
      const [atLast] = yield* parked.list
      assert.deepStrictEqual(
        { ...atLast, key: undefined },
        {
          ...{ ...found, key: undefined, state: "held", dueMillis: undefined, tier: undefined },
          failure: { className: "Down", message: "the account is closed" }
        }
      )
    })
  )

  scenario("PKO-05 retry handles the held record again, and then what follows it, in order", () =>
    Effect.gen(function* () {
      const { app, parked, handled, failing } = yield* held()
      assert.deepStrictEqual(yield* shown(parked), [["a", "held", 0, 2]])
      failing.clear()
      const { by } = yield* parked.retry("a", "the account is open again")
      yield* advance("1 second")
      assert.deepStrictEqual([by, handled], ["here", ["b1", "a1", "a2", "a3"]])
      assert.deepStrictEqual([yield* shown(parked), yield* letters, decisionsOf(app)], [[], [], [[0, "retry"]]])
      yield* publish("a4")
      yield* advance("1 second")
      assert.deepStrictEqual(handled.slice(-1), ["a4"])
    })
  )

  scenario("PKO-05 a record that is retried and fails again waits in a tier, and its key is held behind that", () =>
    Effect.gen(function* () {
      const { parked, handled } = yield* held()
      yield* parked.retry(bytes("a"), "perhaps now")
      yield* advance("1 second")
      assert.deepStrictEqual(yield* shown(parked), [["a", "waiting", 0, 2]])
      yield* advance("15 seconds")
      assert.deepStrictEqual([yield* shown(parked), handled], [[["a", "held", 0, 2]], ["b1"]])
    })
  )

  scenario("PKO-05 skip dead-letters the held record for its own reason, and what follows goes on", () =>
    Effect.gen(function* () {
      const { app, parked, handled } = yield* held()
      yield* parked.skip({ partition: 0, offset: 0n }, "INC-1204")
      yield* advance("1 second")
      assert.deepStrictEqual(handled, ["b1", "a2", "a3"])
      assert.deepStrictEqual(yield* letters, [["a1", "RETRIES_EXHAUSTED", "Down"]])
      assert.deepStrictEqual([yield* shown(parked), decisionsOf(app)], [[], [[0, "skip"]]])
    })
  )

  scenario("PKO-05 after holdFor the held record and what follows so far are dead-lettered in order", () =>
    Effect.gen(function* () {
      const { parked, handled } = yield* held()
      yield* advance("1 hour")
      assert.deepStrictEqual(yield* letters, [
        ["a1", "RETRIES_EXHAUSTED", "Down"],
        ["a2", "KEY_BLOCKED", "KeyBlocked"],
        ["a3", "KEY_BLOCKED", "KeyBlocked"]
      ])
      assert.deepStrictEqual([handled, yield* shown(parked)], [["b1"], []])
      yield* publish("a4")
      yield* advance("1 second")
      assert.deepStrictEqual(handled, ["b1", "a4"])
    })
  )

  scenario("PKO-05 a process that does not own the key decides through the log", () =>
    Effect.gen(function* () {
      const owner = yield* held({ tiers: ["10 seconds", "20 seconds"] })
      yield* advance("30 seconds")
      const other = yield* process({ tiers: ["10 seconds", "20 seconds"], autoStartup: false })
      assert.deepStrictEqual(yield* shown(owner.parked), [["a", "held", 0, 2]])
      const [seen] = yield* inTime(other.parked.list)
      assert.deepStrictEqual(
        [seen?.state, seen?.offset, seen?.isOwnedHere, seen?.followers, seen?.failure?.message],
        ["held", 0n, false, undefined, "the account is closed"]
      )
      owner.failing.clear()
      const { by } = yield* inTime(other.parked.retry("a", "the account is open again"))
      assert.strictEqual(by, "owner")
      yield* until(() => owner.handled.includes("a3"), "1 second")
      assert.deepStrictEqual(
        owner.handled.filter((value) => value.startsWith("a")),
        ["a1", "a2", "a3"]
      )
      assert.deepStrictEqual(decisionsOf(other.app), [[0, "retry"]])
      yield* advance("10 seconds")
      assert.deepStrictEqual(yield* shown(other.parked), [])
    })
  )

  scenario("PKO-05 a decision from outside waits for the next owner", () =>
    Effect.gen(function* () {
      const { app, binding, failing } = yield* held({ tiers: ["10 seconds", "20 seconds"] })
      yield* advance("30 seconds")
      yield* app.close
      const outside = yield* inTime(Outside.make([binding]))
      const parked = yield* outside.parked("orders")
      const [seen] = yield* inTime(parked.list)
      assert.deepStrictEqual([seen?.state, text(seen?.key), seen?.offset], ["held", "a", 0n])
      yield* inTime(parked.skip({ partition: 0, offset: 0n }, "INC-1204"))
      const next = yield* process({ failing, tiers: ["10 seconds", "20 seconds"] })
      yield* advance("30 seconds")
      assert.deepStrictEqual(next.handled, ["a2", "a3"])
      assert.deepStrictEqual(yield* letters, [["a1", "RETRIES_EXHAUSTED", "Down"]])
    })
  )

  scenario("PKO-05 a key that is not held, or not parked, is refused, and nothing happens", () =>
    Effect.gen(function* () {
      yield* cluster
      const { app, parked, handled } = yield* process({ failing: new Set(["a1"]) })
      yield* publish("a1", "a2")
      yield* advance("1 second")
      const refusal = (decided: ReturnType<ParkedKeys.Decide>) => inTime(Effect.flip(decided))
      const waiting = yield* refusal(parked.retry("a", "now"))
      assert.include(waiting.message, "'a' of binding 'orders' is parked and not held: orders-0@0: waiting")
      const nobody = yield* refusal(parked.skip({ partition: 0, offset: 7n }, "now"))
      assert.include(nobody.message, "No key of binding 'orders' is parked at orders-0@7")
      const noReason = yield* refusal(parked.skip("a", " "))
      assert.strictEqual(noReason._tag, "InvalidArgument")
      const noPlace = yield* refusal(parked.skip({ partition: -1, offset: 7n }, "now"))
      assert.strictEqual(noPlace._tag, "InvalidArgument")
      assert.deepStrictEqual([handled, decisionsOf(app)], [[], []])
      assert.deepStrictEqual(yield* shown(parked), [["a", "waiting", 0, 1]])
    })
  )

  scenario("PKO-05 a second decision about the same record is refused", () =>
    Effect.gen(function* () {
      const { parked, handled, failing } = yield* held()
      failing.clear()
      yield* parked.retry("a", "once")
      const again = yield* inTime(Effect.flip(parked.retry("a", "twice")))
      assert.strictEqual(again._tag, "KeyNotHeld")
      yield* advance("1 second")
      assert.deepStrictEqual(handled, ["b1", "a1", "a2", "a3"])
    })
  )

  scenario("PKO-05 a record that was retried is done, also while its key cannot leave its retry topic yet", () =>
    Effect.gen(function* () {
      yield* cluster
      const failing = new Set(["a1", "c1"])
      const { parked, handled } = yield* process({ failing })
      yield* publish("a1", "c1", "c2")
      yield* advance("12 seconds")
      failing.clear()
      yield* parked.retry("c", "the account is open again")
      yield* settle
      assert.deepStrictEqual(yield* shown(parked), [
        ["a", "held", 0, 0],
        ["c", "draining", 3, 0]
      ])
      const again = yield* inTime(Effect.flip(parked.retry("c", "twice")))
      assert.include(again.message, "orders-0@3: draining")
      yield* advance("1 minute")
      assert.deepStrictEqual([handled, yield* shown(parked)], [["c1", "c2"], [["a", "held", 0, 0]]])
      yield* advance("1 hour")
      assert.deepStrictEqual(yield* letters, [["a1", "RETRIES_EXHAUSTED", "Down"]])
    })
  )

  scenario("PKO-05 a record that was retried is not held again while a record of another key is in work for long", () =>
    Effect.gen(function* () {
      yield* cluster
      const failing = new Set(["d1", "c1", "e1"])
      const slow = new Set<string>()
      const { parked, handled } = yield* process({ failing, slow, tiers: ["10 seconds", "20 seconds"] })
      yield* publish("d1", "c1", "e1")
      yield* advance("1 second")
      failing.delete("d1")
      slow.add("d1")
      yield* Effect.repeat(advance("1 second"), { times: 35 })
      assert.deepStrictEqual(yield* shown(parked), [
        ["c", "held", 1, 0],
        ["e", "held", 2, 0],
        ["d", "waiting", 0, 0]
      ])
      failing.clear()
      yield* parked.retry("c", "the account is open again")
      yield* Effect.repeat(advance("1 second"), { times: 15 })
      assert.deepStrictEqual(handled, ["c1"])
      const states = (yield* shown(parked)).map(([key, state]) => [key, state])
      assert.deepStrictEqual(states.slice(0, 1), [["e", "held"]])
      assert.notDeepInclude(states, ["c", "held"])
    })
  )

  scenario(
    "PKO-05 a binding that keeps no order of keys has no parked keys; one that did so before has those that are left",
    () =>
      Effect.gen(function* () {
        const { app, failing } = yield* held()
        yield* app.close
        const relaxed = yield* process({ orderingMode: "RELAXED_IN_RETRY", failing })
        yield* advance("5 seconds")
        assert.deepStrictEqual(yield* shown(relaxed.parked), [["a", "held", 0, 2]])
        failing.clear()
        yield* relaxed.parked.retry("a", "the account is open again")
        yield* advance("5 seconds")
        assert.deepStrictEqual([relaxed.handled, yield* shown(relaxed.parked)], [["a1", "a2", "a3"], []])
        yield* relaxed.app.close
        const strict = yield* start(
          Binding.make("orders", {
            ...{ topic: "orders", groupId: "billing", retry: RetryPolicy.blocking(), handler: () => Effect.void }
          })
        )
        const refused = yield* Effect.flip(strict.connector.parked("orders"))
        assert.deepStrictEqual(
          [refused._tag, refused.message.includes("'RELAXED_IN_RETRY'")],
          ["NotOrderedPerKey", true]
        )
        assert.strictEqual((yield* Effect.flip(strict.connector.parked("nobody")))._tag, "BindingNotFound")
      })
  )
})
