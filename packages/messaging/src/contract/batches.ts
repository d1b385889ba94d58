/** Outcomes: handlers of batches. */
import * as EventBusError from "@eventbus/core/EventBusError"
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import type { ReceivedMessage } from "../Message.ts"
import * as MessageConsumer from "../MessageConsumer.ts"
import type { Topic } from "../Topic.ts"
import {
  Away,
  eventually,
  lettersOf,
  type Order,
  type Outcome,
  order,
  orders,
  producer,
  quickly,
  runs,
  unique
} from "./harness.ts"

/** Runs a consumer of batches. The lists of ids that its handler got are noted. */
const consumeBatches = <E>(
  topic: Topic<Order>,
  handle: (messages: ReadonlyArray<ReceivedMessage<Order>>) => Effect.Effect<unknown, E | EventBusError.BatchProcessing>
) =>
  Effect.gen(function* () {
    const groupId = unique("group")
    const batches: Array<ReadonlyArray<string>> = []
    yield* runs(
      MessageConsumer.makeBatch({
        ...{ topics: [topic], groupId, name: groupId, concurrency: 1, maxMessages: 5, retry: quickly },
        handleBatch: (messages) =>
          Effect.suspend(() => {
            batches.push(messages.map(({ payload }) => payload.id))
            return handle(messages)
          })
      })
    )
    return batches
  })

const sent = Array.from({ length: 12 }, (_, index) => `${index}`)

const sendAll = (topic: Topic<Order>) =>
  Effect.gen(function* () {
    const { send } = yield* producer
    yield* Effect.forEach(sent, (id) => send(order(id), topic, "k"), { discard: true })
  })

export const batches: ReadonlyArray<Outcome> = [
  {
    title: "MSG-05 a handler of batches gets all messages, in lists of one to maxMessages",
    run: Effect.gen(function* () {
      const topic = yield* orders
      yield* sendAll(topic)
      const got = yield* consumeBatches(topic, () => Effect.void)
      yield* sendAll(topic)
      yield* eventually(() => assert.isAtLeast(got.flat().length, sent.length))
      assert.isTrue(
        got.every((list) => list.length >= 1 && list.length <= 5),
        JSON.stringify(got)
      )
    })
  },
  {
    title: "MSG-05 BatchProcessing says which message failed: it alone is tried again and dead-lettered",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const got = yield* consumeBatches(topic, (messages) => {
        const index = messages.findIndex(({ payload }) => payload.id === "3")
        const error = new Away({ detail: "3 fails" })
        return index < 0 ? Effect.void : Effect.fail(EventBusError.BatchProcessing.these([{ index, error }]))
      })
      yield* sendAll(topic)
      const [letter] = yield* lettersOf(topic, 1)
      assert.deepInclude(letter!.headers, { "exception-class": "Away", "retry-count": "2" })
      yield* eventually(() =>
        assert.deepStrictEqual(
          sent.filter((id) => !got.flat().includes(id)),
          []
        )
      )
      const again = got.flat().filter((id, index) => got.flat().indexOf(id) !== index)
      assert.deepStrictEqual(new Set(again), new Set(["3"]))
    })
  },
  {
    title:
      "MSG-05 after a failure without an index the messages come one by one, and only those that fail are dead-lettered",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const got = yield* consumeBatches(topic, (messages) =>
        messages.some(({ payload }) => payload.id === "3") ? Effect.fail(new Away({ detail: "3 fails" })) : Effect.void
      )
      yield* sendAll(topic)
      const letters = yield* lettersOf(topic, 1)
      assert.include(new TextDecoder().decode(letters[0]!.body ?? undefined), `"id":"3"`)
      yield* eventually(() =>
        assert.deepStrictEqual(
          sent.filter((id) => !got.flat().includes(id)),
          []
        )
      )
    })
  }
]
