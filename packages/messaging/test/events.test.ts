import { assert, describe, it } from "@effect/vitest"
import { Publisher } from "@eventbus/core"
import {
  BaseEvent,
  EventHandler,
  EventPublisher,
  EventTopic,
  EventType,
  MessageBroker,
  MessageBrokerFactory,
  MessageConsumer
} from "@eventbus/messaging"
import { DeadLetters } from "@eventbus/messaging/MessagingContract"
import { VirtualClock } from "@eventbus/testkit"
import { BigDecimal, Context, Effect, Layer, Logger, References, Schema } from "effect"
import { eventually } from "./eventually.ts"
import * as Memory from "./memory.ts"

const passwordChanged = EventType.make("PasswordChanged", Schema.Struct({ email: Schema.String }))
const welcome = EventType.make("WelcomeEvent", Schema.Struct({ firstName: Schema.String }))
const charged = EventType.make("TeamCharged", Schema.Struct({ amount: Schema.BigDecimal }))
const users = EventTopic.make("users", [passwordChanged, welcome, charged])

/** The program of a test: a listener that notes what its handlers get. */
const listening = (notes: Array<string>, more: Layer.Layer<never> = Layer.empty) => {
  const note = (what: string) => Effect.sync(() => void notes.push(what))
  const listener = EventHandler.consumer(
    users,
    [
      EventHandler.make(passwordChanged, ({ email }, { correlationId, eventSource, eventTimestamp }) =>
        note(`${email} ${correlationId} ${eventSource} ${eventTimestamp}`)
      ),
      EventHandler.make(welcome, ({ firstName }) => note(firstName)),
      EventHandler.make(charged, ({ amount }) => note(BigDecimal.format(amount)))
    ],
    { groupId: "user-events-group", concurrency: 1 }
  )
  return MessageConsumer.layer(listener).pipe(
    Layer.provideMerge(Factory),
    Layer.provideMerge(Publishers),
    Layer.provideMerge(Memory.layer()),
    Layer.provideMerge(Layer.merge(VirtualClock.layer, more))
  )
}

const Factory = Layer.unwrap(
  Effect.map(MessageBroker.MessageBroker, (broker) =>
    MessageBrokerFactory.layer({ brokers: [Layer.succeed(MessageBroker.MessageBroker, broker)] })
  )
)
const Publishers = Publisher.layer()

const declared = Effect.flatMap(MessageBroker.MessageBroker, ({ declareTopics }) =>
  declareTopics([{ name: "users", partitions: 1 }])
)

/** A message as another publisher sends it: raw bytes and headers. */
const sendRaw = (value: string, headers: Readonly<Record<string, string>>, key = "corr-1") =>
  Publisher.make({ topic: "users" }).publish({
    ...{ key: new TextEncoder().encode(key), value: new TextEncoder().encode(value), headers, timestamp: 12_345 }
  })

