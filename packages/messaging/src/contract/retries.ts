/** Outcomes: tries, waits and dead letters. */
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import * as Message from "../Message.ts"
import * as Topic from "../Topic.ts"
import {
  Away,
  consume,
  eventually,
  ids,
  lettersOf,
  type Order,
  type Outcome,
  order,
  orders,
  type Probe,
  producer,
  quickly,
  quietTime,
  Refused
} from "./harness.ts"

const away = () => Effect.fail(new Away({ detail: "the mail server is away" }))

/** Milliseconds between the calls of the handler. */
const waits = ({ calls }: Probe): ReadonlyArray<number> =>
  calls.slice(1).map(({ atMillis }, index) => atMillis - calls[index]!.atMillis)

const attempts = ({ calls }: Probe): ReadonlyArray<number> => calls.map(({ message }) => message.attempt)

export const retries: ReadonlyArray<Outcome> = [
  {
    title: "MSG-15 MSG-20 a message that fails is tried again after each wait, never early, until it succeeds",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const probe = yield* consume(topic, ({ attempt }) => (attempt < 3 ? away() : Effect.void), { retry: quickly })
      const { send } = yield* producer
      const message = yield* Message.of(order("1"), topic, "k", { tenant: "t" })
      yield* send(message)
      yield* probe.awaits(3)
      assert.deepStrictEqual(attempts(probe), [1, 2, 3])
      const [first, second] = waits(probe)
      assert.isAtLeast(first!, 200)
      assert.isAtLeast(second!, 400)
      for (const { message: got } of probe.calls) {
        assert.deepStrictEqual([got.id, got.key, got.topic.name], [message.id, "k", topic.name])
        assert.deepStrictEqual(got.payload, message.payload)
        assert.include(got.headers, { tenant: "t" })
      }
      yield* quietTime
      assert.deepStrictEqual([probe.calls.length, probe.told], [3, []])
    })
  },
  {
    title:
      "MSG-20 MSG-41 a message whose tries are used up is dead-lettered with payload, headers and the account of its failure",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const probe = yield* consume(topic, away, { retry: quickly })
      const { send } = yield* producer
      const message = yield* Message.of(order("1", 7), topic, "k", { tenant: "t" })
      yield* send(message)
      const [letter] = yield* lettersOf(topic, 1)
      assert.strictEqual(new TextDecoder().decode(letter!.body ?? undefined), JSON.stringify(message.payload))
      assert.deepInclude(letter!.headers, {
        ...{ tenant: "t", "message-id": message.id, "original-topic": topic.name, "retry-count": "2" },
        ...{ "exception-class": "Away", "exception-message": "the mail server is away" }
      })
      assert.match(letter!.headers["failure-timestamp"] ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/)
      yield* eventually(() => assert.deepStrictEqual(probe.told, [topic.name]))
      assert.deepStrictEqual(attempts(probe), [1, 2, 3])
    })
  },
  {
    title: "MSG-21 an error that says that no other try cures it, and a TypeError, go to the dead letters at once",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const probe = yield* consume(
        topic,
        ({ payload }) =>
          payload.id === "refused" ? Effect.fail(new Refused({ detail: "no" })) : Effect.die(new TypeError("null")),
        { retry: quickly }
      )
      const { send } = yield* producer
      yield* send(order("refused"), topic)
      yield* send(order("null"), topic)
      const letters = yield* lettersOf(topic, 2)
      assert.sameMembers(
        letters.map(({ headers }) => headers["exception-class"]),
        ["Refused", "TypeError"]
      )
      assert.deepStrictEqual(
        letters.map(({ headers }) => headers["retry-count"]),
        ["0", "0"]
      )
      assert.deepStrictEqual(ids(probe), ["refused", "null"])
    })
  },
  {
    title: "MSG-21 the list of errors without a retry is replaceable, and isRetryable decides before it",
    run: Effect.gen(function* () {
      const [listed, asked] = [yield* orders, yield* orders]
      const ofList = yield* consume(listed, () => Effect.die(new TypeError("null")), {
        retry: { ...quickly, nonRetryable: ["SomethingElse"] }
      })
      const ofRule = yield* consume(asked, away, { retry: quickly, isRetryable: () => false })
      const { send } = yield* producer
      yield* send(order("1"), listed)
      yield* send(order("1"), asked)
      yield* lettersOf(asked, 1)
      yield* lettersOf(listed, 1)
      assert.deepStrictEqual([ofList.calls.length, ofRule.calls.length], [3, 1])
    })
  },
  {
    title: "MSG-15 the messages behind one that waits go on",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const fails = ({ payload, attempt }: Message.ReceivedMessage<Order>) =>
        payload.id === "fails" && attempt === 1 ? away() : Effect.void
      const probe = yield* consume(topic, fails, { retry: { ...quickly, initialInterval: 1_000 } })
      const { send } = yield* producer
      yield* Effect.forEach(["fails", "a", "b"], (id) => send(order(id), topic, "k"), { discard: true })
      yield* probe.awaits(4)
      assert.deepStrictEqual(ids(probe), ["fails", "a", "b", "fails"])
    })
  },
  {
    title: "MSG-15 without retry topics a message waits where it is, and those behind it wait too",
    run: Effect.gen(function* () {
      const topic = yield* orders
      const retry = { ...quickly, retryTopicsEnabled: false }
      const probe = yield* consume(
        topic,
        ({ payload, attempt }) => (payload.id === "fails" && attempt < 3 ? away() : Effect.void),
        { retry }
      )
      const { send } = yield* producer
      yield* Effect.forEach(["fails", "a"], (id) => send(order(id), topic, "k"), { discard: true })
      yield* probe.awaits(4)
      assert.deepStrictEqual(ids(probe), ["fails", "fails", "fails", "a"])
      assert.deepStrictEqual(attempts(probe), [1, 2, 3, 1])
      assert.isAtLeast(waits(probe)[0]!, 200)
      assert.isAtLeast(waits(probe)[1]!, 400)
    })
  },
  {
    title: "ruling 67 maxAttempts counts all tries: 1 means no retry; a time limit that comes first ends them",
    run: Effect.gen(function* () {
      const [once, limited] = [yield* orders, yield* orders]
      const ofOnce = yield* consume(once, away, { retry: { maxAttempts: 1 } })
      const ofLimit = yield* consume(limited, away, { retry: { ...quickly, maxAttempts: 9, maxElapsed: 300 } })
      const { send } = yield* producer
      yield* send(order("1"), once)
      yield* send(order("1"), limited)
      yield* lettersOf(once, 1)
      yield* lettersOf(limited, 1)
      assert.deepStrictEqual([ofOnce.calls.length, ofLimit.calls.length], [1, 2])
    })
  },
  {
    title: "a dead letter can be sent to its topic again, as any message of the dead letter topic",
    run: Effect.gen(function* () {
      const topic = yield* orders
      let isRefused = true
      const probe = yield* consume(topic, () => (isRefused ? Effect.fail(new Refused({ detail: "no" })) : Effect.void))
      const { send } = yield* producer
      yield* send(order("1"), topic)
      yield* lettersOf(topic, 1)
      isRefused = false
      yield* send(
        yield* Effect.map(Message.of(order("1"), Topic.named(topic, `${topic.name}-dlq`)), (letter) =>
          Message.withTopic(letter, topic)
        )
      )
      yield* probe.awaits(2)
      assert.deepStrictEqual(ids(probe), ["1", "1"])
    })
  }
]
