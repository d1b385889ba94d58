/** Services of a domain that publish and consume, on the producer and the consumer of the cluster in memory. */
import { assert, describe, it } from "@effect/vitest"
import { Binding, Broker, type BrokerError, type ConsumerRecord, RetryPolicy, Serde, TypeId } from "@eventbus/core"
import { DeadLetters, MemoryBroker, TestBus } from "@eventbus/testkit"
import { Context, Effect, Layer, Result, Schema } from "effect"
import { TestClock } from "effect/testing"

const Email = Schema.Struct({ to: Schema.String, priority: Schema.Literals(["NORMAL", "HIGH"]) })
const typeName = "com.extractor.unraveldocs.EmailNotificationMessage"
const messages = TypeId.serde({ [typeName]: Serde.json(Email) })
const topic = "unraveldocs-emails"

/** As in a program: all that it knows of Kafka is the port. */
class EmailMessageProducerService extends Context.Service<
  EmailMessageProducerService,
  {
    readonly queueEmail: (to: string) => Effect.Effect<ConsumerRecord.RecordMetadata, BrokerError.BrokerError>
  }
>()("EmailMessageProducerService") {
  static readonly layer = Layer.effect(
    EmailMessageProducerService,
    Effect.map(
      Effect.flatMap(Broker.Broker, (broker) => broker.producer()),
      (producer) => ({
        queueEmail: (to) => {
          const message = { _tag: typeName, value: { to, priority: "NORMAL" } } as const
          const value = Result.getOrThrow(messages.encode(message))
          return producer.send({ topic, key: new TextEncoder().encode(to), value, headers: messages.headers(message) })
        }
      })
    )
  )
}

class Mailbox extends Context.Service<Mailbox, { readonly sent: Array<string>; isFull: boolean }>()("Mailbox") {
  static readonly layer = Layer.sync(Mailbox, () => ({ sent: [], isFull: false }))
}

const mailer = Binding.make("mailer", {
  topic,
  groupId: "mailer",
  value: messages,
  retry: RetryPolicy.tiered({ blocking: { maxAttempts: 1 }, tiers: [{ delay: "1 minute", maxAttempts: 1 }] }),
  onError: () => undefined,
  handler: ({ value: { value } }) =>
    Effect.flatMap(Mailbox, (mailbox) =>
      mailbox.isFull ? Effect.fail("full" as const) : Effect.sync(() => mailbox.sent.push(value.to))
    )
})

const World = EmailMessageProducerService.layer.pipe(
  Layer.provideMerge(TestBus.layer([mailer], { partitions: 3 })),
  Layer.provideMerge(Mailbox.layer)
)

describe("domain services", () => {
  it.effect(
    "TST-10 publish and consume without a broker: a queued record arrives in time, and a refusal reaches the caller",
    () =>
      Effect.gen(function* () {
        const { queueEmail } = yield* EmailMessageProducerService
        const mailbox = yield* Mailbox
        const bus = yield* TestBus.TestBus
        const metadata = yield* queueEmail("ann")
        assert.strictEqual(metadata.topic, topic)
        yield* bus.settled
        assert.deepStrictEqual(mailbox.sent, ["ann"])
        yield* bus.fail(TestBus.nextProduce)
        assert.strictEqual((yield* Effect.flip(queueEmail("bob")))._tag, "BrokerUnavailable")
        mailbox.isFull = true
        yield* queueEmail("eve")
        yield* TestClock.adjust("30 seconds")
        mailbox.isFull = false
        yield* TestClock.adjust("31 seconds")
        yield* bus.settled
        assert.deepStrictEqual(mailbox.sent, ["ann", "eve"])
        yield* DeadLetters.expectNone(topic)
      }).pipe(Effect.provide(World))
  )

  it.effect("TST-10 the producer alone: the log holds what a service publishes, with key, headers and bytes", () =>
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      yield* memory.createTopic(topic)
      const { queueEmail } = yield* EmailMessageProducerService
      yield* queueEmail("ann")
      const [record] = yield* memory.log(topic, 0)
      assert.deepStrictEqual(record?.key, new TextEncoder().encode("ann"))
      assert.deepStrictEqual(record?.headers, [TypeId.header(typeName)])
      assert.deepStrictEqual(JSON.parse(new TextDecoder().decode(record?.value ?? undefined)), {
        to: "ann",
        priority: "NORMAL"
      })
    }).pipe(Effect.provide(EmailMessageProducerService.layer.pipe(Layer.provideMerge(MemoryBroker.layer()))))
  )
})