describe("events", () => {
  it.effect(
    "MSG-26 MSG-29 MSG-30 an event has its type as header, its correlation id as key, its payload as value",
    () => {
      const notes: Array<string> = []
      return Effect.gen(function* () {
        yield* declared
        const event = yield* BaseEvent.make(
          passwordChanged,
          { email: "a@b.c" },
          { eventSource: "ChangePassword", correlationId: "c-1" }
        )
        assert.deepStrictEqual(Object.keys(event.metadata).toSorted(), [
          "correlationId",
          "eventSource",
          "eventTimestamp",
          "eventType"
        ])
        const other = yield* BaseEvent.make(welcome, { firstName: "Ann" }, { eventSource: "Signup" })
        assert.match(other.metadata.correlationId, /^[0-9a-f]{8}-[0-9a-f-]{27}$/)
        const result = yield* EventPublisher.publishEvent(users, event)
        yield* EventPublisher.to(users)(other)
        assert.deepInclude(result, { success: true, topic: "users", partition: 0, offset: 0n })
        yield* eventually(() => assert.strictEqual(notes.length, 2))
        assert.deepStrictEqual(notes, [`a@b.c c-1 ChangePassword ${event.metadata.eventTimestamp}`, "Ann"])
        const record = yield* Memory.record("users", 0n)
        assert.deepStrictEqual([record.key, record.value], ["c-1", '{"email":"a@b.c"}'])
        assert.include(record.headers, { "event-type": "PasswordChanged" })
      }).pipe(Effect.provide(listening(notes)))
    }
  )

  it.effect(
    "MSG-31 ruling 66 the suffix Event is optional, in the message and in the handler; an untyped payload is converted",
    () => {
      const notes: Array<string> = []
      return Effect.gen(function* () {
        yield* declared
        yield* sendRaw('{"email":"x","more":1}', { "event-type": "PasswordChangedEvent" })
        yield* sendRaw('{"firstName":"Bob"}', { "event-type": " Welcome " })
        yield* eventually(() => assert.strictEqual(notes.length, 2))
        assert.deepStrictEqual(notes, ["x corr-1  12345", "Bob"])
      }).pipe(Effect.provide(listening(notes)))
    }
  )

  it.effect(
    "MSG-31 ruling 66 an unknown type and a missing one are dead-lettered at once, never acknowledged silently",
    () => {
      const notes: Array<string> = []
      return Effect.gen(function* () {
        yield* declared
        yield* sendRaw("{}", { "event-type": "Nobody" })
        yield* sendRaw("{}", {})
        yield* sendRaw('{"firstName":"next"}', { "event-type": "WelcomeEvent" })
        yield* eventually(() => assert.deepStrictEqual(notes, ["next"]))
        const { of } = yield* DeadLetters
        const letters = yield* of("users")
        assert.deepStrictEqual(
          letters.map(({ headers }) => [headers["exception-message"], headers["retry-count"]]),
          ["is 'Nobody', which is no type of this topic", "is missing"].map((found) => [
            `event cannot decode the record: header event-type ${found}; its types are PasswordChanged, WelcomeEvent, TeamCharged`,
            "0"
          ])
        )
      }).pipe(Effect.provide(listening(notes)))
    }
  )

  it.effect("decimals stay exact on their way", () => {
    const notes: Array<string> = []
    return Effect.gen(function* () {
      yield* declared
      const amount = BigDecimal.fromStringUnsafe("12345678901234567890.10")
      yield* EventPublisher.publishEvent(users, yield* BaseEvent.make(charged, { amount }, { eventSource: "x" }))
      yield* eventually(() => assert.deepStrictEqual(notes, ["12345678901234567890.1"]))
    }).pipe(Effect.provide(listening(notes)))
  })

  it.effect("MSG-30 the log says type, correlation id and topic of an event; a failure is logged and raised", () => {
    const lines: Array<string> = []
    const Log = Logger.layer([
      Logger.make(({ message, fiber }) => {
        const annotations = Object.entries(Context.get(fiber.context, References.CurrentLogAnnotations))
        lines.push(
          `${String([message].flat()[0])} ${annotations.map(([key, value]) => `${key}=${String(value)}`).join(" ")}`
        )
      })
    ])
    return Effect.gen(function* () {
      yield* declared
      const event = yield* BaseEvent.make(
        welcome,
        { firstName: "Ann" },
        { eventSource: "Signup", correlationId: "c-9" }
      )
      yield* EventPublisher.publishEvent(users, event)
      const wrong = { ...event, payload: { firstName: 1 as unknown as string } }
      const error = yield* Effect.flip(EventPublisher.publishEvent(users, wrong))
      assert.strictEqual(error._tag, "MessagingException")
      assert.match(error.message, /^Failed to send message [0-9a-f-]{36} to topic users via KAFKA$/)
      assert.include(lines, "Event published eventType=WelcomeEvent correlationId=c-9 topic=users")
      assert.isTrue(lines.some((line) => line.startsWith("Event not published: Failed to send")))
    }).pipe(Effect.provide(listening([], Log)))
  })

  it("MSG-28 one map of handlers by type; two handlers of one type, and a type without a handler, are refused", () => {
    const one = EventHandler.make(welcome, () => Effect.void)
    const two = EventHandler.make(EventType.make("Welcome", Schema.String), () => Effect.void)
    assert.strictEqual(EventHandler.registry([one]).get("Welcome"), EventHandler.registry([one]).get("WelcomeEvent"))
    assert.throws(() => EventHandler.registry([one, two]), /two for WelcomeEvent/)
    assert.throws(() => EventTopic.make("t", [welcome, EventType.make("Welcome", Schema.String)]), /WelcomeEvent twice/)
    // @ts-expect-error PasswordChanged and TeamCharged have no handler.
    EventHandler.consumer(users, [one], { groupId: "g" })
    // @ts-expect-error The payload is of another type.
    assert.isDefined(BaseEvent.make(welcome, { email: "x" }, { eventSource: "s" }))
  })

  it.effect("MSG-28 an event without a handler is an UnknownEventType, which is not retryable", () =>
    Effect.gen(function* () {
      const all = EventHandler.registry([EventHandler.make(welcome, () => Effect.void)])
      const event = yield* BaseEvent.make(passwordChanged, { email: "x" }, { eventSource: "s" })
      const error = yield* Effect.flip(EventHandler.dispatch(all, event))
      assert.deepInclude(error, { _tag: "UnknownEventType", eventType: "PasswordChanged", retryable: false })
    })
  )
})
