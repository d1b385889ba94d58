import { assert, describe, it } from "@effect/vitest"
import type { Channel, Message } from "amqplib"
import * as fc from "fast-check"
import { Acknowledgements } from "../src/internal/acknowledgements.ts"

/** A channel that acknowledges as RabbitMQ does: it refuses a frame whose tag is no longer unacknowledged. */
class Broker {
  readonly unacknowledged: Set<number>
  frames = 0
  constructor(deliveries: number) {
    this.unacknowledged = new Set(Array.from({ length: deliveries }, (_, index) => index + 1))
  }
  readonly channel = {
    ack: ({ fields: { deliveryTag } }: Message, allUpTo = false) => {
      this.frames++
      assert.isTrue(this.unacknowledged.has(deliveryTag), `unknown delivery tag ${deliveryTag}`)
      for (const tag of this.unacknowledged)
        if (tag === deliveryTag || (allUpTo && tag < deliveryTag)) this.unacknowledged.delete(tag)
    }
  } as unknown as Channel
}

describe("acknowledgements", () => {
  it("whatever the order: each settled delivery is acknowledged once, and no other one", () => {
    const steps = fc.array(
      fc.record({ tag: fc.integer({ min: 1, max: 30 }), kind: fc.constantFrom("settle", "reject", "flush") })
    )
    fc.assert(
      fc.property(steps, (steps) => {
        const broker = new Broker(30)
        const acknowledgements = new Acknowledgements(broker.channel)
        const settled = new Set<number>()
        for (const { tag, kind } of steps) {
          if (kind === "flush") acknowledgements.flush()
          if (kind === "flush" || settled.has(tag)) continue
          settled.add(tag)
          if (kind === "settle") acknowledgements.settle(tag)
          else {
            // A rejection is a frame of its own, which settles the delivery at once.
            broker.unacknowledged.delete(tag)
            acknowledgements.rejected(tag)
          }
        }
        acknowledgements.flush()
        assert.deepStrictEqual(
          [...broker.unacknowledged],
          Array.from({ length: 30 }, (_, index) => index + 1).filter((tag) => !settled.has(tag))
        )
      })
    )
  })

  it("one frame acknowledges all that were settled in order", () => {
    const broker = new Broker(200)
    const acknowledgements = new Acknowledgements(broker.channel)
    for (let tag = 1; tag <= 200; tag++) acknowledgements.settle(tag)
    acknowledgements.flush()
    assert.deepStrictEqual([broker.unacknowledged.size, broker.frames], [0, 1])
  })
})
