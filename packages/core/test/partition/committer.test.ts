import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { OffsetCommit } from "../../src/Broker.ts"
import { type BrokerError, RequestTimedOut, StaleAssignment, UnexpectedBrokerError } from "../../src/BrokerError.ts"
import * as Committer from "../../src/internal/partition/committer.ts"

interface TestPartition extends Committer.Committable {
  finished: bigint
  over: boolean
  stopping: boolean
}

const partition = (number: number): TestPartition => {
  const made: TestPartition = {
    topic: "orders",
    partition: number,
    generation: 1,
    committed: -1n,
    finished: 0n,
    over: false,
    stopping: false,
    position: () => made.finished,
    owned: () => !made.over
  }
  return made
}

/** A committer whose requests are answered by `answer`, and all requests that it sent. */
const committer = Effect.fnUntraced(function* (
  answer: (offsets: ReadonlyArray<OffsetCommit>) => Effect.Effect<void, BrokerError>
) {
  const sent: Array<string> = []
  const made = yield* Committer.make(
    {
      commit: (offsets) =>
        Effect.suspend(() => {
          sent.push(offsets.map((entry) => `${entry.partition}:${entry.offset}`).join(" "))
          return answer(offsets)
        })
    },
    { commitIntervalMillis: 100, onCommitted: () => {}, onFailed: () => {}, onDefect: Effect.die }
  )
  return { ...made, sent }
})

const refusing = (number: number) => (offsets: ReadonlyArray<OffsetCommit>) =>
  offsets.some((entry) => entry.partition === number)
    ? Effect.fail(new StaleAssignment({ groupId: "billing", partitions: [`orders/${number}`] }))
    : Effect.void

