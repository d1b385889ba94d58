/** The publisher on a channel that a test answers for. */
import { EventEmitter } from "node:events"
import { assert, describe, it } from "@effect/vitest"
import type { ChannelModel, ConfirmChannel } from "amqplib"
import { Effect, Exit, Fiber } from "effect"
import * as Failures from "../src/internal/failures.ts"
import { type Outgoing, Publisher, ticksOfLimit } from "../src/internal/publisher.ts"

type Confirm = (error: unknown) => void

/** A channel that notes what is published. */
const fakeChannel = () => {
  const written: Array<{ readonly id: string; readonly confirm: Confirm }> = []
  const events = new EventEmitter()
  const publish = (_: string, __: string, ___: Buffer, { messageId }: Outgoing["options"], confirm: Confirm) =>
    written.push({ id: messageId, confirm }) > 0
  return { written, events, channel: Object.assign(events, { publish }) as unknown as ConfirmChannel }
}

const model = {} as ChannelModel

const toQueue = (id: string): Outgoing => ({
  ...{ exchange: "", routingKey: "queue", content: Buffer.alloc(0) },
  options: { messageId: id }
})

const ids = (written: ReadonlyArray<{ readonly id: string }>) => written.map(({ id }) => id)

const silence = Failures.failure("NotConfirmed", "silence")

const start = Effect.fnUntraced(function* (publisher: Publisher, ...names: ReadonlyArray<string>) {
  const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
  for (const name of names)
    fibers.push(yield* Effect.forkChild(publisher.publish(toQueue(name)), { startImmediately: true }))
  return fibers
})

describe("the publisher", () => {
  it.effect("publishes what is not confirmed again on the next channel, in its order and before later messages", () =>
    Effect.gen(function* () {
      const publisher = new Publisher(3, () => silence)
      const [first, second] = [fakeChannel(), fakeChannel()]
      const fibers = yield* start(publisher, "early")
      publisher.connected(model, first.channel)
      fibers.push(...(yield* start(publisher, "a", "b", "over the limit")))
      assert.deepStrictEqual(ids(first.written), ["early", "a", "b"])
      first.written[1]!.confirm(null)
      assert.deepStrictEqual(ids(first.written), ["early", "a", "b", "over the limit"])
      publisher.disconnected(undefined)
      for (const { confirm } of first.written) confirm(new Error("channel closed"))
      fibers.push(...(yield* start(publisher, "later")))
      publisher.connected(model, second.channel)
      assert.deepStrictEqual(ids(second.written), ["early", "b", "over the limit"])
      for (let index = 0; index < 4; index++) second.written[index]!.confirm(null)
      assert.deepStrictEqual(ids(second.written), ["early", "b", "over the limit", "later"])
      for (const fiber of fibers) assert.isTrue(Exit.isSuccess(yield* Fiber.await(fiber)))
      yield* publisher.idle
    })
  )

  it.effect("gives up a message after its time limit, whether it was written or not, and never writes it later", () =>
    Effect.gen(function* () {
      const publisher = new Publisher(1, () => silence)
      const { channel, written } = fakeChannel()
      publisher.connected(model, channel)
      const fibers = yield* start(publisher, "written", "waiting")
      for (let tick = 0; tick < ticksOfLimit; tick++) publisher.tick()
      assert.isUndefined(fibers[0]!.pollUnsafe())
      publisher.tick()
      for (const fiber of fibers) assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.fail(silence))
      assert.deepStrictEqual(ids(written), ["written"])
    })
  )

  it.effect(
    "gives up a message on which RabbitMQ closes the channel again and again; a message that comes later goes on",
    () =>
      Effect.gen(function* () {
        const publisher = new Publisher(10, () => silence)
        const refusal = Failures.failure("Refused", "invalid message")
        const [poison] = yield* start(publisher, "poison")
        for (let time = 0; time < 3; time++) {
          assert.isUndefined(poison!.pollUnsafe())
          publisher.connected(model, fakeChannel().channel)
          publisher.disconnected(refusal)
        }
        assert.deepStrictEqual(yield* Fiber.await(poison!), Exit.fail(refusal))
        const { channel, written } = fakeChannel()
        publisher.connected(model, channel)
        const [next] = yield* start(publisher, "next")
        written[0]!.confirm(null)
        assert.isTrue(Exit.isSuccess(yield* Fiber.await(next!)))
      })
  )

  it.effect("C35 finds the message on which RabbitMQ closes the channel, and the others on their way arrive", () =>
    Effect.gen(function* () {
      const publisher = new Publisher(10, () => silence)
      const refusal = Failures.failure("AccessRefused", "write access refused")
      const fibers = yield* start(publisher, "a", "poison", "b", "c")
      for (let channels = 0; channels < 6; channels++) {
        const { channel, written } = fakeChannel()
        publisher.connected(model, channel)
        // As RabbitMQ does: what comes before the poison is confirmed, what comes behind it is not.
        for (let at = 0; at < written.length && written[at]!.id !== "poison"; at++) {
          if (channels > 0) written[at]!.confirm(null)
        }
        if (written.some(({ id }) => id === "poison")) publisher.disconnected(refusal)
        else break
      }
      const [a, poison, b, c] = yield* Effect.forEach(fibers, Fiber.await)
      for (const exit of [a, b, c]) assert.isTrue(Exit.isSuccess(exit!))
      assert.deepStrictEqual(poison, Exit.fail(refusal))
    })
  )

  it.effect("a returned message fails, and so does one that is refused", () =>
    Effect.gen(function* () {
      const publisher = new Publisher(10, () => silence)
      const { channel, events, written } = fakeChannel()
      publisher.connected(model, channel)
      const fibers = yield* start(publisher, "returned", "kept", "refused")
      events.emit("return", { fields: { exchange: "" }, properties: { messageId: "returned" } })
      written[0]!.confirm(null)
      written[1]!.confirm(null)
      written[2]!.confirm(new Error("message nacked"))
      const reasons: Array<unknown> = []
      for (const fiber of fibers)
        reasons.push(
          yield* Effect.match(Fiber.join(fiber), {
            onSuccess: () => "kept",
            onFailure: (error) => Reflect.get(error as object, "reason")
          })
        )
      assert.deepStrictEqual(reasons, ["Unroutable", "kept", "QueueFull"])
    })
  )

  it.effect("fails what is on its way when it is closed, and everything later", () =>
    Effect.gen(function* () {
      const publisher = new Publisher(10, () => silence)
      const closed = Failures.failure("Unreachable", "closed")
      const [waiting] = yield* start(publisher, "waiting")
      publisher.close(closed)
      assert.deepStrictEqual(yield* Fiber.await(waiting!), Exit.fail(closed))
      assert.strictEqual(yield* Effect.flip(publisher.publish(toQueue("later"))), closed)
    })
  )
})
