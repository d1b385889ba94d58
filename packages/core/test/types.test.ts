/**
 * Programs that must not compile. Each `@ts-expect-error` is checked by `tsc -b`: it fails when the line below starts to compile.
 */
import { assert, describe, it } from "@effect/vitest"
import {
  Binding,
  type Broker,
  type Delivery,
  type EventBusConnector,
  IdempotencyStore,
  Outcome,
  Publisher,
  Route,
  Serde
} from "@eventbus/core"
import { Context, Effect, Layer, Schema } from "effect"

class Declined extends Schema.TaggedError<Declined>()("Declined", { code: Schema.Int }) {}
class Unreachable extends Schema.TaggedError<Unreachable>()("Unreachable", {}) {}
class Ledger extends Context.Service<Ledger, { readonly book: (value: string) => Effect.Effect<void> }>()(
  "test/Ledger"
) {}

const orders = { topic: "orders", groupId: "billing", value: Serde.string } as const
const charge = (value: string): Effect.Effect<void, Declined | Unreachable> =>
  Effect.fail(value === "" ? new Declined({ code: 1 }) : new Unreachable())

describe("onError", () => {
  it("CARD-10 is required as soon as the handler can fail", () => {
    // @ts-expect-error: the handler can fail, and nothing says what to do then
    Binding.make("orders", { ...orders, handler: ({ value }) => charge(value) })
  })

  it("CARD-10 must have a rule for every error of the handler", () => {
    Binding.make("orders", {
      ...orders,
      handler: ({ value }) => charge(value),
      // @ts-expect-error: no rule for Unreachable
      onError: { Declined: Route.deadLetter("declined") }
    })
  })

  it("CARD-10 a rule gets the error of its tag", () => {
    const binding = Binding.make("orders", {
      ...orders,
      handler: ({ value }) => charge(value),
      onError: {
        Declined: ({ code }) => (code === 1 ? Route.skip : Route.deadLetter()),
        Unreachable: Route.retry
      }
    })
    assert.strictEqual(binding.name, "orders")
  })

  it("CARD-10 a rule answers with a route", () => {
    Binding.make("orders", {
      ...orders,
      handler: ({ value }) => charge(value),
      onError: {
        // @ts-expect-error: a text is no route
        Declined: () => "dead-letter",
        Unreachable: Route.retry
      }
    })
  })

  it("CARD-10 a rule may choose a tier or a wait from its own error only", () => {
    Binding.make("orders", {
      ...orders,
      handler: ({ value }) => charge(value),
      onError: { Declined: ({ code }) => Route.tier(code), Unreachable: () => Route.after("1 minute") }
    })
    Binding.make("orders", {
      ...orders,
      handler: ({ value }) => charge(value),
      onError: {
        Declined: Route.retry,
        // @ts-expect-error: an Unreachable has no code
        Unreachable: ({ code }) => Route.tier(code)
      }
    })
  })

  it("CARD-10 RES-01 a handler that answers with a result, and cannot fail, needs no rule", () => {
    const binding = Binding.make("orders", {
      ...orders,
      handler: ({ value }) => Effect.succeed(value === "" ? Outcome.failure() : Outcome.success)
    })
    assert.strictEqual(binding.name, "orders")
  })

  it("CARD-10 is not required when the handler cannot fail", () => {
    const binding = Binding.make("orders", { ...orders, handler: () => Effect.void })
    assert.strictEqual(binding.name, "orders")
  })
})

describe("requirements", () => {
  const booking = Binding.make("orders", {
    ...orders,
    handler: ({ value }) => Effect.flatMap(Ledger, (ledger) => ledger.book(value))
  })

  it("CARD-10 the binding's layer requires the services of the handler", () => {
    // @ts-expect-error: the layer still needs a Ledger
    const incomplete: Layer.Layer<EventBusConnector.EventBusConnector, unknown, Broker.Broker> = Binding.layer(booking)
    assert.isDefined(incomplete)
  })

  it("CARD-11 given the service, only the broker is left to provide", () => {
    const complete: Layer.Layer<EventBusConnector.EventBusConnector, unknown, Broker.Broker> = Binding.layer(
      booking
    ).pipe(Layer.provide(Layer.succeed(Ledger, { book: () => Effect.void })))
    assert.isDefined(complete)
  })
})

