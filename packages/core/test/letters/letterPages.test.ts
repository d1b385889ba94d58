import { assert, describe, it } from "@effect/vitest"
import type { DeadLetterList } from "@eventbus/core"
import { Effect } from "effect"
import * as fc from "fast-check"
import { inTime, runScenario, scenario } from "../../../../test/scenarios/bus.ts"
import { commands, letter, type Sketch, store } from "./ordersLetters.ts"

const page = (query?: DeadLetterList.Query) => Effect.flatMap(commands, (letters) => inTime(letters.letters(query)))

const positions = ({ letters }: DeadLetterList.SummaryPage) =>
  letters.map(({ partition, offset }) => `${partition}@${offset}`)

/** All pages of a query. */
const pages = Effect.fnUntraced(function* (query: DeadLetterList.Query) {
  const all: Array<string> = []
  let before: string | undefined
  for (let count = 0; count < 1_000; count++) {
    const found: DeadLetterList.SummaryPage = yield* page({ ...query, ...(before === undefined ? {} : { before }) })
    all.push(...positions(found))
    if (found.next === undefined) return all
    before = found.next
  }
  throw new Error("the pages do not end")
})

describe("pages of dead letters", () => {
  scenario("OPS-03 the newest come first over all partitions, and each page goes on where the last one ended", () =>
    Effect.gen(function* () {
      yield* store([{ millis: 10 }, { millis: 30 }, { millis: 50 }], [{ millis: 20 }, { millis: 40 }], [])
      const first = yield* page({ limit: 2 })
      assert.deepStrictEqual(positions(first), ["0@2", "1@1"])
      const second = yield* page({ limit: 2, before: first.next! })
      assert.deepStrictEqual(positions(second), ["0@1", "1@0"])
      const third = yield* page({ limit: 2, before: second.next! })
      assert.deepStrictEqual(positions(third), ["0@0"])
      assert.isUndefined(third.next)
    })
  )

  scenario("OPS-03 a cursor is stable: dead letters that arrive later move into no page that follows", () =>
    Effect.gen(function* () {
      const memory = yield* store([{ millis: 10 }, { millis: 20 }, { millis: 30 }], [{ millis: 15 }])
      const first = yield* page({ limit: 1 })
      yield* memory.append("orders.DLT", 0, [letter({ millis: 40 })])
      yield* memory.append("orders.DLT", 1, [letter({ millis: 12 })])
      const rest = yield* page({ before: first.next! })
      assert.deepStrictEqual(positions(rest), ["0@1", "1@0", "0@0"])
    })
  )

  scenario("OPS-03 a dead letter in a list tells all but its value", () =>
    Effect.gen(function* () {
      yield* store([{ millis: 9, key: "ä", value: "four", fingerprint: "v1-a", message: "no", replays: 2 }])
      const { letters } = yield* page()
      assert.deepStrictEqual(letters, [
        {
          ...{ partition: 0, offset: 0n, state: "waiting", fingerprint: "v1-a", exceptionClass: "Down" },
          ...{ exceptionMessage: "no", reason: "RETRIES_EXHAUSTED", detail: undefined, deadLetteredMillis: 9 },
          ...{
            originFrom: "eventbus",
            originalTopic: "orders",
            originalPartition: 0,
            originalOffset: 7n,
            totalAttempts: 0
          },
          ...{ replayCount: 2, owner: "billing", key: "ä", valueBytes: 4, history: [] }
        }
      ])
    })
  )

  scenario("OPS-03 a query asks for a group, for states and for a text, in the payload only when it says so", () =>
    Effect.gen(function* () {
      yield* store([
        { fingerprint: "v1-a", exceptionClass: "CardDeclined", message: "4711", key: "anna", value: "blue" },
        { fingerprint: "v1-b", exceptionClass: "Down", replays: 3 },
        { fingerprint: "v1-a", exceptionClass: "Down", owner: "shipping" }
      ])
      assert.deepStrictEqual(yield* pages({ fingerprint: "v1-a" }), ["0@2", "0@0"])
      assert.deepStrictEqual(yield* pages({ states: ["exhausted", "foreign"] }), ["0@2", "0@1"])
      assert.deepStrictEqual(yield* pages({ text: "carddec" }), ["0@0"])
      for (const text of ["4711", "ANNA", "Blue"]) {
        assert.deepStrictEqual(yield* pages({ text }), [], text)
        assert.deepStrictEqual(yield* pages({ text, searchesPayload: true }), ["0@0"], text)
      }
    })
  )

  scenario("OPS-03 a page of a query that few meet reads 5000 dead letters at most, and the next one goes on", () =>
    Effect.gen(function* () {
      const sketches: Array<Sketch> = Array.from({ length: 12_000 }, () => ({ fingerprint: "v1-b" }))
      sketches[10] = { fingerprint: "v1-a" }
      yield* store(sketches)
      const first = yield* page({ fingerprint: "v1-a" })
      assert.deepStrictEqual(positions(first), [])
      assert.isDefined(first.next)
      assert.deepStrictEqual(yield* pages({ fingerprint: "v1-a" }), ["0@10"])
    })
  )

  scenario("OPS-03 a cursor of no page of this topic is refused; one stays valid when partitions are added", () =>
    Effect.gen(function* () {
      const memory = yield* store([{ millis: 10 }, { millis: 20 }], [{ millis: 15 }])
      const { next = "" } = yield* page({ limit: 1 })
      assert.strictEqual(next, "1.1")
      for (const before of ["1.1.0", "3.1", "1.2"]) {
        const refused = yield* Effect.flip(page({ before }))
        assert.include(refused.message, `before is ${before}, expected 'next' of the page before`)
      }
      const admin = yield* memory.broker.admin
      yield* admin.createPartitions("orders.DLT", 4)
      yield* memory.append("orders.DLT", 3, [letter({ millis: 30 })])
      assert.deepStrictEqual(positions(yield* page({ before: next })), ["3@0", "1@0", "0@0"])
      const second = yield* page({ before: next, limit: 1 })
      assert.deepStrictEqual(positions(yield* page({ before: second.next! })), ["1@0", "0@0"])
    }).pipe(Effect.scoped)
  )

  scenario("OPS-03 a cursor that leaves a partition out hides none of its dead letters", () =>
    Effect.gen(function* () {
      yield* store([{ millis: 10 }, { millis: 20 }], [{ millis: 15 }])
      assert.deepStrictEqual(positions(yield* page({ before: "1" })), ["1@0", "0@0"])
    })
  )

  scenario("OPS-03 a query that cannot be is refused with what is allowed", () =>
    Effect.gen(function* () {
      const refusals: ReadonlyArray<readonly [DeadLetterList.Query, string]> = [
        [{ limit: 0 }, "limit is 0, expected a whole number from 1 to 500"],
        [{ limit: Number.NaN }, "limit is NaN"],
        [{ before: "1.x" }, "before is 1.x, expected 'next' of the page before"],
        [{ before: "1.".repeat(1_000) }, "before is a text of 2000 characters, expected"],
        [{ text: "" }, "text is empty"],
        [{ fingerprint: "x" }, "fingerprint is x"],
        [{ states: ["open" as never] }, 'states is ["open"]']
      ]
      for (const [query, message] of refusals) {
        const refused = yield* Effect.flip(page(query))
        assert.include(refused.message, message)
      }
      assert.deepStrictEqual((yield* page()).letters, [])
    })
  )

  it("OPS-03 all pages together have each dead letter once, in the order of its partition, whatever times they have", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.nat(20), { maxLength: 12 }), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 1, max: 7 }),
        (times, limit) =>
          runScenario(
            Effect.gen(function* () {
              yield* store(...times.map((partition) => partition.map((millis) => ({ millis }))))
              const all = yield* pages({ limit })
              for (const [partition, letters] of times.entries()) {
                const own = all.filter((position) => position.startsWith(`${partition}@`))
                assert.deepStrictEqual(own, letters.map((_, offset) => `${partition}@${offset}`).reverse())
              }
              assert.strictEqual(all.length, times.flat().length)
            })
          )
      ),
      { numRuns: 60 }
    ))
})
