import { assert, describe, it } from "@effect/vitest"
import { Configuration, Handler, Handlers } from "@eventbus/config"
import { Broker, EventBusConnector, Serde } from "@eventbus/core"
import { MemoryBroker, TestBus } from "@eventbus/testkit"
import { Context, Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { withOrders } from "../issues.ts"

class Timeout extends Schema.TaggedError<Timeout>()("Timeout", {}) {}
class Rejected extends Schema.TaggedError<Rejected>()("Rejected", {}) {}
class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", {}) {}

const failures = {
  timeout: () => Effect.fail(new Timeout()),
  rejected: () => Effect.fail(new Rejected()),
  unavailable: () => Effect.fail(new Unavailable()),
  defect: () => Effect.die(new TypeError("broken"))
}

const fails = Handler.make({
  value: Serde.json(Schema.Literals(["timeout", "rejected", "unavailable", "defect"])),
  handler: ({ value }): Effect.Effect<void, Timeout | Rejected | Unavailable> => failures[value](),
  errors: {
    Timeout: ["java.net.SocketTimeoutException"],
    Rejected: ["com.enterprise.domain.BusinessRuleViolationException"],
    Unavailable: ["javax.ws.rs.ServiceUnavailableException"]
  }
})

const refusal = Effect.fnUntraced(function* <R>(text: string, handlers: Handlers.Handlers<R>) {
  const configuration = yield* Configuration.parse(text)
  const { issues } = yield* Effect.flip(Configuration.bindings(configuration, handlers))
  return issues.map(({ path, found, allowed }) => `${path}: ${found}; ${allowed}`)
})

describe("handlers", () => {
  it.effect("CLS-07, CLS-08, CLS-13 names of Java classes route the errors that the handler maps them to", () =>
    Effect.gen(function* () {
      const text = withOrders(
        "retry:",
        "  non-retryable-exceptions: [com.enterprise.domain.BusinessRuleViolationException]",
        "  skip-to-tier-mapping: { javax.ws.rs.ServiceUnavailableException: 2 }",
        "  retryable-exceptions: [java.net.SocketTimeoutException]"
      )
      const configuration = yield* Configuration.parse(text)
      const bindings = yield* Configuration.bindings(configuration, Handlers.make({ orders: fails }))
      yield* Effect.gen(function* () {
        const bus = yield* TestBus.TestBus
        const way = Effect.fnUntraced(function* (value: keyof typeof failures) {
          yield* bus.publish("orders", { value })
          yield* TestClock.adjust("30 minutes")
          yield* bus.settled
          const letters = yield* bus.deadLetters("orders")
          const { dltReason, totalAttempts, tierHistory } = letters.at(-1)!
          return [dltReason, totalAttempts, tierHistory.map(({ tier }) => tier)]
        })
        assert.deepStrictEqual(yield* way("rejected"), ["NON_RETRYABLE", 1, [0]])
        assert.deepStrictEqual(yield* way("timeout"), ["RETRIES_EXHAUSTED", 30, [0, 1, 2, 3]])
        assert.deepStrictEqual(yield* way("unavailable"), ["RETRIES_EXHAUSTED", 21, [0, 2, 3]])
      }).pipe(Effect.provide(TestBus.layer(bindings)))
    })
  )

  it.effect("CLS-13 a name that no error of the handler has is refused, with the names that exist", () =>
    Effect.gen(function* () {
      const text = withOrders(
        "retry:",
        "  retryable-exceptions: [java.net.SocketTimeoutExeption, /deadlock/i, TypeError]",
        "  skip-to-tier-mapping: { org.example.Gone: 1 }"
      )
      const issues = yield* refusal(text, Handlers.make({ orders: fails }))
      assert.lengthOf(issues, 2)
      assert.include(
        issues[0]!,
        'eventbus.bindings.orders.retry.retryableExceptions[0]: "java.net.SocketTimeoutExeption"'
      )
      assert.include(issues[0]!, "did you mean java.net.SocketTimeoutException?")
      assert.include(issues[1]!, 'eventbus.bindings.orders.retry.skipToTierMapping["org.example.Gone"]')
      assert.include(issues[1]!, "Timeout, java.net.SocketTimeoutException, Rejected,")
      // A handler that does not say what it fails with takes any name.
      yield* Configuration.bindings(yield* Configuration.parse(text), Handlers.make({ orders: () => Effect.void }))
    })
  )

  it.effect("handlers that are missing or do not fit are named, all at once", () =>
    Effect.gen(function* () {
      const text = `${withOrders("handler: chrage", "dlt: { strategy: CUSTOM }")}
    audit: { topic: audit, group-id: audit, handler: charge, dlt: { strategy: ALERT_AND_STORE } }
    bulk: { topic: bulk, group-id: bulk }`
      const charge = () => Effect.void
      const bulk = Handler.batch({ value: Serde.string, handleBatch: () => Effect.void })
      assert.deepStrictEqual(yield* refusal(text, Handlers.make({ charge, bulk })), [
        'eventbus.bindings.orders.handler: "chrage"; one of the handlers charge, bulk; did you mean charge?',
        "eventbus.bindings.audit.deadLetter.strategy: ALERT_AND_STORE; a strategy without code, or onDeadLetter in handler 'charge'",
        "eventbus.bindings.bulk.listenerType: SINGLE; BATCH: handler 'bulk' takes whole batches"
      ])
    })
  )

  it.effect("CFG-20 nothing is started when one of several bindings has no handler", () =>
    Effect.gen(function* () {
      const configuration = yield* Configuration.parse(`${withOrders()}\n    audit: { topic: audit, group-id: audit }`)
      const connected: Array<string> = []
      const NoBroker = Layer.succeed(
        Broker.Broker,
        new Proxy({} as Broker.Broker["Service"], { get: (_, name) => connected.push(String(name)) })
      )
      const handlers = Handlers.make({ orders: () => Effect.void })
      const error = yield* Effect.flip(
        Effect.scoped(Layer.build(Configuration.layer(configuration, handlers).pipe(Layer.provide(NoBroker))))
      )
      assert.strictEqual(error._tag, "ConfigurationValidation")
      assert.deepStrictEqual(connected, [])
    })
  )

  it.effect("the layer registers all bindings, and requires what their handlers require", () => {
    class Seen extends Context.Service<Seen, Array<string>>()("Seen") {}
    const handlers = Handlers.make({
      orders: Handler.make({
        value: Serde.string,
        handler: ({ value }) => Seen.use((seen) => Effect.sync(() => seen.push(value)))
      }),
      audit: ({ record }) => Seen.use((seen) => Effect.sync(() => seen.push(`${record.topic}@${record.offset}`)))
    })
    // @ts-expect-error a promise is no Effect
    const none: Handlers.Handlers<never> = Handlers.make({ orders: () => Promise.resolve() })
    assert.deepStrictEqual(Array.from(none.byName.keys()), ["orders"])
    const seen: Array<string> = []
    return Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic("orders")
      yield* memory.append("orders", 0, [{ value: new TextEncoder().encode("o-1") }])
      const text = `${withOrders()}\n    audit: { topic: orders, group-id: audit, naming: perGroup, auto-startup: false }`
      const configuration = yield* Configuration.parse(text)
      const Main = Configuration.layer(configuration, handlers).pipe(Layer.provideMerge(Layer.succeed(Seen, seen)))
      yield* Effect.gen(function* () {
        const connector = yield* EventBusConnector.EventBusConnector
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(seen, ["o-1"])
        yield* connector.start("audit")
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(seen, ["o-1", "orders@0"])
        const names = (yield* connector.listBindings).map(({ name, state }) => `${name} ${state}`)
        assert.deepStrictEqual(names, ["orders RUNNING", "audit RUNNING"])
      }).pipe(Effect.provide(Main))
    }).pipe(Effect.provide(MemoryBroker.layer()))
  })

  it.effect("CFG-15 a breaker with automatic pause always has a lifecycle manager, and needs only its keys", () =>
    Effect.gen(function* () {
      const breaker = "circuit-breaker: { enabled: true, sliding-window-size: 2, minimum-number-of-calls: 2 }"
      const configuration = yield* Configuration.parse(withOrders("retry: { tiers: [] }", breaker))
      const bindings = yield* Configuration.bindings(configuration, Handlers.make({ orders: fails }))
      yield* Effect.gen(function* () {
        const bus = yield* TestBus.TestBus
        for (let record = 0; record < 3; record++) yield* bus.publish("orders", { value: "timeout" })
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual(yield* bus.state("orders"), "PAUSED")
      }).pipe(Effect.provide(TestBus.layer(bindings)))
    })
  )
})