describe("settings", () => {
  it("OFF-01 no option switches auto commit on", () => {
    // @ts-expect-error: offsets are the connector's
    Binding.make("orders", { ...orders, autoCommit: true, handler: () => Effect.void })
  })

  it("BND-05 only acknowledging ack modes exist", () => {
    // @ts-expect-error: there is no such mode
    Binding.make("orders", { ...orders, ackMode: "AUTO", handler: () => Effect.void })
  })

  it("BND-01 topic and groupId have no default", () => {
    // @ts-expect-error: no groupId
    Binding.make("orders", { topic: "orders", value: Serde.string, handler: () => Effect.void })
    // @ts-expect-error: no topic
    Binding.make("orders", { groupId: "billing", value: Serde.string, handler: () => Effect.void })
  })

  it("BND-01 without a serde the handler gets bytes; a handler that expects more needs one", () => {
    const ids = { topic: "orders", groupId: "billing" }
    const length = (value: Uint8Array | null) => Effect.succeed(value?.length)
    const read = [
      Binding.make("orders", { ...ids, handler: ({ value }) => length(value) }),
      Binding.makeTransactional("orders", { ...ids, handler: ({ value }) => length(value) }),
      Binding.makeBatch("orders", {
        ...ids,
        handleBatch: ({ deliveries }) => Effect.forEach(deliveries, ({ value }) => length(value))
      })
    ]
    assert.deepStrictEqual(
      read.map(({ definition }) => definition.serdes.value),
      read.map(() => Serde.bytes)
    )
    const text = (value: string) => Effect.succeed(value.length)
    // @ts-expect-error: bytes are no text
    Binding.make("orders", { ...ids, handler: ({ value }) => text(value) })
    // @ts-expect-error: the handler expects text, and no serde reads it
    Binding.make("orders", {
      ...ids,
      handler: ({ value }: Delivery.Delivery<Uint8Array | null, string>) => text(value)
    })
  })

  it("OFF-19 a binding with an idempotency option requires a store; one without does not", () => {
    const once = Binding.make("orders", { ...orders, idempotency: { lease: "1 minute" }, handler: () => Effect.void })
    // @ts-expect-error: the layer still needs an IdempotencyStore
    const incomplete: Layer.Layer<EventBusConnector.EventBusConnector, unknown, Broker.Broker> = Binding.layer(once)
    const complete: Layer.Layer<EventBusConnector.EventBusConnector, unknown, Broker.Broker> = Binding.layer(once).pipe(
      Layer.provide(IdempotencyStore.layerMemory())
    )
    const none: Layer.Layer<EventBusConnector.EventBusConnector, unknown, Broker.Broker> = Binding.layer(
      Binding.make("orders", { ...orders, handler: () => Effect.void })
    )
    assert.isDefined([incomplete, complete, none])
  })

  it("OFF-19 the key function has the record's types, and an empty object means the defaults", () => {
    const byContent = Binding.make("orders", {
      ...orders,
      idempotency: { key: ({ value }) => value.toUpperCase() },
      handler: () => Effect.void
    })
    const byDefault = Binding.make("orders", { ...orders, idempotency: {}, handler: () => Effect.void })
    for (const once of [byContent, byDefault]) {
      // @ts-expect-error: the layer still needs an IdempotencyStore
      const incomplete: Layer.Layer<EventBusConnector.EventBusConnector, unknown, Broker.Broker> = Binding.layer(once)
      assert.isDefined(incomplete)
    }
    // @ts-expect-error: a key is text
    Binding.make("orders", { ...orders, idempotency: { key: () => 1 }, handler: () => Effect.void })
  })

  it("CB-09 the layer also requires the services of a breaker's probe", () => {
    const probe = Effect.flatMap(Ledger, (ledger) => ledger.book("probe"))
    const probed = Binding.make("orders", { ...orders, circuitBreaker: { probe }, handler: () => Effect.void })
    // @ts-expect-error: the layer still needs a Ledger
    const incomplete: Layer.Layer<EventBusConnector.EventBusConnector, unknown, Broker.Broker> = Binding.layer(probed)
    assert.isDefined(incomplete)
  })
})

