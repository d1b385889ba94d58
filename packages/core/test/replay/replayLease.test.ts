/** Replays of one group in several processes: they take turns by a lease in the journal. */
import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { advance, append, bytes, inTime, scenario } from "../../../../test/scenarios/bus.ts"
import { AuthorizationFailed } from "../../src/BrokerError.ts"
import * as DerivedNames from "../../src/internal/base/derivedNames.ts"
import * as Schedule from "../../src/internal/deadLetters/strategySchedule.ts"
import {
  type Around,
  all,
  copies,
  fork,
  joined,
  killed,
  letters,
  older,
  pass,
  processOf,
  type Service,
  setUp,
  slow,
  timed,
  values
} from "./replayProcesses.ts"

const journals: ReadonlyArray<readonly [string, ReadonlyArray<readonly [string, string]> | undefined]> = [
  ["a new journal", undefined],
  ["a journal of an older version", older]
]

describe("replays of several processes", () => {
  for (const [name, journal] of journals) {
    scenario(`OPS-10 the second waits for the first, and finds what that left (${name})`, () =>
      Effect.gen(function* () {
        yield* setUp(journal)
        const first = yield* fork((yield* processOf("host-a", slow(2))).replay(400))
        yield* pass(3)
        const second = yield* fork((yield* processOf("host-b")).replay(all))
        const third = yield* fork((yield* processOf("host-c")).replayRecords([{ partition: 0, offset: 599n }]))
        yield* pass(2)
        assert.isUndefined(second.pollUnsafe())
        assert.strictEqual((yield* joined(first)).replayed, 400)
        const [rest, one] = [(yield* joined(second)).replayed, (yield* joined(third)).replayed]
        assert.strictEqual(rest + one, 200)
        assert.deepStrictEqual(yield* copies, values)
      })
    )

    scenario(`OPS-10 one that waits too long is refused, and learns who works, since when and how far (${name})`, () =>
      Effect.gen(function* () {
        yield* setUp(journal)
        yield* advance("1 hour")
        const first = yield* fork((yield* processOf("host-a", slow(12))).replay(all))
        yield* pass(15)
        const replays = yield* processOf("host-b")
        const refused = yield* inTime(Effect.flip(replays.replay(all)), "1 second")
        assert.strictEqual(refused._tag, "ReplayRunning")
        if (refused._tag !== "ReplayRunning") return
        const { host, pid, sinceMillis, replayed, waitedMillis } = refused
        assert.deepStrictEqual([host, pid, sinceMillis], ["host-a", process.pid, 3_600_000])
        assert.include([200, 300], replayed)
        assert.isTrue(waitedMillis >= 20_000 && waitedMillis < 25_000)
        assert.include(
          refused.message,
          "on host 'host-a' has replayed dead letters of 'orders.DLT' for group 'billing'"
        )
        const discarded = yield* inTime(
          Effect.flip(replays.discard([{ partition: 0, offset: 599n }], "old")),
          "1 second"
        )
        assert.strictEqual(discarded._tag, "ReplayRunning")
        assert.strictEqual((yield* joined(first)).replayed, letters)
        assert.deepStrictEqual(yield* copies, values)
      })
    )

    scenario(`OPS-10 the lease of a process that is killed in the middle of a transaction ends (${name})`, () =>
      Effect.gen(function* () {
        yield* setUp(journal)
        yield* fork((yield* processOf("host-a", killed)).replay(all))
        yield* pass(6)
        assert.lengthOf(yield* copies, 200)
        const second = yield* fork((yield* processOf("host-b")).replay(all))
        yield* pass(5)
        assert.isUndefined(second.pollUnsafe())
        assert.strictEqual((yield* joined(second)).replayed, 400)
        assert.deepStrictEqual(yield* copies, values)
      })
    )
  }

  scenario(
    "OPS-10 OPS-15 the cluster's clock tells at once that a lease is over, whatever the clocks of hosts say",
    () =>
      Effect.gen(function* () {
        yield* setUp()
        yield* fork((yield* processOf("host-a", killed)).replay(all))
        yield* pass(30)
        const second = yield* timed((yield* processOf("host-b")).replay(all))
        assert.strictEqual(second.result.replayed, 400)
        assert.isBelow(second.seconds, 3)
        assert.deepStrictEqual(yield* copies, values)
      })
  )

  scenario("OPS-10 one that is interrupted, and one that fails, give the lease back at once", () =>
    Effect.gen(function* () {
      yield* setUp()
      const first = yield* fork((yield* processOf("host-a", slow(2))).replay(all))
      yield* pass(3)
      yield* inTime(Fiber.interrupt(first), "1 second")
      const failing = yield* processOf("host-c", () => Effect.die("in the transaction"))
      assert.isTrue(Exit.isFailure(yield* inTime(Effect.exit(failing.replay(all)), "100 millis")))
      const second = yield* timed((yield* processOf("host-b")).replay(all))
      assert.strictEqual(second.result.replayed, 500)
      assert.isBelow(second.seconds, 3)
      assert.deepStrictEqual(yield* copies, values)
    })
  )

  scenario("OPS-10 one that was suspended for longer than its lease says who took over, and how far it came", () =>
    Effect.gen(function* () {
      yield* setUp()
      const suspended: Around = ({ phase, done, freeze }) =>
        phase === "sent" ? Effect.sleep("1 second") : done === 2 ? freeze(26) : Effect.void
      const first = yield* fork(Effect.flip((yield* processOf("host-a", suspended)).replay(all)))
      yield* pass(5)
      const second = yield* fork((yield* processOf("host-b", slow(8))).replay(all))
      const lost = yield* joined(first)
      assert.strictEqual(lost._tag, "ReplayTakenOver")
      if (lost._tag !== "ReplayTakenOver") return
      assert.deepStrictEqual([lost.replayed, lost.host, lost.pid], [200, "host-b", process.pid])
      assert.include(lost.message, "on host 'host-b' ended this replay")
      assert.strictEqual((yield* joined(second)).replayed, 400)
      assert.deepStrictEqual(yield* copies, values)
    })
  )

  for (const [version, ids] of [
    ["first", { transactionalId: "billing.dlt.replay.orders.DLT" }],
    ["third", { transactionalId: "billing/orders.DLT/replay", fences: ["billing.dlt.replay.orders.DLT"] }]
  ] as const) {
    scenario(
      `OPS-10 ruling 89 a replay of the ${version} version ends one of ours, which says so: no letter is copied twice`,
      () =>
        Effect.gen(function* () {
          const memory = yield* setUp(older)
          const first = yield* fork(Effect.flip((yield* processOf("host-a", slow(2))).replay(all)))
          yield* pass(5)
          yield* Effect.scoped(memory.broker.transactionalProducer(ids))
          const ended = yield* joined(first)
          assert.strictEqual(ended._tag, "ReplayTakenOver")
          if (ended._tag !== "ReplayTakenOver") return
          assert.deepStrictEqual([ended.replayed, ended.host], [200, undefined])
          assert.include(
            ended.message,
            "A process of an older version, or a transaction of more than 15 seconds, ended this replay"
          )
          assert.strictEqual((yield* inTime((yield* processOf("host-b")).replay(all), "1 second")).replayed, 400)
          assert.deepStrictEqual(yield* copies, values)
        })
    )

    scenario(
      `OPS-10 ruling 89 a replay of ours ends one of the ${version} version before it reads how far that came`,
      () =>
        Effect.gen(function* () {
          const memory = yield* setUp(older)
          const old = yield* memory.broker.transactionalProducer(ids)
          const send = (value: string) =>
            old.transaction((transaction) => transaction.send({ topic: "orders", key: null, value: bytes(value) }))
          yield* send("-1")
          yield* inTime((yield* processOf("host-a")).replay(all), "1 second")
          assert.strictEqual((yield* Effect.flip(send("-2")))._tag, "ProducerFenced")
          assert.deepStrictEqual(yield* copies, ["-1", ...values])
        })
    )
  }

  scenario("OPS-10 one that may not use the first version's transactional id has its own", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      const made: Array<string> = []
      const { broker } = memory
      const transactionalProducer: Service["transactionalProducer"] = (options) => {
        made.push(options.transactionalId)
        return options.transactionalId === "billing/orders.DLT/replay"
          ? broker.transactionalProducer(options)
          : Effect.fail(new AuthorizationFailed({ resource: "transactionalId", name: "x", operation: "Write" }))
      }
      const replays = yield* processOf("host-a", () => Effect.void, { transactionalProducer })
      assert.strictEqual((yield* inTime(replays.replay(all), "1 second")).replayed, letters)
      assert.deepStrictEqual(made, ["billing.dlt.replay.orders.DLT", "billing/orders.DLT/replay"])
      for (const [group, topic] of [
        ["a", "dlt.replay.b"],
        ["a.dlt.replay", "b"],
        ["a.dlt.replay.b", "c.DLT"]
      ] as const)
        assert.isFalse(DerivedNames.isFormerReplayIdUnique(group, topic))
      assert.isTrue(DerivedNames.isFormerReplayIdUnique("billing", "orders.DLT"))
    })
  )

  scenario("OPS-10 one that has nothing to write takes no lease, makes no journal, and disturbs nobody", () =>
    Effect.gen(function* () {
      const memory = yield* setUp()
      const replays = yield* processOf("host-a")
      assert.strictEqual((yield* inTime(replays.replayDue(3_600_000, 100), "1 second")).replayed, 0)
      assert.strictEqual(yield* memory.partitionCount("orders.DLT.replays"), 0)
      const first = yield* fork((yield* processOf("host-b", slow(9))).replay(all))
      yield* pass(10)
      const looked = yield* fork(replays.replayRecords([{ partition: 0, offset: 17n }]))
      yield* pass(10)
      assert.strictEqual((yield* Fiber.join(looked)).replayed, 0)
      assert.strictEqual((yield* joined(first)).replayed, letters)
    })
  )

  scenario(
    "OPS-10 DLT-19 a scheduled run that finds another process's replay is no failure, and comes back later",
    () =>
      Effect.gen(function* () {
        yield* setUp()
        const events: Array<string> = []
        const failures = { failed: (part: string) => void events.push(part), worked: () => {} }
        const first = yield* fork((yield* processOf("host-a", slow(12))).replay(all))
        yield* pass(1)
        const replays = yield* processOf("host-b")
        const settings = { cooldownMillis: 0, batchSize: 1_000 }
        yield* fork(Schedule.run(replays, settings, ({ _tag }) => events.push(_tag), failures))
        yield* pass(60)
        assert.deepStrictEqual(events, [])
        assert.strictEqual((yield* joined(first)).replayed, letters)
        yield* append("orders.DLT", 0, ["600"])
        yield* pass(90)
        assert.deepStrictEqual(events, ["ScheduledReplay"])
        assert.deepStrictEqual(yield* copies, [...values, "600"])
      })
  )

  scenario("OPS-10 entries that are malformed, of other groups, or of runs that ended, hold nobody up", () =>
    Effect.gen(function* () {
      const memory = yield* setUp(older)
      const held = { v: 1, host: "h", pid: 1, since: 0, replayed: 0, holds: true }
      const entries: ReadonlyArray<readonly [string, string | null]> = [
        ["lease/one/billing", "{"],
        ["lease/two/billing", JSON.stringify({ ...held, pid: "1" })],
        ["lease/three/shipping", JSON.stringify(held)],
        ["lease/four/billing", JSON.stringify(held)],
        ["lease/four/billing", null],
        ["lease/billing", JSON.stringify(held)]
      ]
      yield* memory.append(
        "orders.DLT.replays",
        0,
        entries.map(([key, value]) => ({ key: bytes(key), value: value === null ? null : bytes(value) }))
      )
      const first = yield* fork((yield* processOf("host-a")).replay(all))
      yield* pass(2)
      assert.strictEqual((yield* joined(first)).replayed, letters)
      // A newer version's entry with fields that this one does not know counts.
      const newer = { ...held, v: 2, claim: "0", more: [1] }
      yield* append("orders.DLT", 0, ["600"])
      yield* memory.append("orders.DLT.replays", 0, [
        { key: bytes("lease/five/billing"), value: bytes(JSON.stringify(newer)) }
      ])
      const second = yield* fork((yield* processOf("host-a")).replay(all))
      yield* pass(10)
      assert.isUndefined(second.pollUnsafe())
      assert.strictEqual((yield* joined(second)).replayed, 1)
    })
  )
})
