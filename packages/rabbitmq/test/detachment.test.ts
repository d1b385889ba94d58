import { assert, describe, it } from "@effect/vitest"
import type { ChannelModel } from "amqplib"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { untilDetached } from "../src/internal/detachment.ts"
import type { Session } from "../src/internal/session.ts"

/** A connection on which the queue answers with these numbers. */
const modelOf = (queue: { messageCount: number; consumerCount: number }): ChannelModel => {
  const channel = { on: () => {}, close: async () => {}, checkQueue: async () => ({ queue: "q", ...queue }) }
  return { createChannel: async () => channel } as unknown as ChannelModel
}

/** Whether a session with these counts is taken for detached within a minute. */
const isDetached = Effect.fnUntraced(function* (
  queue: { messageCount: number; consumerCount: number },
  counts: { delivered: number; settled: number }
) {
  const session = { counts } as unknown as Session
  const fiber = yield* Effect.forkChild(untilDetached(modelOf(queue), session, [{ queue: "q" } as never]))
  for (let second = 0; second < 60; second++) {
    yield* TestClock.adjust("1 second")
    yield* Effect.promise(() => new Promise(setImmediate))
  }
  const isOver = fiber.pollUnsafe() !== undefined
  yield* Fiber.interrupt(fiber)
  return isOver
})

describe("a consumer whose queue delivers nothing", () => {
  it.effect("is detached when RabbitMQ knows no consumer, or keeps messages from one that has nothing to do", () =>
    Effect.gen(function* () {
      const idle = { delivered: 5, settled: 5 }
      assert.isTrue(yield* isDetached({ messageCount: 0, consumerCount: 0 }, idle))
      assert.isTrue(yield* isDetached({ messageCount: 1, consumerCount: 2 }, idle))
    })
  )

  it.effect("is not detached when there is nothing to deliver, or its handlers are busy", () =>
    Effect.gen(function* () {
      assert.isFalse(yield* isDetached({ messageCount: 0, consumerCount: 1 }, { delivered: 5, settled: 5 }))
      assert.isFalse(yield* isDetached({ messageCount: 9, consumerCount: 1 }, { delivered: 5, settled: 4 }))
    })
  )
})