describe("publishers", () => {
  class Order extends Schema.Class<Order>("Order")({ id: Schema.String }) {}
  const publisher = Publisher.make({ topic: "orders", key: Serde.string, value: Serde.json(Order) })
  const order = new Order({ id: "o-1" })

  it("RCH-05 a message has the key and the value that the serdes take", () => {
    const fits = publisher.publish({ key: "ann", value: order })
    // @ts-expect-error: the value is no Order
    const wrongValue = () => publisher.publish({ key: "ann", value: { id: 1 } })
    // @ts-expect-error: the serde of the key takes text
    const wrongKey = () => publisher.publish({ key: 7, value: order })
    // @ts-expect-error: without a key the order of an order's records would be lost
    const noKey = () => publisher.publish({ value: order })
    // @ts-expect-error: Serde.json(Order) writes no tombstone
    const tombstone = () => publisher.publish({ key: "ann", value: null })
    // @ts-expect-error: the second of them has no value
    const second = () => publisher.publishAll([{ key: "ann", value: order }, { key: "bob" }])
    assert.isDefined([fits, wrongValue, wrongKey, noKey, tombstone, second])
  })

  it("RCH-05 a key may be left out where its serde takes null", () => {
    const spread = Publisher.make({ topic: "orders", key: Serde.nullable(Serde.string), value: Serde.json(Order) })
    const bytes = Publisher.make({ topic: "orders" })
    assert.isDefined([spread.publish({ value: order }), bytes.publish({ value: new Uint8Array() })])
    // @ts-expect-error: without a serde values are bytes
    assert.isDefined(() => bytes.publish({ value: "text" }))
  })

  it("RCH-05 a partitioner gets the types of the serdes, and publishing requires the producers", () => {
    const placed = Publisher.make({
      topic: "orders",
      key: Serde.string,
      value: Serde.json(Order),
      partitioner: ({ key, value }, partitions) => (key.length + value.id.length) % partitions
    })
    // @ts-expect-error: the producers are missing
    const incomplete: Effect.Effect<unknown, unknown> = placed.publish({ key: "ann", value: order })
    const complete: Effect.Effect<unknown, unknown, Broker.Broker> = placed
      .publish({ key: "ann", value: order })
      .pipe(Effect.provide(Publisher.layer()))
    assert.isDefined([incomplete, complete])
  })

  it("RCH-05 only a transactional handler publishes in a transaction", () => {
    const handler = ({ value }: { readonly value: string }) =>
      Effect.orDie(publisher.inTransaction.publish({ key: value, value: order }))
    type Complete = Layer.Layer<EventBusConnector.EventBusConnector, unknown, Broker.Broker | Publisher.Producers>
    const transactional: Complete = Binding.layer(Binding.makeTransactional("orders", { ...orders, handler }))
    // @ts-expect-error: there is no transaction
    const plain: Complete = Binding.layer(Binding.make("orders", { ...orders, handler }))
    assert.isDefined([transactional, plain])
  })
})

describe("routes", () => {
  it("CLS-02 a rule may choose a tier, or a time", () => {
    const binding = Binding.make("orders", {
      ...orders,
      handler: ({ value }) => charge(value),
      onError: { Declined: ({ code }) => Route.tier(code), Unreachable: Route.after("30 seconds") }
    })
    assert.strictEqual(binding.name, "orders")
  })
})
