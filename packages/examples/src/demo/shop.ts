/**
 * The demo's application: an order arrives, its card is charged, and the payment is written to the topic `payments`.
 */
import { Binding, Broker, RetryPolicy, Route, Serde } from "@eventbus/core"
import { Context, Effect, Layer, Schema } from "effect"
import type { Arrival } from "./checkout.ts"
import { Cluster, type Names } from "./cluster.ts"

/** The answer of the card's bank to a charge. */
const Card = Schema.Literals(["good", "busy", "slow", "declined", "unreachable", "cursed"])

export const Order = Schema.Struct({
  id: Schema.String,
  amount: Schema.Int.check(Schema.isGreaterThan(0)),
  card: Card
})
export type Order = typeof Order.Type

/** Whether the bank charges the card while it is up. Orders with any other card become dead letters, with or without an outage. */
export const isChargeable = ({ card }: Order): boolean => card === "good" || card === "busy" || card === "slow"

class GatewayDown extends Schema.TaggedError<GatewayDown>()("GatewayDown", { order: Schema.String }) {
  override get message(): string {
    return `the bank does not answer about ${this.order}`
  }
}

class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", { order: Schema.String }) {
  override get message(): string {
    return `the bank declined ${this.order}`
  }
}

export class Payments extends Context.Service<
  Payments,
  {
    /** Charges the order and writes its payment with key `id`. */
    readonly charge: (order: Order, id: string) => Effect.Effect<void, GatewayDown | CardDeclined>
    /** Sets whether the bank answers at all. */
    readonly setDown: (isDown: boolean) => Effect.Effect<void>
    /** From now on the bank charges unreachable cards, too. */
    readonly reachAll: Effect.Effect<void>
  }
>()("@eventbus/examples/demo/Payments") {
  static readonly layer: Layer.Layer<Payments, never, Broker.Broker | Cluster> = Layer.effect(
    Payments,
    Effect.gen(function* () {
      const broker = yield* Broker.Broker
      const { names } = yield* Cluster
      const producer = yield* Effect.orDie(broker.producer())
      const bank = makeBank(2)
      return Payments.of({
        ...controls(bank),
        charge: Effect.fnUntraced(function* (order, id) {
          yield* bank.ask(order)
          const payment = { topic: names.payments, key: encoder.encode(id), value: encoder.encode(order.id) }
          yield* Effect.orDie(producer.send(payment))
        })
      })
    })
  )

  /** For rehearsals after `reachAll`: the bank answers as it would answer a replay, and no payment is written. */
  static readonly dryRun: Layer.Layer<Payments> = Layer.effect(
    Payments,
    Effect.gen(function* () {
      // A replay tries again while the bank is busy; a rehearsal has one attempt.
      const bank = makeBank(0)
      const payments = Payments.of({ ...controls(bank), charge: (order) => bank.ask(order) })
      yield* payments.reachAll
      return payments
    })
  )
}

const controls = (bank: ReturnType<typeof makeBank>) => ({
  setDown: (isDown: boolean) => Effect.sync(() => bank.setDown(isDown)),
  reachAll: Effect.sync(bank.reachAll)
})

export const binding = (names: Names): Binding.Binding<Payments> =>
  Binding.make("orders", {
    topic: names.orders,
    groupId: names.group,
    value: Serde.json(Order),
    handler: ({ value, deduplicationKey }) => Payments.use((payments) => payments.charge(value, deduplicationKey)),
    retry: RetryPolicy.tiered({
      blocking: { maxAttempts: 3, initialBackoff: "100 millis" },
      tiers: retryDelaysMillis.map((delay) => ({ delay, maxAttempts: 1 }))
    }),
    circuitBreaker: {
      slidingWindowSize: 20,
      minimumNumberOfCalls: 10,
      // An order with a card that no bank charges comes back from the retry topics. The breaker must not take it for a bank that is down.
      failureRateThreshold: 80,
      waitDurationInOpenState: "2 seconds",
      permittedNumberOfCallsInHalfOpenState: 3
    },
    onError: {
      GatewayDown: Route.retry,
      CardDeclined: Route.deadLetter("card declined")
    },
    // A short heartbeat, so that the group learns of a new member quickly.
    heartbeatInterval: "500 millis",
    sessionTimeout: "10 seconds"
  })

/** Delays of the retry topics, the first tier first: short, so that a demo can wait for them. */
export const retryDelaysMillis: ReadonlyArray<number> = [2_000, 4_000]

/** A bank whose answer depends on the card, unless it is down. A busy bank refuses the first requests for an order, as many as `refusals` says. */
const makeBank = (refusals: number) => {
  const asked = new Map<string, number>()
  let isDown = false
  let reachesAll = false
  const ask = ({ id, amount, card }: Order): Effect.Effect<void, GatewayDown | CardDeclined> => {
    // A bug does not wait for the bank.
    if (card === "cursed") return Effect.die(new TypeError(`cannot read property 'limit' of undefined (${id})`))
    if (isDown) return Effect.delay(new GatewayDown({ order: id }), "20 millis")
    const times = (asked.get(id) ?? 0) + 1
    asked.set(id, times)
    const answer = Effect.sleep(card === "slow" ? "2500 millis" : 20 + (amount % 40))
    switch (card) {
      case "good":
      case "slow":
        return answer
      case "busy":
        return times <= refusals ? Effect.andThen(answer, new GatewayDown({ order: id })) : answer
      case "declined":
        return Effect.andThen(answer, new CardDeclined({ order: id }))
      case "unreachable":
        return reachesAll ? answer : Effect.andThen(answer, new GatewayDown({ order: id }))
    }
  }
  return {
    ask,
    setDown: (down: boolean) => {
      isDown = down
    },
    reachAll: () => {
      reachesAll = true
    }
  }
}

/** Order number `index` as it arrives: most orders are good, and some cannot be decoded. */
export const arrival = (index: number, card: Order["card"] = cardOf(index)): Arrival => {
  const order: Order = { id: `o-${index}`, amount: 1 + ((index * 37) % 500), card }
  const text = JSON.stringify(order)
  const body = card === "good" && index % 29 === 5 ? (unreadable[index % unreadable.length] ?? "") : text
  return { id: order.id, customer: `customer-${(index * 7) % 60}`, body }
}

const cardOf = (index: number): Order["card"] => {
  if (index % 17 === 3) return "busy"
  if (index % 31 === 8) return "declined"
  if (index % 61 === 20) return "unreachable"
  if (index % 97 === 30) return "cursed"
  return "good"
}

const unreadable = ['{"id":"o-', '{"id":"o-1","amount":"twelve","card":"good"}', "", "<order/>"]

const encoder = new TextEncoder()
