/**
 * An operator decides about the record that is all that a half-open breaker has to try (rulings 72 and 88).
 */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect, Fiber } from "effect"
import { advance, append, headersOf, scenario, start, text, until } from "../bus.ts"
import { Down, kinds } from "../kinds.ts"

const at = (offset: bigint, partition = 0) => ({ topic: "orders", partition, offset })

const breaker = {
  minimumNumberOfCalls: 1,
  slidingWindowSize: 1,
  permittedNumberOfCallsInHalfOpenState: 2,
  waitDurationInOpenState: "30 seconds"
} as const

interface Setting {
  readonly kind?: keyof typeof kinds
  readonly automaticPauseOnOpen?: boolean
  /** Each call takes this time. */
  readonly takes?: "0 millis" | "3 seconds"
}

/** Record `poison` fails for ever, and the others never. */
const poisoned = Effect.fnUntraced(function* (
  { kind = "single", automaticPauseOnOpen = true, takes = "0 millis" }: Setting = {},
  poison: ReadonlyArray<string> = ["poison"]
) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic("orders", { partitions: 2 })
  yield* memory.createTopic("orders.DLT")
  yield* memory.createTopic("out")
  const calls: Array<string> = []
  const app = yield* start(
    kinds[kind]({
      circuitBreaker: { ...breaker, automaticPauseOnOpen },
      handle: ({ value }) =>
        Effect.suspend(() => {
          calls.push(value!)
          return Effect.andThen(Effect.sleep(takes), poison.includes(value!) ? Effect.fail(new Down()) : Effect.void)
        })
    })
  )
  const settlements = () => app.of("Settled").map(({ settlement, record }) => `${text(record.value)} ${settlement}`)
  const only = Effect.map(app.connector.snapshot("orders"), ({ trials }) => trials?.only)
  const stateOfBreaker = () => app.of("BreakerChanged").at(-1)?.to
  return { app, memory, calls, settlements, only, stateOfBreaker }
})

