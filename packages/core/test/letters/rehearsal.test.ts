import { assert, describe } from "@effect/vitest"
import {
  Binding,
  CurrentTransaction,
  IdempotencyStore,
  LetterTransform,
  Outcome,
  type Rehearsal,
  RetryPolicy,
  Route,
  Serde
} from "@eventbus/core"
import { Context, Effect, Layer, Metric, Schema, Tracer } from "effect"
import {
  advance,
  append,
  inTime,
  scenario,
  settle,
  start,
  text,
  until,
  valuesOf
} from "../../../../test/scenarios/bus.ts"
import { answers, withoutUnhandled } from "../../../../test/scenarios/hostileAnswers.ts"
import { orders, store } from "./ordersLetters.ts"

class Declined extends Schema.TaggedError<Declined>()("Declined", {}) {}

/** Charges for real, or in a rehearsal for show. */
class Gateway extends Context.Service<Gateway, { readonly charge: (order: string) => Effect.Effect<void, Declined> }>()(
  "test/Gateway"
) {}

const gateway = (charged: Array<string>) =>
  Layer.sync(Gateway, () => ({
    charge: (order) => (order === "bad" ? Effect.fail(new Declined()) : Effect.sync(() => charged.push(order)))
  }))

const charging = Binding.make("orders", {
  ...orders,
  onError: { Declined: Route.deadLetter("declined") },
  handler: ({ value }) => Gateway.use(({ charge }) => charge(value))
})

const all = { all: true } as const

/** Rehearses with a real gateway at hand, which nobody may charge. */
const rehearse = Effect.fnUntraced(function* (
  binding: Binding.Binding<Gateway>,
  selection: Parameters<Effect.Success<ReturnType<typeof Binding.deadLetters>>["rehearse"]>[0] = all,
  options?: Rehearsal.Options
) {
  const charged: Array<string> = []
  const letters = yield* Effect.provide(Binding.deadLetters(binding), gateway(charged))
  const report = yield* inTime(letters.rehearse(selection, options), "1 second")
  assert.deepStrictEqual(charged, [])
  return report
})

const verdicts = ({ letters }: Rehearsal.Report) => letters.map(({ verdict }) => verdict)

const counts = ({ selected, passes, decodes, undecodable, fails, timedOut, skipped }: Rehearsal.Report) =>
  [selected, passes, decodes, undecodable, fails, timedOut, skipped] as const

