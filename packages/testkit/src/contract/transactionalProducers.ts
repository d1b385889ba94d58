/** Outcomes: one transaction at a time, fencing, and the transaction timeout. */
import { Broker } from "@eventbus/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { assert } from "vitest"
import {
  assertTag,
  eventually,
  eventuallyTrue,
  failure,
  type Outcome,
  publish,
  quietTime,
  record,
  topic,
  transactional,
  unique
} from "./harness.ts"
import { join } from "./probe.ts"

export const transactionalProducers: ReadonlyArray<Outcome> = [
  {
    title: "a newer producer of the same transactional id fences the older one and aborts its open transaction",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const transactionalId = unique("tx")
      const older = yield* transactional(transactionalId)
      yield* older.transaction((tx) => tx.send(record(name, "first")))
      const error = yield* failure(
        older.transaction((tx) =>
          Effect.gen(function* () {
            yield* tx.send(record(name, "left open"))
            const newer = yield* transactional(transactionalId)
            yield* newer.transaction((tx) => tx.send(record(name, "second")))
          })
        )
      )
      assertTag(error, "ProducerFenced")
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(2)
      yield* quietTime
      assert.deepStrictEqual(probe.values, ["first", "second"])
    })
  },
  {
    title: "ruling 81: a producer fences the producers of former transactional ids, and aborts what they left open",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const broker = yield* Broker.Broker
      const [former, transactionalId] = [unique("former"), unique("tx")]
      const older = yield* transactional(former)
      yield* older.transaction((tx) => tx.send(record(name, "first")))
      const error = yield* failure(
        older.transaction((tx) =>
          Effect.gen(function* () {
            yield* tx.send(record(name, "left open"))
            const newer = yield* eventually(
              broker.transactionalProducer({ transactionalId, fences: [former, unique("never")] })
            )
            yield* newer.transaction((tx) => tx.send(record(name, "second")))
          })
        )
      )
      assertTag(error, "ProducerFenced")
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(2)
      yield* quietTime
      assert.deepStrictEqual(probe.values, ["first", "second"])
    })
  },
  {
    title:
      "OFF-17: a fenced producer that fails or is interrupted in its open transaction does not disturb the newer one",
    run: Effect.gen(function* () {
      for (const ending of ["interrupted", "failed"]) {
        const name = yield* topic()
        const transactionalId = unique("tx")
        const older = yield* transactional(transactionalId)
        const open = yield* Deferred.make<void>()
        const failing = yield* Deferred.make<never, string>()
        const cut = yield* Effect.forkChild(
          older.transaction((tx) =>
            tx
              .send(record(name, "cut"))
              .pipe(Effect.andThen(Deferred.succeed(open, undefined)), Effect.andThen(Deferred.await(failing)))
          )
        )
        yield* Deferred.await(open)
        const newer = yield* transactional(transactionalId)
        yield* newer.transaction((tx) =>
          Effect.gen(function* () {
            yield* tx.send(record(name, "a"))
            if (ending === "interrupted") yield* Fiber.interrupt(cut)
            else yield* Deferred.fail(failing, ending)
            yield* Fiber.await(cut)
            yield* tx.send(record(name, "b"))
          })
        )
        yield* newer.transaction((tx) => tx.send(record(name, "c")))
        const probe = yield* join({ groupId: unique("group"), topics: [name] })
        yield* probe.collects(3)
        yield* quietTime
        assert.deepStrictEqual(probe.values, ["a", "b", "c"])
      }
    })
  },
  {
    title: "one transaction at a time: a second waits for the first",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const producer = yield* transactional()
      const log: Array<string> = []
      const step = (label: string) =>
        producer.transaction((tx) =>
          Effect.gen(function* () {
            log.push(`${label} begins`)
            yield* tx.send(record(name, label))
            yield* Effect.sleep("300 millis")
            log.push(`${label} ends`)
          })
        )
      yield* Effect.all([step("a"), step("b")], { concurrency: 2 })
      assert.strictEqual(log[1], log[0]?.replace("begins", "ends"))
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* eventuallyTrue(() => assert.deepStrictEqual(probe.values.toSorted(), ["a", "b"]))
    })
  },
  {
    title: "a transaction that is open longer than its timeout is aborted by the cluster, and cannot be committed",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const broker = yield* Broker.Broker
      const options = { transactionalId: unique("tx"), transactionTimeout: "2 seconds" } as const
      const producer = yield* eventually(broker.transactionalProducer(options))
      // A cluster looks for expired transactions every 10 seconds.
      yield* failure(
        producer.transaction((tx) => Effect.andThen(tx.send(record(name, "late")), Effect.sleep("16 seconds")))
      )
      yield* publish(name, ["after"])
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(1)
      assert.deepStrictEqual(probe.values, ["after"])
    })
  }
]
