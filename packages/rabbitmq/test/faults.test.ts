/** Faults of RabbitMQ, and what a program sees of them. */
import { assert, it } from "@effect/vitest"
import { DeadLetterHeaders } from "@eventbus/messaging"
import { Deferred, Effect, Result } from "effect"
import { alwaysFull, hasControl, memoryAlarm } from "./control.ts"
import { asOperator, depth, letters, onRabbitMq, type TestBroker, testBroker, untilConsumed } from "./rabbit.ts"
import { Hopeless, type Probe, probing, reasonOf, sendOrder, until } from "./rig.ts"

const fails = () => Effect.fail(new Hopeless({ message: "no" }))

/** Starts a consumer and stops it: its queue is there, and nobody reads it. */
const declared = ({ broker, queue }: TestBroker) =>
  Effect.scoped(Effect.andThen(probing(broker), untilConsumed(queue("orders", "g"))))

/** Sends until a message arrives. While the queue is missing, sends fail: nothing is lost without a word. */
const arriving = (broker: Parameters<typeof probing>[0], { calls }: Probe) =>
  Effect.gen(function* () {
    while (calls.length === 0) {
      yield* Effect.ignore(sendOrder(broker, 1))
      yield* Effect.sleep("50 millis")
    }
  }).pipe(Effect.timeout("20 seconds"))

onRabbitMq("a send", () => {
  it.live("fails when no queue takes the message, and succeeds once a group reads the topic", () =>
    Effect.gen(function* () {
      const { broker, prefix } = yield* testBroker()
      const [reason, text] = reasonOf(yield* Effect.flip(sendOrder(broker, 1)))
      assert.strictEqual(reason, "Unroutable")
      assert.include(text, `exchange '${prefix}.orders'`)
      const probe = yield* probing(broker)
      yield* sendOrder(broker, 2)
      yield* until("the message arrives", () => probe.calls.length === 1)
    }).pipe(Effect.scoped)
  )

  it.live("fails when a queue is full, and what succeeded is in the queue", () =>
    Effect.gen(function* () {
      const made = yield* testBroker({ maxQueueLength: 5 })
      const { broker, queue } = made
      yield* declared(made)
      const results = yield* Effect.forEach(Array.from({ length: 40 }), (_, id) => Effect.result(sendOrder(broker, id)))
      const refused = results.filter(Result.isFailure)
      assert.strictEqual(yield* depth(queue("orders", "g")), 40 - refused.length)
      assert.isAbove(refused.length, 20)
      assert.deepStrictEqual(new Set(refused.map(({ failure }) => reasonOf(failure)[0])), new Set(["QueueFull"]))
    }).pipe(Effect.scoped)
  )

  it.live("of a message that AMQP cannot carry fails alone, and says what is too long or reserved", () =>
    Effect.gen(function* () {
      const { broker } = yield* testBroker()
      const probe = yield* probing(broker)
      const wrong = [
        [{ key: "ä".repeat(128) }, "the key, which is the routing key, has 256 bytes"],
        [{ headers: { CC: "orders" } }, "header 'CC' is reserved"],
        [{ headers: { ["n".repeat(256)]: "" } }, "cannot be written in AMQP"],
        [{ headers: { large: "x".repeat(70_000) } }, "exceeds the 65536 byte"]
      ] as const
      const sends = [
        sendOrder(broker, 1),
        ...wrong.map(([given]) => sendOrder(broker, 0, given)),
        sendOrder(broker, 2, { key: "k".repeat(255) })
      ]
      const results = yield* Effect.all(sends.map(Effect.result), { concurrency: "unbounded" })
      assert.deepStrictEqual(
        results.map((result) => (Result.isSuccess(result) ? "sent" : reasonOf(result.failure)[0])),
        ["sent", "Unencodable", "Unencodable", "Unencodable", "Unencodable", "sent"]
      )
      for (const [index, [, text]] of wrong.entries()) {
        const result = results[index + 1]!
        assert.include(Result.isFailure(result) ? reasonOf(result.failure)[1] : "", text)
      }
      yield* until("both others arrive", () => probe.calls.length === 2)
    }).pipe(Effect.scoped)
  )

  it.live.skipIf(!hasControl)(
    "waits while an alarm blocks publishers, fails at its limit, and goes on afterwards",
    () =>
      Effect.gen(function* () {
        const { broker } = yield* testBroker({ sendTimeout: "2 seconds" })
        const probe = yield* probing(broker)
        yield* sendOrder(broker, 1)
        yield* until("the first message arrives", () => probe.calls.length === 1)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* memoryAlarm
            const [reason, text] = reasonOf(yield* Effect.flip(sendOrder(broker, 2)))
            assert.strictEqual(reason, "NotConfirmed")
            assert.include(text, "it takes no messages now (low on memory)")
            const { status, details } = yield* broker.health
            assert.deepStrictEqual([status, details["blocked"]], ["UP", "low on memory"])
          })
        )
        yield* sendOrder(broker, 3)
        yield* until("a later message arrives", () => probe.calls.some(({ payload }) => payload.id === 3))
      }).pipe(Effect.scoped)
  )
})

