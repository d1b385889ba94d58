/** Outcomes: pause, resume and seek. */
import { Broker } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { assert } from "vitest"
import { longestWait, type Outcome, producer, publish, quietTime, record, texts, topic, unique } from "./harness.ts"
import { join, shared } from "./probe.ts"

export const pauseAndSeek: ReadonlyArray<Outcome> = [
  {
    title: "REB-10: pause and resume neither skip nor repeat a record",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const at = [{ topic: name, partition: 0 }]
      yield* publish(name, texts("before", 5))
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(5)
      yield* probe.session.pause(at)
      yield* quietTime
      yield* publish(name, texts("during", 5))
      yield* quietTime
      // One chunk that was under way may still arrive; the order holds in any case.
      assert.isAtMost(probe.of("Fetched").filter(({ chunk }) => chunk.records.length > 0).length, 2)
      yield* probe.session.resume(at)
      yield* probe.collects(10)
      yield* publish(name, ["after"])
      yield* probe.collects(11)
      assert.deepStrictEqual(probe.values, [...texts("before", 5), ...texts("during", 5), "after"])
    })
  },
  {
    title: "a paused partition is not fetched while others are",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.owns(2)
      yield* probe.session.pause([{ topic: name, partition: 0 }])
      yield* quietTime
      yield* publish(name, ["paused"], 0)
      yield* publish(name, ["open"], 1)
      yield* probe.collects(1)
      yield* quietTime
      assert.deepStrictEqual(probe.values, ["open"])
      yield* probe.session.resume([{ topic: name, partition: 0 }])
      yield* probe.collects(2)
      assert.deepStrictEqual(probe.values, ["open", "paused"])
    })
  },
  {
    title: "REB-04: a member that has paused everything stays in its group",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.owns(1)
      yield* probe.session.pause([{ topic: name, partition: 0 }])
      yield* Effect.sleep("8 seconds")
      assert.strictEqual(probe.of("Lost").length, 0)
      yield* probe.commit(name, 0, 1n)
      yield* probe.session.resume([{ topic: name, partition: 0 }])
      yield* publish(name, ["a"])
      yield* probe.collects(1)
    })
  },
  {
    title: "REB-04: a member that takes no events for longer than its session timeout stays in its group",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const groupId = unique("group")
      const broker = yield* Broker.Broker
      const session = yield* broker.consumer({
        groupId,
        topics: [name],
        sessionTimeout: "6 seconds",
        heartbeatInterval: "500 millis",
        fetchMaxWait: "100 millis",
        maxPartitionFetchBytes: 200
      })
      const assigned = yield* Queue.take(session.events)
      assert.strictEqual(assigned._tag, "Assigned")
      yield* publish(name, texts("v", 500))
      yield* session.seek({ topic: name, partition: 0 }, 0n)
      yield* Effect.sleep("8 seconds")
      if (assigned._tag !== "Assigned") return
      yield* session.commit([{ topic: name, partition: 0, generation: assigned.generation, offset: 1n }])
      const waiting = yield* Queue.takeAll(session.events)
      assert.isTrue(waiting.every((event) => event._tag === "Fetched"))
    })
  },
  {
    title: "seek backwards delivers the records again from there",
    run: Effect.gen(function* () {
      const name = yield* topic()
      yield* publish(name, texts("v", 5))
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(5)
      yield* probe.session.seek({ topic: name, partition: 0 }, 2n)
      yield* probe.collects(8)
      assert.deepStrictEqual(probe.values, [...texts("v", 5), "v-2", "v-3", "v-4"])
    })
  },
  {
    title: "seek forwards skips records, also up to the log end",
    run: Effect.gen(function* () {
      const name = yield* topic()
      yield* publish(name, texts("v", 5))
      const probe = yield* join({ groupId: unique("group"), topics: [name], onAssigned: "wait" })
      yield* probe.owns(1)
      yield* probe.session.seek({ topic: name, partition: 0 }, 5n)
      yield* quietTime
      yield* publish(name, ["next"])
      yield* probe.collects(1)
      assert.deepStrictEqual(probe.values, ["next"])
      yield* probe.session.seek({ topic: name, partition: 0 }, 4n)
      yield* probe.collects(3)
      assert.deepStrictEqual(probe.values, ["next", "v-4", "next"])
    })
  },
  {
    title: "no chunk of the old position arrives after seek, although many were under way",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const { sendAll } = yield* producer
      for (let batch = 0; batch < 30; batch++) {
        yield* sendAll(texts(`batch-${batch}`, 10).map((value) => record(name, value)))
      }
      const broker = yield* Broker.Broker
      const session = yield* broker.consumer({
        groupId: unique("group"),
        topics: [name],
        fetchMaxWait: "100 millis",
        maxPartitionFetchBytes: 200
      })
      const take = Effect.timeoutOrElse(Queue.take(session.events), {
        duration: longestWait,
        orElse: () => Effect.die(new Error("no event arrived"))
      })
      assert.strictEqual((yield* take)._tag, "Assigned")
      yield* session.seek({ topic: name, partition: 0 }, 0n)
      assert.strictEqual((yield* take)._tag, "Fetched")
      yield* session.seek({ topic: name, partition: 0 }, 290n)
      const offsets: Array<bigint> = []
      while (offsets.at(-1) !== 299n) {
        const event = yield* take
        if (event._tag === "Fetched") offsets.push(...event.chunk.records.map((one) => one.offset))
      }
      assert.deepStrictEqual(
        offsets,
        Array.from({ length: 10 }, (_, index) => BigInt(290 + index))
      )
    })
  },
  {
    title: "seek while paused takes effect at resume",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const at = { topic: name, partition: 0 }
      yield* publish(name, texts("v", 4))
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.collects(4)
      yield* probe.session.pause([at])
      yield* probe.session.seek(at, 3n)
      yield* quietTime
      assert.strictEqual(probe.records.length, 4)
      yield* probe.session.resume([at])
      yield* probe.collects(5)
      assert.strictEqual(probe.values.at(-1), "v-3")
    })
  },
  {
    title: "CLN-10: a partition that stays over a rebalance stays paused, and goes on from where seek has put it",
    needs: ({ staying }) => staying === "untouched",
    run: Effect.gen(function* () {
      const name = yield* topic(2)
      const groupId = unique("group")
      const first = yield* join({ groupId, topics: [name] })
      yield* first.owns(2)
      for (const partition of [0, 1]) yield* publish(name, texts(`p${partition}`, 4), partition)
      yield* first.collects(8)
      const both = [0, 1].map((partition) => ({ topic: name, partition }))
      yield* first.session.pause(both)
      for (const at of both) yield* first.session.seek(at, 2n)
      const second = yield* join({ groupId, topics: [name] })
      yield* shared([first, second], [1, 1])
      yield* quietTime
      assert.strictEqual(first.values.length, 8)
      const stayed = [...first.owned.values()][0]!
      yield* first.session.resume([stayed])
      yield* first.collects(10)
      yield* quietTime
      assert.deepStrictEqual(first.values.slice(8), texts(`p${stayed.partition}`, 4).slice(2))
    })
  },
  {
    title: "pause, resume and seek ignore partitions that the session does not own",
    run: Effect.gen(function* () {
      const name = yield* topic()
      const stranger = { topic: name, partition: 77 }
      yield* publish(name, ["a"])
      const probe = yield* join({ groupId: unique("group"), topics: [name] })
      yield* probe.session.pause([stranger])
      yield* probe.session.seek(stranger, 5n)
      yield* probe.session.resume([stranger])
      yield* probe.collects(1)
    })
  }
]
