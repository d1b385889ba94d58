/**
 * Helpers of the outcomes: unique names, consumers that note what they get, and waits that work on virtual and on real clocks.
 */
import * as Serde from "@eventbus/core/Serde"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { assert } from "vitest"
import type { Headers, ReceivedMessage } from "../Message.ts"
import { type Capability, MessageBroker } from "../MessageBroker.ts"
import * as MessageBrokerFactory from "../MessageBrokerFactory.ts"
import * as MessageConsumer from "../MessageConsumer.ts"
import type { MessageProducer } from "../MessageProducer.ts"
import * as Topic from "../Topic.ts"

/** A dead letter as the broker stores it. */
export interface StoredLetter {
  /** Its headers, as text. */
  readonly headers: Headers
  /** The bytes of its payload. */
  readonly body: Uint8Array | null
}

/** The dead letters of a topic, the oldest first. */
export class DeadLetters extends Context.Service<
  DeadLetters,
  {
    /** Empty while there are none. */
    readonly of: (topic: string) => Effect.Effect<ReadonlyArray<StoredLetter>>
  }
>()("@eventbus/messaging/contract/DeadLetters") {}

/** The services of an outcome. */
export type Services = MessageBroker | DeadLetters | Scope.Scope

/** One outcome of the contract: a title, and a program that dies when the outcome does not hold. */
export interface Outcome {
  /** The claim, as the title of its test. */
  readonly title: string
  /** The capability without which a broker need not show the outcome. Default: every broker must. */
  readonly needs?: Capability
  /** The program. */
  readonly run: Effect.Effect<void, unknown, Services>
}

/** The payload of the outcomes. */
export const Order = Schema.Struct({ id: Schema.String, cents: Schema.Int })
/** A payload. */
export type Order = typeof Order.Type

/** A name that is unique, also on a shared broker. */
export const unique = (what: string): string => `contract-${what}-${globalThis.crypto.randomUUID()}`

/** A declared topic of orders with a unique name, and one partition where there are any. */
export const orders: Effect.Effect<Topic.Topic<Order>, unknown, MessageBroker> = Effect.gen(function* () {
  const topic = Topic.json(unique("orders"), Order)
  const broker = yield* MessageBroker
  const names = [topic.name, `${topic.name}-retry`, `${topic.name}-retry-2`, `${topic.name}-dlq`]
  yield* broker.declareTopics(names.map((name) => ({ name, partitions: 1 })))
  return topic
})

/** The same topic for texts, to send what is no order. */
export const asTexts = ({ name }: Topic.Topic<Order>): Topic.Topic<string> => Topic.make(name, Serde.string)

/** The producer of the broker. */
export const producer: Effect.Effect<MessageProducer, unknown, MessageBroker | Scope.Scope> = Effect.gen(function* () {
  const broker = yield* MessageBroker
  const factory = yield* factoryOf(broker)
  return yield* factory.getProducer(broker.type)
})

const factoryOf = (broker: MessageBroker["Service"]) =>
  Effect.map(
    Layer.build(MessageBrokerFactory.layer({ brokers: [Layer.succeed(MessageBroker, broker)] })),
    Context.get(MessageBrokerFactory.MessageBrokerFactory)
  )

/** The messages that a consumer got, with the time of each call in milliseconds. */
export interface Probe {
  /** Calls of the handler, in order. */
  readonly calls: ReadonlyArray<{ readonly message: ReceivedMessage<Order>; readonly atMillis: number }>
  /** Topics of dead letters that the broker told of. */
  readonly told: ReadonlyArray<string>
  /** Waits until the handler was called so often. */
  readonly awaits: (calls: number) => Effect.Effect<void>
  /** Stops the consumer as the end of its layer does. */
  readonly stop: Effect.Effect<void>
}

/** Settings of the consumer of an outcome. */
export type Settings<E> = Partial<Omit<MessageConsumer.Settings<Order, E>, "topics">>