onRabbitMq("a queue", () => {
  it.live("that is deleted under its consumer is declared again", () =>
    Effect.gen(function* () {
      const { broker, queue } = yield* testBroker()
      const probe = yield* probing(broker)
      yield* asOperator((channel) => channel.deleteQueue(queue("orders", "g")))
      yield* arriving(broker, probe)
    }).pipe(Effect.scoped)
  )

  it.live("with other settings stops its consumer from starting, and the error names what differs", () =>
    Effect.gen(function* () {
      const { broker, queue } = yield* testBroker()
      const name = queue("orders", "g")
      yield* asOperator((channel) => channel.assertQueue(name, { arguments: { "x-queue-type": "quorum" } }))
      const error = yield* Effect.flip(Effect.scoped(probing(broker)))
      assert.strictEqual(error.message, "Failed to receive message from topic orders via RABBITMQ")
      assert.isFalse(error.retryable)
      const [reason, text] = reasonOf(error)
      assert.strictEqual(reason, "DeclaredOtherwise")
      assert.match(
        text,
        new RegExp(
          `^queue '${name}' in virtual host '.+' exists with other settings: 'x-dead-letter-exchange' is none there, and '' here`
        )
      )
    }).pipe(Effect.scoped)
  )

  it.live("that is declared with other settings under its consumer is used again once it is right", () =>
    Effect.gen(function* () {
      const { broker, queue } = yield* testBroker()
      const name = queue("orders", "g")
      const probe = yield* probing(broker)
      yield* asOperator(async (channel) => {
        await channel.deleteQueue(name)
        await channel.assertQueue(name, { arguments: { "x-queue-type": "quorum" } })
      })
      yield* Effect.sleep("500 millis")
      yield* asOperator((channel) => channel.deleteQueue(name))
      yield* arriving(broker, probe)
    }).pipe(Effect.scoped)
  )
})