describe("a rehearsal of dead letters", () => {
  scenario(
    "OPS-05 it says what today's serde, handler and rules would do, and calls the handler in the user's layer alone",
    () =>
      Effect.gen(function* () {
        yield* store([
          { value: "one", fingerprint: "v1-a" },
          { value: "bad", fingerprint: "v1-a" },
          { value: new Uint8Array([0xff]), fingerprint: "v1-b" },
          { value: "gone", owner: "shipping", fingerprint: "v1-a" },
          { value: "lost", originalTopic: "payments", fingerprint: "v1-a" },
          { value: "often", replays: 3, fingerprint: "v1-a" }
        ])
        const rehearsed: Array<string> = []
        const report = yield* rehearse(Binding.rehearsable(charging, gateway(rehearsed)))
        assert.deepStrictEqual(rehearsed, ["one", "often"])
        assert.deepStrictEqual(counts(report), [6, 2, 0, 1, 1, 0, 2])
        assert.deepStrictEqual([report.mode, report.complete, report.exhausted], ["handler", true, 1])
        const [one, bad, broken, foreign, refused] = verdicts(report)
        assert.deepStrictEqual(one, { _tag: "Passes" })
        assert.deepStrictEqual(bad, {
          ...{ _tag: "Fails", exceptionClass: "Declined", message: "" },
          route: Route.deadLetter("declined")
        })
        assert(broken?._tag === "Undecodable")
        assert.strictEqual(broken.value?.serde, "string")
        assert.isUndefined(broken.key)
        assert.deepStrictEqual(foreign, { _tag: "Skipped", because: "foreign" })
        assert.deepStrictEqual(refused, { _tag: "Skipped", because: "refused" })
        assert.deepStrictEqual(
          report.groups.map(({ fingerprint, selected, passes, fails, undecodable, failures }) => [
            ...[fingerprint, selected, passes, fails, undecodable],
            failures.map(({ exceptionClass, count }) => `${count} ${exceptionClass}`)
          ]),
          [
            ["v1-a", 5, 2, 1, 0, ["1 Declined"]],
            ["v1-b", 1, 0, 0, 1, []]
          ]
        )
      })
  )

  scenario("OPS-05 without a layer it decodes and calls no handler, and says so", () =>
    Effect.gen(function* () {
      yield* store([{ value: "bad" }, { value: new Uint8Array([0xff]) }])
      const report = yield* rehearse(charging)
      assert.strictEqual(report.mode, "decode")
      assert.deepStrictEqual(counts(report), [2, 0, 1, 1, 0, 0, 0])
    })
  )

  scenario("OPS-05 a rehearsal completes no idempotency key: the replay after it handles the record", () =>
    Effect.gen(function* () {
      const handled: Array<string> = []
      const rehearsed: Array<string> = []
      class Sink extends Context.Service<Sink, (value: string) => void>()("test/Sink") {}
      let isDown = true
      const binding = Binding.make("orders", {
        ...orders,
        idempotency: {},
        handler: ({ value }) =>
          Effect.flatMap(Sink, (sink) => (isDown ? Effect.die(new Error("down")) : Effect.sync(() => sink(value))))
      })
      yield* store([])
      const services = Layer.merge(
        Layer.succeed(Sink, (value) => void handled.push(value)),
        IdempotencyStore.layerMemory()
      )
      yield* Effect.gen(function* () {
        const dryRun = Layer.succeed(Sink, (value: string) => void rehearsed.push(value))
        const app = yield* start(Binding.rehearsable(binding, dryRun))
        yield* append("orders", 0, ["o-1"])
        yield* until(() => app.of("Settled").length > 0, "1 second")
        isDown = false
        const letters = yield* app.connector.deadLetters("orders")
        for (let times = 0; times < 2; times++) {
          const report = yield* inTime(letters.rehearse(all))
          assert.strictEqual(report.passes, 1)
        }
        assert.deepStrictEqual([rehearsed, handled], [["o-1", "o-1"], []])
        assert.strictEqual((yield* inTime(letters.replay(1))).replayed, 1)
        yield* until(() => handled.length > 0, "1 second")
        assert.deepStrictEqual([rehearsed, handled], [["o-1", "o-1"], ["o-1"]])
      }).pipe(Effect.provide(services))
    })
  )

  scenario("OPS-05 nothing of the binding moves: no event, metric, breaker, interceptor, commit or copy", () =>
    Effect.gen(function* () {
      const memory = yield* store([{ value: "one" }, { value: "bad" }, { value: "bad" }])
      let intercepted = 0
      const guarded = Binding.make("orders", {
        ...orders,
        onError: { Declined: Route.retry },
        circuitBreaker: { minimumNumberOfCalls: 1, slidingWindowSize: 1, failureRateThreshold: 1 },
        interceptors: [
          (call) =>
            Effect.andThen(
              Effect.sync(() => intercepted++),
              call
            )
        ],
        handler: ({ value }) => Gateway.use(({ charge }) => charge(value))
      })
      const app = yield* Effect.provide(start(Binding.rehearsable(guarded, gateway([]))), gateway([]))
      const letters = yield* app.connector.deadLetters("orders")
      const seen = Effect.gen(function* () {
        const { breaker } = yield* app.connector.snapshot("orders")
        const metrics = (yield* Metric.snapshot).filter(({ id }) => !id.startsWith("eventbus.dlt.depth"))
        const offsets = yield* Effect.scoped(
          Effect.flatMap(memory.broker.admin, (admin) => admin.topicOffsets("orders.DLT"))
        )
        return { breaker, metrics, events: app.events.length, offsets, main: yield* valuesOf("orders") }
      })
      const before = yield* seen
      const report = yield* inTime(letters.rehearse(all))
      assert.deepStrictEqual(counts(report), [3, 1, 0, 0, 2, 0, 0])
      assert.deepStrictEqual(yield* seen, before)
      assert.strictEqual(intercepted, 0)
    })
  )

  scenario(
    "OPS-05 the handler has no service, tracer or metrics of the program, and its log lines say what they are of",
    () =>
      Effect.gen(function* () {
        yield* store([{ value: "one" }])
        const spans: Array<string> = []
        const tracer = Tracer.make({
          span: (options) => {
            spans.push(options.name)
            return new Tracer.NativeSpan(options)
          }
        })
        const counter = Metric.counter("test.rehearsed")
        const optional: Array<boolean> = []
        const binding = Binding.make("orders", {
          ...orders,
          handler: () =>
            Effect.gen(function* () {
              yield* Metric.update(counter, 1)
              optional.push((yield* Effect.serviceOption(Gateway))._tag === "Some")
            }).pipe(Effect.withSpan("charge"))
        })
        const letters = yield* Binding.deadLetters(Binding.rehearsable(binding, Layer.empty))
        const report = yield* inTime(letters.rehearse(all)).pipe(
          Effect.provideService(Tracer.Tracer, tracer),
          Effect.provide(gateway([]))
        )
        assert.strictEqual(report.passes, 1)
        assert.deepStrictEqual(optional, [false])
        assert.deepStrictEqual(spans, [])
        assert.isFalse((yield* Metric.snapshot).some(({ id }) => id === "test.rehearsed"))
      })
  )

  scenario("OPS-05 a handler of batches gets one record, and a transactional one publishes nothing", () =>
    Effect.gen(function* () {
      yield* store([{ value: "one" }, { value: "two" }])
      const sizes: Array<number> = []
      const batches = Binding.makeBatch("orders", {
        ...orders,
        handleBatch: ({ deliveries }) =>
          Effect.suspend(() => {
            sizes.push(deliveries.length)
            return deliveries[0]!.value === "one" ? Effect.void : Effect.die(new TypeError("two"))
          })
      })
      const ofBatches = yield* Binding.deadLetters(Binding.rehearsable(batches, Layer.empty))
      const batched = yield* inTime(ofBatches.rehearse(all))
      assert.deepStrictEqual(sizes, [1, 1])
      assert.deepStrictEqual(counts(batched), [2, 1, 0, 0, 1, 0, 0])

      const publishing = Binding.makeTransactional("orders", {
        ...orders,
        handler: ({ record }) =>
          Effect.orDie(CurrentTransaction.send({ topic: "orders", key: record.key, value: record.value }))
      })
      const ofTransactions = yield* Binding.deadLetters(Binding.rehearsable(publishing, Layer.empty))
      const report = yield* inTime(ofTransactions.rehearse(all))
      assert.deepStrictEqual([report.passes, report.published], [2, 2])
      assert.deepStrictEqual(yield* valuesOf("orders"), [])
    })
  )

  scenario("OPS-05 every rule has its say: a result, the classifier, the default", () =>
    Effect.gen(function* () {
      yield* store([{ value: "result" }, { value: "classified" }, { value: "defect" }, { value: "interrupted" }])
      const binding = Binding.make("orders", {
        ...orders,
        classifier: ({ message }) => (message === "classified" ? Route.pause : Route.retry),
        handler: ({ value }): Effect.Effect<unknown> =>
          value === "result"
            ? Effect.succeed(Outcome.deadLetter("no such order"))
            : value === "interrupted"
              ? Effect.interrupt
              : Effect.die(new Error(value))
      })
      const letters = yield* Binding.deadLetters(Binding.rehearsable(binding, Layer.empty))
      const report = yield* inTime(letters.rehearse(all))
      assert.deepStrictEqual(
        verdicts(report).map((verdict) => (verdict._tag === "Fails" ? [verdict.exceptionClass, verdict.route] : [])),
        [
          ["DeadLetterResult", Route.deadLetter("no such order")],
          ["Error", Route.pause],
          ["Error", Route.deadLetter()],
          ["Interrupted", Route.deadLetter()]
        ]
      )
    })
  )

  scenario("OPS-05 a route leads to a tier only where the binding has one", () =>
    Effect.gen(function* () {
      yield* store([{ value: "retry" }, { value: "nextTier" }, { value: "second" }, { value: "later" }])
      const tiered = RetryPolicy.tiered({ tiers: ["1 minute"] })
      const routes = Effect.fnUntraced(function* (settings: {
        readonly retry?: RetryPolicy.RetryPolicy
        readonly onExhausted?: "dead-letter" | "halt"
      }) {
        const binding = Binding.make("orders", {
          ...{ ...orders, ...settings },
          classifier: ({ message }) =>
            message === "retry"
              ? Route.retry
              : message === "second"
                ? Route.tier(2)
                : message === "later"
                  ? Route.after("1 hour")
                  : Route.nextTier,
          handler: ({ value }) => Effect.die(new Error(value))
        })
        const letters = yield* Binding.deadLetters(Binding.rehearsable(binding, Layer.empty))
        return verdicts(yield* inTime(letters.rehearse(all))).map((verdict) =>
          verdict._tag === "Fails" ? Route.describe(verdict.route) : verdict._tag
        )
      })
      assert.deepStrictEqual(yield* routes({ retry: tiered }), [
        "attempts in place, then the next tier",
        "the next tier",
        "dead letter topic (the route asks for retry tier 2, and the binding has 1 retry tier)",
        "the first tier that waits 3600000 ms"
      ])
      assert.deepStrictEqual((yield* routes({})).slice(0, 2), ["dead letter topic", "dead letter topic"])
      assert.deepStrictEqual((yield* routes({ onExhausted: "halt" })).slice(0, 2), [
        "pause of the binding",
        "pause of the binding"
      ])
    })
  )

  scenario("OPS-05 OPS-06 with a transform it rehearses the repaired letters, and says which ones would stay", () =>
    Effect.gen(function* () {
      yield* store([{ value: "one" }, { value: "bad" }, { value: "lost" }])
      const handled: Array<string> = []
      const binding = Binding.make("orders", {
        ...orders,
        handler: ({ value }) => Effect.sync(() => handled.push(value)),
        transforms: {
          repair: (letter) =>
            text(letter.value) === "lost"
              ? Effect.fail(new LetterTransform.Skip({ reason: "nobody knows it" }))
              : Effect.succeed({ value: `repaired ${text(letter.value)}` })
        }
      })
      const letters = yield* Binding.deadLetters(Binding.rehearsable(binding, Layer.empty))
      const report = yield* inTime(letters.rehearse(all, { transform: "repair" }))
      assert.deepStrictEqual(handled, ["repaired one", "repaired bad"])
      assert.deepInclude(report, { selected: 3, passes: 2, stays: 1, skipped: 0 })
      assert.deepStrictEqual(verdicts(report)[2], {
        _tag: "Stays",
        reason: "Transform 'repair' skips it: nobody knows it"
      })
      const unknown = yield* inTime(Effect.flip(letters.rehearse(all, { transform: "mend" })))
      assert.deepInclude(unknown, { _tag: "InvalidArgument", argument: "transform", given: "mend", expected: "repair" })
    })
  )

  scenario("OPS-05 a handler that never ends is cut off after 30 seconds, and the next dead letter follows", () =>
    Effect.gen(function* () {
      yield* store([{ value: "hangs" }, { value: "resists" }, { value: "one" }])
      const binding = Binding.make("orders", {
        ...orders,
        handler: ({ value }) =>
          value === "hangs" ? Effect.never : value === "resists" ? Effect.uninterruptible(Effect.never) : Effect.void
      })
      const letters = yield* Binding.deadLetters(Binding.rehearsable(binding, Layer.empty))
      const report = yield* inTime(letters.rehearse(all))
      assert.deepStrictEqual(verdicts(report), [
        { _tag: "TimedOut", millis: 30_000 },
        { _tag: "TimedOut", millis: 30_000 },
        { _tag: "Passes" }
      ])
      const short = yield* Binding.deadLetters(
        Binding.rehearsable(
          Binding.make("orders", { ...orders, maxPollInterval: "10 seconds", handler: () => Effect.never }),
          Layer.empty
        )
      )
      const cut = yield* inTime(short.rehearse({ records: [{ partition: 0, offset: 2n }] }))
      assert.deepStrictEqual(verdicts(cut), [{ _tag: "TimedOut", millis: 7_000 }])
      const bounded = yield* inTime(short.rehearse(all, { timeoutMillis: 12_000 }))
      // The second call has no verdict: it might have ended in time.
      assert.deepStrictEqual([bounded.complete, bounded.selected, bounded.timedOut], [false, 1, 1])
      assert.isAtMost(bounded.tookMillis, 12_500)
      const brief = yield* inTime(letters.rehearse(all, { timeoutMillis: 1_000 }), "500 millis")
      assert.deepInclude(brief, { complete: false, selected: 0, mode: "handler" })
      assert.isAtMost(brief.tookMillis, 1_500)
    })
  )

  scenario("OPS-05 the handler gets the record as a replay would publish it", () =>
    Effect.gen(function* () {
      yield* store([{ value: "one", key: "anna" }])
      const seen: Array<unknown> = []
      const binding = Binding.make("orders", {
        ...orders,
        key: Serde.string,
        handler: (delivery) =>
          Effect.sync(() => {
            const { key, value, idempotencyKey, tier, attempt, bindingName, record, headers } = delivery
            const names = headers.map((header) => header.key)
            seen.push({
              key,
              value,
              idempotencyKey,
              tier,
              attempt,
              bindingName,
              topic: record.topic,
              offset: record.offset
            })
            seen.push(names.includes("x-eventbus-replay-bond"), names.includes("x-eventbus-dlt-reason"))
          })
      })
      const letters = yield* Binding.deadLetters(Binding.rehearsable(binding, Layer.empty))
      assert.strictEqual((yield* inTime(letters.rehearse(all))).passes, 1)
      const expected = {
        ...{ key: "anna", value: "one", idempotencyKey: "default:orders-0-7@5", tier: 0, attempt: 1 },
        ...{ bindingName: "orders", topic: "orders", offset: 7n }
      }
      assert.deepStrictEqual(seen, [expected, true, false])
    })
  )

  scenario("OPS-05 bounds and the list of verdicts keep to what they are given, and the counts are whole", () =>
    Effect.gen(function* () {
      yield* store(Array.from({ length: 5 }, (_, index) => ({ value: `${index}` })))
      const rehearsable = Binding.rehearsable(charging, gateway([]))
      const listed = yield* rehearse(rehearsable, all, { listed: 2 })
      assert.deepStrictEqual([listed.letters.length, listed.passes, listed.complete], [2, 5, true])
      const limited = yield* rehearse(rehearsable, all, { limit: 3 })
      assert.deepStrictEqual([limited.selected, limited.complete], [3, false])
      const whole = yield* rehearse(rehearsable, all, { limit: 5 })
      assert.deepStrictEqual([whole.selected, whole.complete], [5, true])
      for (const options of [{ limit: 0 }, { timeoutMillis: Number.NaN }, { listed: -1 }]) {
        assert.strictEqual((yield* Effect.flip(rehearse(rehearsable, all, options)))._tag, "InvalidArgument")
      }
      assert.strictEqual((yield* Effect.flip(rehearse(rehearsable, {})))._tag, "InvalidArgument")
    })
  )

  scenario(
    "OPS-05 a layer that fails, throws or is never built is a typed failure; each rehearsal builds and releases its own",
    () =>
      Effect.gen(function* () {
        yield* store([{ value: "one" }])
        const failing: ReadonlyArray<Layer.Layer<Gateway, unknown>> = [
          Layer.effect(Gateway, Effect.fail(new Declined())),
          Layer.effect(
            Gateway,
            Effect.suspend((): Effect.Effect<Gateway["Service"]> => {
              throw new Error("boom")
            })
          ),
          Layer.effect(Gateway, Effect.never)
        ]
        const reasons: Array<string> = []
        for (const layer of failing) {
          const failed = yield* Effect.flip(rehearse(Binding.rehearsable(charging, layer)))
          assert(failed._tag === "DryRunLayerFailed")
          reasons.push(failed.reason)
        }
        assert.deepStrictEqual(reasons, ["Declined", "Error: boom", "it was not built within 30 seconds"])

        const lives: Array<string> = []
        const counted = Layer.effect(
          Gateway,
          Effect.acquireRelease(
            Effect.sync(() => {
              lives.push("built")
              return { charge: () => Effect.void }
            }),
            () => Effect.sync(() => lives.push("released"))
          )
        )
        const binding = Binding.rehearsable(charging, counted)
        yield* rehearse(binding)
        yield* rehearse(binding)
        assert.deepStrictEqual(lives, ["built", "released", "built", "released"])
      })
  )

  for (const [name, answer] of Object.entries(answers)) {
    scenario(`OPS-05 ruling 86 a handler that answers with ${name} fails its own rehearsal and nothing else`, () =>
      withoutUnhandled(() =>
        Effect.gen(function* () {
          yield* store([{ value: "bad" }, { value: "one" }])
          const binding = Binding.make("orders", {
            ...orders,
            handler: ({ value }): Effect.Effect<unknown> => (value === "bad" ? (answer() as never) : Effect.void)
          })
          const letters = yield* Binding.deadLetters(Binding.rehearsable(binding, Layer.empty))
          const tags = verdicts(yield* inTime(letters.rehearse(all))).map(({ _tag }) => _tag)
          const isSuccess = /succeeds with a Promise$/.test(name)
          assert.deepStrictEqual(tags, [isSuccess ? "Passes" : "Fails", "Passes"])
        })
      )
    )
  }

  scenario("OPS-05 an interrupted rehearsal ends its handler", () =>
    Effect.gen(function* () {
      yield* store([{ value: "hangs" }])
      let ended = 0
      const binding = Binding.make("orders", {
        ...orders,
        handler: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => ended++))
      })
      const letters = yield* Binding.deadLetters(Binding.rehearsable(binding, Layer.empty))
      const running = yield* Effect.forkChild(letters.rehearse(all), { startImmediately: true })
      yield* settle
      assert.strictEqual(ended, 0)
      running.interruptUnsafe()
      yield* advance(0)
      assert.strictEqual(ended, 1)
    })
  )
})