describe("committer", () => {
  it.effect("OFF-08 a partition that this consumer no longer owns does not delay the commits of the others", () =>
    Effect.gen(function* () {
      const [gone, kept] = [partition(0), partition(1)]
      const { commit, mark, sent } = yield* committer(refusing(0))
      gone.finished = 5n
      kept.finished = 7n
      mark(gone)
      const waiting = yield* Effect.forkChild(commit(kept), { startImmediately: true })
      yield* TestClock.adjust("50 millis")
      assert.isDefined(waiting.pollUnsafe())
      assert.deepStrictEqual([gone.committed, kept.committed], [-1n, 7n])
      assert.deepStrictEqual(sent.slice(0, 2), ["0:5 1:7", "1:7"])
    })
  )

  it.effect("OFF-09 a wait for a commit of a lost partition ends", () =>
    Effect.gen(function* () {
      const lost = partition(0)
      const { commit } = yield* committer(refusing(0))
      lost.finished = 5n
      const waiting = yield* Effect.forkChild(commit(lost), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.isUndefined(waiting.pollUnsafe())
      lost.over = true
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(waiting)
      assert.strictEqual(lost.committed, -1n)
    })
  )

  it.effect("LIF-12 for a partition that is being given up, only its last commit is awaited", () =>
    Effect.gen(function* () {
      const one = partition(0)
      const broken = Effect.fail(new RequestTimedOut({ operation: "commit", millis: 1 }))
      const { commit, commitLast, release } = yield* committer(() =>
        one.committed < 0n && !one.stopping ? broken : Effect.void
      )
      one.finished = 5n
      const waiting = yield* Effect.forkChild(commit(one), { startImmediately: true })
      yield* TestClock.adjust("10 millis")
      one.stopping = true
      release()
      yield* Fiber.join(waiting)
      yield* commit(one)
      assert.strictEqual(one.committed, -1n)
      const last = yield* Effect.forkChild(commitLast(one), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(last)
      assert.strictEqual(one.committed, 5n)
    })
  )

  it.effect("OFF-04 OFF-08 records that finish while a request is refused join its repetition", () =>
    Effect.gen(function* () {
      const one = partition(0)
      let failures = 2
      const { mark, sent } = yield* committer(() =>
        failures-- > 0 ? Effect.fail(new RequestTimedOut({ operation: "commit", millis: 1 })) : Effect.void
      )
      one.finished = 1n
      mark(one)
      yield* TestClock.adjust("100 millis")
      one.finished = 2n
      yield* TestClock.adjust("50 millis")
      one.finished = 3n
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual(sent, ["0:1", "0:2", "0:3"])
      assert.strictEqual(one.committed, 3n)
    })
  )

  it.effect("LIF-12 a last commit that is refused is not repeated without a wait", () =>
    Effect.gen(function* () {
      const { commitLast, sent } = yield* committer(() =>
        Effect.fail(new RequestTimedOut({ operation: "commit", millis: 1 }))
      )
      const stopped = partition(0)
      stopped.finished = 4n
      yield* TestClock.adjust("0 millis")
      yield* Effect.forkChild(commitLast(stopped), { startImmediately: true })
      yield* TestClock.adjust("49 millis")
      assert.strictEqual(sent.length, 1)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(sent.length, 2)
    })
  )

  it.effect(
    "ruling 83 LIF-12 a last commit does not wait out the refusals before it, and its own waits begin anew",
    () =>
      Effect.gen(function* () {
        let isDown = true
        const { commitLast, mark, sent } = yield* committer(() =>
          isDown ? Effect.fail(new RequestTimedOut({ operation: "commit", millis: 1 })) : Effect.void
        )
        const stopped = partition(0)
        stopped.finished = 4n
        mark(stopped)
        yield* TestClock.adjust("10 seconds")
        const before = sent.length
        yield* Effect.forkChild(commitLast(stopped), { startImmediately: true })
        yield* TestClock.adjust("0 millis")
        assert.strictEqual(sent.length, before + 1)
        yield* TestClock.adjust("300 millis")
        assert.strictEqual(sent.length, before + 3)
        isDown = false
        yield* TestClock.adjust("60 millis")
        assert.strictEqual(stopped.committed, 4n)
      })
  )

  it.effect(
    "MSG-20 what is finished behind the offset is committed although the offset stays, once, and can be waited for",
    () =>
      Effect.gen(function* () {
        const waiting = { ...partition(0), metadata: "eventbus:topic=c/t", committed: 0n }
        let ahead: string | undefined = "0:AA=="
        const made = Object.assign(waiting, { finishedAhead: () => ahead })
        const texts: Array<string | undefined> = []
        const { commit } = yield* committer((offsets) =>
          Effect.sync(() => texts.push(...offsets.map((each) => each.metadata)))
        )
        yield* commit(made)
        yield* commit(made)
        ahead = "0:AQ=="
        yield* commit(made)
        assert.deepStrictEqual(texts, ["eventbus:topic=c/t;done=0:AA==", "eventbus:topic=c/t;done=0:AQ=="])
      })
  )

  it.effect("MSG-20 a broker that takes no such text gets the offsets alone", () =>
    Effect.gen(function* () {
      const made = Object.assign(partition(0), { metadata: "eventbus:topic=c/t", finishedAhead: () => "0:AA==" })
      const texts: Array<string | undefined> = []
      const { mark } = yield* committer((offsets) =>
        Effect.suspend(() => {
          const [text] = offsets.map((each) => each.metadata)
          texts.push(text)
          const error = {
            operation: "commit",
            code: "OFFSET_METADATA_TOO_LARGE",
            detail: "too large",
            retryable: false
          }
          return text?.includes("done") === true ? Effect.fail(new UnexpectedBrokerError(error)) : Effect.void
        })
      )
      for (const finished of [5n, 6n]) {
        made.finished = finished
        mark(made)
        yield* TestClock.adjust("1 second")
      }
      assert.deepStrictEqual(texts, ["eventbus:topic=c/t;done=0:AA==", "eventbus:topic=c/t", "eventbus:topic=c/t"])
      assert.strictEqual(made.committed, 6n)
    })
  )
})