onRabbitMq("a message of another client", () => {
  const nested = { list: [1, "two", { three: true }], at: { "!": "timestamp", value: 1_700_000_000 } }
  const table = {
    ...{ text: "ä", whole: 42, decimal: 1.5, flag: false, nothing: null, bytes: Buffer.from([0xff, 1]) },
    ...{
      at: { "!": "timestamp", value: 1_700_000_000 },
      price: { "!": "decimal", value: { places: 2, digits: 5 } },
      nested
    }
  }

  it.live("has its header table as text, and its dead letter keeps the types of the values", () =>
    Effect.gen(function* () {
      const { broker, prefix, queue } = yield* testBroker()
      const probe = yield* probing(broker, { handle: () => Effect.fail(new Hopeless({ message: "no" })) })
      yield* untilConsumed(queue("orders", "g"))
      yield* asOperator(async (channel) => {
        const options = {
          headers: table,
          timestamp: 1_700_000_000,
          messageId: "m-1",
          expiration: 60_000,
          type: "order"
        }
        channel.publish(`${prefix}.orders`, "k", Buffer.from('{"id":1}'), options)
      })
      yield* until("the message is dead-lettered", () => probe.letters.length === 1)
      const [{ id, key, timestamp, headers } = assert.fail()] = probe.calls
      assert.deepStrictEqual([id, key, timestamp], ["m-1", "k", 1_700_000_000_000])
      assert.deepStrictEqual(headers, {
        ...{ text: "ä", whole: "42", decimal: "1.5", flag: "false", nothing: "", bytes: "/wE=" },
        ...{ at: "2023-11-14T22:13:20.000Z", price: "0.05" },
        nested: '{"list":[1,"two",{"three":true}],"at":"2023-11-14T22:13:20.000Z"}'
      })
      const [letter = assert.fail()] = yield* letters(`${prefix}.orders-dlq`)
      assert.deepInclude(letter.properties.headers, table)
      assert.deepStrictEqual(
        [letter.content.toString(), letter.properties.messageId, letter.properties.type, letter.properties.expiration],
        ['{"id":1}', "m-1", "order", undefined]
      )
    }).pipe(Effect.scoped)
  )

  it.live("with a payload of another type is dead-lettered with its bytes, and without a try", () =>
    Effect.gen(function* () {
      const { broker, prefix, queue } = yield* testBroker()
      const probe = yield* probing(broker, { retry: { maxAttempts: 3, initialInterval: 50 } })
      yield* untilConsumed(queue("orders", "g"))
      const bodies = [Buffer.from([0xff, 0, 1]), Buffer.from(""), Buffer.from('{"id":"one"}'), Buffer.from("[]")]
      yield* asOperator(async (channel) => {
        for (const body of bodies) channel.publish(`${prefix}.orders`, "", body)
      })
      yield* until("all are dead-lettered", () => probe.letters.length === bodies.length)
      assert.strictEqual(probe.calls.length, 0)
      const found = yield* letters(`${prefix}.orders-dlq`)
      assert.sameDeepMembers(
        found.map(({ content }) => content),
        bodies
      )
      const classes = found.map(({ properties }) => properties.headers?.[DeadLetterHeaders.names.exceptionClass])
      assert.deepStrictEqual(new Set(classes), new Set(["DecodeFailure"]))
    }).pipe(Effect.scoped)
  )

  it.live("that came back too often unacknowledged is dead-lettered before it ends one more process", () =>
    Effect.gen(function* () {
      const made = yield* testBroker({ deliveryLimit: 2 })
      const { broker, prefix, queue } = made
      yield* declared(made)
      yield* sendOrder(broker, 1)
      for (let lost = 0; lost < 2; lost++) yield* letters(queue("orders", "g"))
      const probe = yield* probing(broker)
      yield* until("the message is dead-lettered", () => probe.letters.length === 1)
      assert.strictEqual(probe.calls.length, 0)
      const [letter = assert.fail()] = yield* letters(`${prefix}.orders-dlq`)
      const { headers = {} } = letter.properties
      assert.strictEqual(headers[DeadLetterHeaders.names.exceptionClass], "DeliveryLimitReached")
      assert.include(headers[DeadLetterHeaders.names.exceptionMessage], "delivered 2 times and never acknowledged")
    }).pipe(Effect.scoped)
  )
})

onRabbitMq("a dead letter", () => {
  it.live.skipIf(!hasControl)("is confirmed before its message is acknowledged", () =>
    Effect.gen(function* () {
      const made = yield* testBroker()
      const { broker, prefix, queue } = made
      const [source, target] = [queue("orders", "g"), `${prefix}.orders-dlq`]
      yield* declared(made)
      yield* asOperator(async (channel) => {
        for (let count = 0; count < 5; count++) channel.sendToQueue(target, Buffer.from("in the way"))
      })
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* alwaysFull(target)
          yield* Effect.scoped(
            Effect.gen(function* () {
              const probe = yield* probing(broker, { handle: fails })
              yield* sendOrder(broker, 1)
              yield* until("the handler fails", () => probe.calls.length === 1)
              yield* Effect.sleep("1 second")
              assert.deepStrictEqual([probe.calls.length, probe.letters], [1, []])
            })
          )
          // The consumer has stopped: its message was not acknowledged, and is in the queue again.
          assert.strictEqual(yield* depth(source), 1)
          const probe = yield* probing(broker, { handle: fails })
          yield* until("the handler fails again", () => probe.calls.length === 1)
          yield* asOperator((channel) => channel.purgeQueue(target))
          yield* until("the dead letter is confirmed", () => probe.letters.length === 1)
          assert.deepStrictEqual([yield* depth(source), yield* depth(target)], [0, 1])
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live("finds its queue again where that was deleted", () =>
    Effect.gen(function* () {
      const { broker, prefix } = yield* testBroker()
      const go = yield* Deferred.make<void>()
      const probe = yield* probing(broker, {
        handle: () => Effect.andThen(Deferred.await(go), Effect.fail(new Hopeless({ message: "no" })))
      })
      yield* sendOrder(broker, 1)
      yield* until("the handler runs", () => probe.calls.length === 1)
      yield* asOperator((channel) => channel.deleteQueue(`${prefix}.orders-dlq`))
      yield* Deferred.succeed(go, undefined)
      yield* until("the dead letter is confirmed", () => probe.letters.length === 1)
      assert.strictEqual(yield* depth(`${prefix}.orders-dlq`), 1)
    }).pipe(Effect.scoped)
  )
})