/** Runs a consumer whose handler notes each call, then does `handle`. It stops with the outcome. */
export const consume = <E = never>(
  topics: Topic.Topic<Order> | readonly [Topic.Topic<Order>, ...ReadonlyArray<Topic.Topic<Order>>],
  handle: (message: ReceivedMessage<Order>) => Effect.Effect<unknown, E> = () => Effect.void,
  settings: Settings<E> = {}
): Effect.Effect<Probe, unknown, MessageBroker | Scope.Scope> =>
  Effect.gen(function* () {
    const calls: Array<Probe["calls"][number]> = []
    const groupId = unique("group")
    return yield* runs(
      MessageConsumer.make({
        ...{ groupId, name: groupId, concurrency: 1, ...settings },
        topics: "name" in topics ? [topics] : topics,
        handle: (message) =>
          Effect.andThen(
            Effect.map(Clock.currentTimeMillis, (atMillis) => calls.push({ message, atMillis })),
            Effect.suspend(() => handle(message))
          )
      }),
      calls
    )
  })

/** Runs a consumer until its scope, or the outcome, ends. */
export const runs = <E>(
  consumer: MessageConsumer.MessageConsumer<Order, E>,
  calls: Array<Probe["calls"][number]> = []
): Effect.Effect<Probe, unknown, MessageBroker | Scope.Scope> =>
  Effect.gen(function* () {
    const broker = yield* MessageBroker
    const scope = yield* Effect.flatMap(Effect.scope, (outer) => Scope.fork(outer))
    const told: Array<string> = []
    yield* Scope.provide(broker.consume(consumer, { onDeadLetter: (topic) => told.push(topic) }), scope)
    const awaits = (count: number) =>
      eventually(() =>
        assert.isAtLeast(
          calls.length,
          count,
          `calls of the handler: ${JSON.stringify(calls.map(({ message }) => message.payload))}`
        )
      )
    return { calls, told, awaits, stop: Scope.close(scope, Exit.void) }
  })

/** The dead letters of a topic, once there are so many. */
export const lettersOf = (topic: Topic.Topic<Order>, count: number) =>
  Effect.gen(function* () {
    const { of } = yield* DeadLetters
    return yield* eventuallySucceeds(
      Effect.map(of(topic.name), (letters) => {
        assert.strictEqual(letters.length, count, "dead letters")
        return letters
      })
    )
  })

const longestWaitMillis = 30_000

/** Waits until an assertion holds. */
export const eventually = (assertion: () => void): Effect.Effect<void> => eventuallySucceeds(Effect.sync(assertion))

/** Repeats an effect until it neither fails nor dies. When it never does, its last failure is reported. */
const eventuallySucceeds = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const endMillis = (yield* Clock.currentTimeMillis) + longestWaitMillis
    while (true) {
      const exit = yield* Effect.exit(effect)
      if (Exit.isSuccess(exit) || Cause.hasInterrupts(exit.cause)) return yield* exit
      if ((yield* Clock.currentTimeMillis) >= endMillis) return yield* exit
      yield* Effect.sleep("25 millis")
    }
  })

/** Long enough for an unwanted delivery to come. */
export const quietTime = Effect.sleep("1500 millis")

/** An order. */
export const order = (id: string, cents = 100): Order => ({ id, cents })

/** The ids of the orders that a probe got, in order. */
export const ids = ({ calls }: Probe): ReadonlyArray<string> => calls.map(({ message }) => message.payload.id)

/** An error that another try may cure. */
export class Away extends Schema.TaggedError<Away>()("Away", { detail: Schema.String }) {
  /** Another try may help. */
  readonly retryable = true
  override get message(): string {
    return this.detail
  }
}

/** An error that no other try cures. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", { detail: Schema.String }) {
  /** Another try cannot help. */
  readonly retryable = false
  override get message(): string {
    return this.detail
  }
}

/** Short waits, so that outcomes on a real clock take no longer than they need. */
export const quickly = { maxAttempts: 3, initialInterval: 200, multiplier: 2, maxInterval: 1_000 } as const
