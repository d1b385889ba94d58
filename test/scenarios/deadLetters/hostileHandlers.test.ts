/** A custom handler of dead letters that returns no Effect, goes on with something else, or never ends: its letter has failed, and the next one follows (ruling 86). */
import { assert, describe } from "@effect/vitest"
import { Binding, DeadLetter, RetryPolicy, Route, Serde } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Effect } from "effect"
import { type App, advance, append, bytes, inTime, now, orders, scenario, start, text } from "../bus.ts"
import { answers, withoutUnhandled } from "../hostileAnswers.ts"

const dlt = "orders.DLT"

/** A binding whose custom handler answers so for the first letter, and handles the one behind it. */
const handledBy = Effect.fnUntraced(function* (bad: () => unknown, settings: object = {}) {
  const memory = yield* MemoryBroker.MemoryBroker
  for (const topic of ["orders", dlt]) yield* memory.createTopic(topic)
  yield* memory.append(
    dlt,
    0,
    ["bad", "behind"].map((value) => ({ key: null, value: bytes(value) }))
  )
  const got: Array<string | null> = []
  const deadLetter = DeadLetter.custom(({ value }) => {
    got.push(text(value))
    return text(value) === "bad" ? (bad() as Effect.Effect<void>) : Effect.void
  })
  const app = yield* start(Binding.make("orders", { ...orders, ...settings, deadLetter, handler: () => Effect.void }))
  yield* advance("10 seconds")
  const states = Effect.gen(function* () {
    const commands = yield* app.connector.deadLetters("orders")
    const letters = yield* inTime(commands.list({ partition: 0, count: 9 }))
    return letters.map(({ state }) => state)
  })
  const reasons = Effect.map(app.connector.health, (health) => health.reasons.map(({ _tag }) => _tag))
  return { app, got, states, reasons }
})

describe("DLT-20 ruling 86 a custom handler of dead letters that answers with something else than its type says", () => {
  for (const [answer, bad] of Object.entries(answers)) {
    scenario(answer, () =>
      withoutUnhandled(() =>
        Effect.gen(function* () {
          const { app, got, states, reasons } = yield* handledBy(bad)
          assert.deepStrictEqual(got, ["bad", "behind"])
          const isSuccess = answer === "an effect that succeeds with a Promise"
          assert.deepStrictEqual(yield* states, [isSuccess ? "dealt-with" : "failed", "dealt-with"])
          assert.lengthOf(app.of("LetterHandlerFailed"), isSuccess ? 0 : 1)
          assert.deepStrictEqual(yield* reasons, [])
        })
      )
    )
  }

  scenario("the failure says what was returned", () =>
    withoutUnhandled(() =>
      Effect.gen(function* () {
        const { app } = yield* handledBy(answers["an async function that rejects"]!)
        const [{ failure } = assert.fail("no event")] = app.of("LetterHandlerFailed")
        assert.strictEqual(failure.message, "the dead letter handler returned a Promise; an Effect is expected")
      })
    )
  )
})

describe("DLT-20 LIF-21 ruling 86 a custom handler of dead letters that never ends", () => {
  const hanging = { "can be interrupted": Effect.never, "resists interruption": Effect.uninterruptible(Effect.never) }
  for (const [name, never] of Object.entries(hanging)) {
    scenario(`${name}: health names it, it has failed after the processing budget, and the next one follows`, () =>
      Effect.gen(function* () {
        const { app, got, states, reasons } = yield* handledBy(() => never, { maxPollInterval: "10 minutes" })
        assert.deepStrictEqual([got, yield* reasons], [["bad"], []])
        yield* advance("1 minute")
        assert.deepStrictEqual([got, yield* reasons], [["bad"], ["DeadLetterStrategyFailing"]])
        yield* advance("340 seconds")
        assert.deepStrictEqual(got, ["bad"])
        yield* advance("30 seconds")
        assert.deepStrictEqual(got, ["bad", "behind"])
        const [{ failure } = assert.fail("no event")] = app.of("LetterHandlerFailed")
        assert.strictEqual(failure.className, "LetterTimedOut")
        assert.deepStrictEqual(yield* states, ["failed", "dealt-with"])
        assert.deepStrictEqual(yield* reasons, [])
      })
    )

    scenario(`${name}: a stop does not wait for it, and health names nothing any more`, () =>
      Effect.gen(function* () {
        const { app, reasons } = yield* handledBy(() => never, { shutdownTimeout: "5 seconds" })
        yield* advance("70 seconds")
        assert.deepStrictEqual(yield* reasons, ["DeadLetterStrategyFailing"])
        yield* inTime(app.connector.stop("orders"), "1 second")
        assert.deepStrictEqual(yield* reasons, [])
        yield* app.connector.start("orders")
        yield* advance("5 seconds")
        assert.deepStrictEqual(yield* reasons, [])
      })
    )
  }
})

describe("DLT-18 LIF-21 ruling 86 an alert handler that resists interruption", () => {
  const stop = (app: App) => app.connector.stop("orders")
  for (const [how, end] of Object.entries({ stop, close: (app: App) => app.close }))
    scenario(
      `${how} is over within its bound, each alert has failed after its timeout, and the log names what is left behind`,
      () =>
        withoutUnhandled((lines) =>
          Effect.gen(function* () {
            const memory = yield* MemoryBroker.MemoryBroker
            for (const topic of ["orders", dlt]) yield* memory.createTopic(topic)
            let calls = 0
            const deadLetter = DeadLetter.alertAndStore(
              () => {
                calls++
                return Effect.uninterruptible(Effect.never)
              },
              { alertTimeout: "3 seconds" }
            )
            const settings = { ...orders, shutdownTimeout: "5 seconds" as const, retry: RetryPolicy.none, deadLetter }
            const handler = () => Effect.fail("declined")
            const app = yield* start(
              Binding.make("orders", { ...settings, onError: () => Route.deadLetter(), handler })
            )
            yield* append("orders", 0, ["a", "b", "c"])
            for (let second = 0; second < 5; second++) yield* advance("1 second")
            assert.lengthOf(app.of("AlertFailed"), 1)
            assert.strictEqual(calls, 2)
            const began = yield* now
            yield* inTime(end(app), "1 second")
            assert.isAtMost((yield* now) - began, 7_000)
            assert.lengthOf(
              lines.filter((line) => line.startsWith("the alert handler resists its interruption")),
              1
            )
          })
        )
    )
})

describe("SER-06 LIF-21 ruling 86 a preparation of a serde that resists interruption", () => {
  scenario("a stop is over within its bound, and the log names what is left behind", () =>
    withoutUnhandled((lines) =>
      Effect.gen(function* () {
        const memory = yield* MemoryBroker.MemoryBroker
        yield* memory.createTopic("orders")
        const value = { ...Serde.string, prepare: () => Effect.uninterruptible(Effect.never) }
        const settings = { ...orders, value, shutdownTimeout: "5 seconds" as const }
        const app = yield* start(Binding.make("orders", { ...settings, handler: () => Effect.void }))
        yield* append("orders", 0, ["a"])
        yield* advance("1 second")
        const began = yield* now
        yield* inTime(app.connector.stop("orders"), "1 second")
        assert.isAtMost((yield* now) - began, 3_000)
        assert.include(lines.join("\n"), "prepare resists its interruption")
      })
    )
  )
})
