/** Outcomes: records and offsets of a transaction become visible together, or never. */
import type { Broker, BrokerError } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { assert } from "vitest"
import {
  admin,
  eventually,
  type Outcome,
  publish,
  quietTime,
  record,
  texts,
  topic,
  transactional,
  unique
} from "./harness.ts"
import { join } from "./probe.ts"

export const transactions: ReadonlyArray<Outcome> = [
  {
    title: "OFF-17: records of a committed transaction are read, over several partitions",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.owns(2)
      const producer = yield* transactional()
      const sent = yield* producer.transaction((tx) =>
        tx.sendAll([record(name, "a"), record(name, "b", { partition: 1 })])
      )
      assert.deepStrictEqual(
        sent.map((one) => one.offset),
        [0n, 0n]
      )
      yield* probe.collects(2)
      assert.deepStrictEqual(probe.values.toSorted(), ["a", "b"])
    })
  },
  {
    title:
      "OFF-17: records of an aborted transaction are not read under read_committed, and nothing behind them is held up",
    run: Effect.gen(function* () {
      const name = yield* topic()
      yield* publish(name, ["before"])
      const producer = yield* transactional()
      const exit = yield* Effect.exit(
        producer.transaction((tx) =>
          Effect.andThen(tx.sendAll(texts("x", 3).map((one) => record(name, one))), Effect.fail("no"))
        )
      )
      assert.deepStrictEqual(exit, Exit.fail("no"))
      yield* publish(name, ["after"])
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(2)
      yield* quietTime
      assert.deepStrictEqual(probe.values, ["before", "after"])
    })
  },
  {
    title: "OFF-17: sendEach answers for each record of a transaction, and refuses all of them once it has ended",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const producer = yield* transactional()
      const answers: Array<string | bigint> = []
      const note: Broker.OnAnswer = (index, answer) => {
        answers[index] = Result.isSuccess(answer) ? answer.success.offset : answer.failure._tag
      }
      const ended = yield* producer.transaction((tx) =>
        Effect.as(tx.sendEach([record(name, "a"), record(unique("topic"), "x"), record(name, "b")], note), tx)
      )
      assert.deepStrictEqual(answers, [0n, "UnknownTopic", 1n])
      yield* ended.sendEach([record(name, "late"), record(name, "later")], note)
      assert.isTrue(answers.slice(0, 2).every((answer) => typeof answer === "string"))
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(2)
      yield* quietTime
      assert.deepStrictEqual(probe.values, ["a", "b"])
    })
  },
  {
    title: "read_uncommitted reads records of open and aborted transactions",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const producer = yield* transactional()
      yield* Effect.exit(producer.transaction((tx) => Effect.andThen(tx.send(record(name, "x")), Effect.fail("no"))))
      const probe = yield* join({ groupId: unique("group"), topics: [name], isolationLevel: "read_uncommitted" })
      yield* probe.collects(1)
      assert.deepStrictEqual(probe.values, ["x"])
    })
  },
  {
    title: "records of an open transaction are held back, and so is what follows them, until it ends",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const producer = yield* transactional()
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.owns(1)
      yield* producer.transaction((tx) =>
        Effect.gen(function* () {
          yield* tx.send(record(name, "a"))
          yield* publish(name, ["plain"])
          yield* quietTime
          assert.deepStrictEqual(probe.values, [])
        })
      )
      yield* probe.collects(2)
      assert.deepStrictEqual(probe.values, ["a", "plain"])
    })
  },
  {
    title: "an interrupted or dying transaction is aborted, and the producer goes on",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const producer = yield* transactional()
      yield* producer
        .transaction((tx) => Effect.andThen(tx.send(record(name, "cut")), Effect.never))
        .pipe(Effect.timeout("2 seconds"), Effect.ignore)
      yield* Effect.exit(
        producer.transaction((tx) => Effect.andThen(tx.send(record(name, "died")), Effect.die(new Error("bug"))))
      )
      yield* producer.transaction((tx) => tx.send(record(name, "good")))
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(1)
      yield* quietTime
      assert.deepStrictEqual(probe.values, ["good"])
    })
  },
  {
    title:
      "OFF-17: a transaction in which a send was interrupted is aborted, though its program goes on, and the producer goes on",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const producer = yield* transactional()
      const sends: ReadonlyArray<(tx: Broker.Transaction) => Effect.Effect<unknown, BrokerError.BrokerError>> = [
        (tx) => tx.send(record(name, "cut")),
        (tx) => tx.sendAll([record(name, "cut")]),
        (tx) => tx.sendEach([record(name, "cut")], () => {}),
        (tx) => tx.sendOffsets(unique("group"), [{ topic: name, partition: 0, offset: 7n }])
      ]
      for (const send of sends) {
        const outcome = yield* Effect.exit(
          producer.transaction((tx) =>
            Effect.gen(function* () {
              yield* tx.send(record(name, "before"))
              const sending = yield* Effect.forkChild(send(tx), { startImmediately: true })
              yield* Fiber.interrupt(sending)
              // A broker in memory may have answered at once.
              if (Exit.isSuccess(yield* Fiber.await(sending))) return yield* Effect.fail("sent")
            })
          )
        )
        assert.isTrue(Exit.isFailure(outcome))
      }
      yield* producer.transaction((tx) => tx.send(record(name, "good")))
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(1)
      yield* quietTime
      assert.deepStrictEqual(probe.values, ["good"])
    })
  },
  {
    title: "control records move nextOffset to the end, so that lag reaches 0",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const producer = yield* transactional()
      yield* producer.transaction((tx) => tx.send(record(name, "a")))
      yield* Effect.exit(producer.transaction((tx) => Effect.andThen(tx.send(record(name, "x")), Effect.fail("no"))))
      const administrator = yield* admin
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(1)
      yield* eventually(
        Effect.map(administrator.topicOffsets(name), ([ends]) => {
          assert.strictEqual(ends?.logEnd, 4n)
          assert.strictEqual(probe.positions.get(`${name}/0`), 4n)
        })
      )
      assert.strictEqual(probe.of("Fetched").at(-1)?.chunk.highWatermark, 4n)
      assert.deepStrictEqual(probe.values, ["a"])
    })
  },
  {
    title: "OFF-17: offsets sent within a transaction are committed with it",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      const producer = yield* transactional()
      const administrator = yield* admin
      yield* producer.transaction((tx) =>
        Effect.gen(function* () {
          yield* tx.send(record(name, "out"))
          yield* tx.sendOffsets(groupId, [{ topic: name, partition: 0, offset: 7n }])
          assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [])
        })
      )
      yield* eventually(
        Effect.map(administrator.committedOffsets(groupId, [name]), (offsets) =>
          assert.deepStrictEqual(offsets, [{ topic: name, partition: 0, offset: 7n, metadata: "" }])
        )
      )
    })
  },
  {
    title: "OFF-17: offsets sent within an aborted transaction are not committed",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      const producer = yield* transactional()
      const administrator = yield* admin
      yield* Effect.exit(
        producer.transaction((tx) =>
          Effect.gen(function* () {
            yield* tx.send(record(name, "out"))
            yield* tx.sendOffsets(groupId, [{ topic: name, partition: 0, offset: 7n }])
            return yield* Effect.fail("no")
          })
        )
      )
      yield* quietTime
      assert.deepStrictEqual(yield* administrator.committedOffsets(groupId, [name]), [])
    })
  },
  {
    title: "a transaction without records is committed too",
    run: Effect.gen(function* () {
      const producer = yield* transactional()
      assert.strictEqual(yield* producer.transaction(() => Effect.succeed(42)), 42)
    })
  },
  {
    title: "logEnd, highWatermark and topicOffsets under read_committed end at the last stable offset",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const producer = yield* transactional()
      yield* publish(name, ["a", "b"])
      yield* producer.transaction((tx) =>
        Effect.gen(function* () {
          yield* tx.send(record(name, "open"))
          const committed = yield* join({ groupId: unique("group"), topics: [name] })
          const uncommitted = yield* join({
            groupId: unique("group"),
            topics: [name],
            isolationLevel: "read_uncommitted"
          })
          yield* Effect.all([committed.collects(2), uncommitted.collects(3)])
          assert.strictEqual(committed.own(name).logEnd, 2n)
          assert.strictEqual(committed.of("Fetched")[0]?.chunk.highWatermark, 2n)
          assert.strictEqual(uncommitted.own(name).logEnd, 3n)
          const { topicOffsets } = yield* admin
          const ends = yield* Effect.all([topicOffsets(name), topicOffsets(name, "read_committed")])
          assert.deepStrictEqual(
            ends.map(([end]) => end?.logEnd),
            [3n, 2n]
          )
        })
      )
    })
  }
]