describe("OPS-11 an operator decides about the only candidate of a half-open breaker", () => {
  for (const kind of Object.keys(kinds) as ReadonlyArray<keyof typeof kinds>) {
    for (const automaticPauseOnOpen of [true, false]) {
      const title = `rulings 72 and 88 ${kind}${automaticPauseOnOpen ? "" : ", records wait in place"}`

      scenario(`${title}: skip drops it, and the breaker closes with the next record`, () =>
        Effect.gen(function* () {
          const { app, memory, calls, settlements, only, stateOfBreaker } = yield* poisoned({
            kind,
            automaticPauseOnOpen
          })
          yield* append("orders", 0, ["poison"])
          yield* advance("5 minutes")
          assert.strictEqual(stateOfBreaker(), "OPEN")
          assert.deepInclude((yield* only)!, at(0n))
          const before = calls.length
          yield* app.connector.skip("orders", at(0n), "test data")
          yield* advance("10 seconds")
          assert.strictEqual(yield* only, undefined)
          assert.strictEqual(yield* memory.committed("billing", "orders", 0), 1n)
          yield* append("orders", 0, ["b", "c"])
          yield* advance("2 minutes")
          yield* advance("10 seconds")
          assert.strictEqual(stateOfBreaker(), "CLOSED")
          assert.deepStrictEqual([...new Set(calls.slice(before))].sort(), ["b", "c"])
          assert.strictEqual(yield* memory.committed("billing", "orders", 0), 3n)
          assert.deepStrictEqual(
            settlements().filter((each) => !each.endsWith(" HeldByBreaker")),
            ["poison Skipped", "b Handled", "c Handled"]
          )
          assert.deepStrictEqual(
            app.of("RecordDecided").map(({ at: where, decision }) => ({ ...where, ...decision })),
            [{ ...at(0n), kind: "skip", reason: "test data" }]
          )
        })
      )

      scenario(`${title}: deadLetter keeps it with reason MANUAL and why`, () =>
        Effect.gen(function* () {
          const { app, memory, stateOfBreaker } = yield* poisoned({ kind, automaticPauseOnOpen })
          yield* append("orders", 0, ["poison"])
          yield* advance("5 minutes")
          yield* app.connector.deadLetter("orders", at(0n), "customer is gone")
          yield* append("orders", 0, ["b"])
          yield* advance("2 minutes")
          yield* advance("10 seconds")
          const [letter, ...more] = yield* memory.log("orders.DLT", 0)
          assert.lengthOf(more, 0)
          assert.strictEqual(headersOf(letter).get("x-eventbus-dlt-reason"), "MANUAL")
          assert.strictEqual(headersOf(letter).get("x-eventbus-dlt-detail"), "customer is gone")
          assert.strictEqual(headersOf(letter).get("x-eventbus-original-offset"), "0")
          assert.strictEqual(stateOfBreaker(), "CLOSED")
          assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
        })
      )
    }
  }

  scenario("rulings 72 and 88 a decision waits for the end of a trial call that runs", () =>
    Effect.gen(function* () {
      const { app, calls, settlements, only, stateOfBreaker } = yield* poisoned({ takes: "3 seconds" })
      yield* append("orders", 0, ["poison"])
      yield* until(() => stateOfBreaker() === "HALF_OPEN", "1 second")
      yield* until(() => stateOfBreaker() === "OPEN", "1 second")
      assert.isDefined(yield* only)
      const before = calls.length
      yield* until(() => calls.length > before, "1 second")
      const decided = yield* Effect.forkChild(app.connector.skip("orders", at(0n), "no"), { startImmediately: true })
      yield* advance("1 second")
      assert.isUndefined(decided.pollUnsafe())
      yield* advance("3 seconds")
      yield* Fiber.join(decided)
      yield* advance("1 minute")
      assert.strictEqual(calls.length, before + 1)
      assert.strictEqual(settlements().at(-1), "poison Skipped")
    })
  )

  scenario("rulings 72 and 88 where there are several candidates, none of them can be decided about", () =>
    Effect.gen(function* () {
      const { app, only } = yield* poisoned({}, ["poison", "venom"])
      yield* append("orders", 0, ["poison"])
      yield* append("orders", 1, ["venom"])
      yield* advance("5 minutes")
      assert.isUndefined(yield* only)
      for (const partition of [0, 1]) {
        const refused = yield* Effect.flip(app.connector.skip("orders", at(0n, partition), "no"))
        assert.strictEqual(refused._tag, "RecordNotHeld")
        assert.include(refused.message, "no record is")
      }
      // An open breaker keeps records that were never tried, too: they are for nobody to decide about.
      const behind = yield* Effect.flip(app.connector.skip("orders", at(1n), "no"))
      assert.strictEqual(behind._tag, "RecordNotHeld")
    })
  )

  scenario("rulings 72 and 88 what an operator has paused stays paused behind the decision", () =>
    Effect.gen(function* () {
      const { app, memory, calls } = yield* poisoned()
      yield* append("orders", 0, ["poison", "b"])
      yield* advance("2 minutes")
      yield* app.connector.pause("orders")
      yield* advance("2 minutes")
      yield* app.connector.skip("orders", at(0n), "test data")
      yield* advance("5 minutes")
      assert.strictEqual(yield* app.connector.getState("orders"), "PAUSED")
      assert.notInclude(calls, "b")
      yield* app.connector.resume("orders")
      yield* advance("1 minute")
      assert.include(calls, "b")
      assert.strictEqual(yield* memory.committed("billing", "orders", 0), 2n)
    })
  )

  scenario("rulings 72 and 88 after a rebalance the record is held again once it was tried", () =>
    Effect.gen(function* () {
      const { app, memory, settlements } = yield* poisoned()
      yield* append("orders", 0, ["poison"])
      yield* advance("5 minutes")
      yield* memory.inject({ _tag: "PartitionLost", topic: "orders", partition: 0 })
      yield* advance("5 minutes")
      yield* app.connector.skip("orders", at(0n), "no")
      yield* advance("10 seconds")
      assert.strictEqual(settlements().at(-1), "poison Skipped")
    })
  )

  scenario("ruling 88 a decision without a reason is refused, and nothing is done", () =>
    Effect.gen(function* () {
      const { app, settlements } = yield* poisoned()
      yield* append("orders", 0, ["poison"])
      yield* advance("5 minutes")
      const letters = yield* app.connector.deadLetters("orders")
      for (const reason of ["", "  \n"]) {
        for (const command of [
          app.connector.skip("orders", at(0n), reason),
          app.connector.deadLetter("orders", at(0n), reason),
          Effect.asVoid(letters.discard([{ partition: 0, offset: 0n }], reason))
        ]) {
          const refused = yield* Effect.flip<void, { readonly _tag: string; readonly message: string }, never>(command)
          assert.strictEqual(refused._tag, "InvalidArgument")
          assert.include(refused.message, "reason")
        }
      }
      yield* advance("10 seconds")
      assert.notInclude(settlements(), "poison Skipped")
      assert.deepStrictEqual(app.of("RecordDecided"), [])
    })
  )
})
