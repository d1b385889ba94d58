/** Leases of processes that are suspended, and of a cluster with a clock that is ahead: no run ends another one that holds the lease. */
import { assert, describe } from "@effect/vitest"
import { MemoryBroker } from "@eventbus/testkit"
import { Clock, Duration, Effect, type Scope } from "effect"
import { bytes, scenario } from "../../../../test/scenarios/bus.ts"
import type { Reader, ReadResult } from "../../src/Broker.ts"
import * as Lease from "../../src/internal/replay/replayLease.ts"
import { fork, joined, older, pass, type Service, timed } from "./replayProcesses.ts"

const topic = "orders.DLT.replays"
const journals = { "a new journal": [["message.timestamp.type", "LogAppendTime"]], "an older journal": older } as const

const journal = Effect.fnUntraced(function* (config: ReadonlyArray<readonly [string, string]>) {
  const memory = yield* MemoryBroker.MemoryBroker
  yield* memory.createTopic(topic, { config: new Map(config) })
  return memory
})

/** A reader with something that happens behind each of its answers. */
const readerOf = (reader: Reader, behind: (found: ReadResult) => Effect.Effect<ReadResult>): Reader => ({
  read: (at) => Effect.flatMap(reader.read(at), behind)
})

/** A process that can be suspended, as by SIGSTOP: none of its timers ends meanwhile, and none of its requests goes out. */
const suspendable = Effect.gen(function* () {
  const { broker } = yield* MemoryBroker.MemoryBroker
  const clock = yield* Clock.Clock
  let wakesAt = 0
  const awake: Effect.Effect<void> = Effect.suspend(() => {
    const millis = wakesAt - clock.currentTimeMillisUnsafe()
    return millis > 0 ? Effect.andThen(clock.sleep(Duration.millis(millis)), awake) : Effect.void
  })
  const own: Clock.Clock = { ...clock, sleep: (duration) => Effect.andThen(clock.sleep(duration), awake) }
  const state = { behindRead: Effect.void as Effect.Effect<void> }
  const service: Service = {
    ...broker,
    producer: (options) =>
      Effect.map(broker.producer(options), (producer) => ({
        ...producer,
        send: (record) => Effect.andThen(awake, producer.send(record))
      })),
    reader: (options) =>
      Effect.map(broker.reader(options), (reader) =>
        readerOf(reader, (found) =>
          Effect.as(
            Effect.suspend(() => state.behindRead),
            found
          )
        )
      )
  }
  const suspend = (seconds: number): Effect.Effect<void> =>
    Effect.suspend(() => {
      wakesAt = clock.currentTimeMillisUnsafe() + seconds * 1_000
      return awake
    })
  const running = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) => Effect.provideService(effect, Clock.Clock, own)
  return { service, suspend, running, state }
})

const acquire = (broker: Service, hostname: string) =>
  Lease.acquire({ broker, hostname, groupId: "billing", deadLetterTopic: "orders.DLT", replayed: () => 0 })

describe("OPS-10 the lease of a replay that was suspended", () => {
  for (const [name, config] of Object.entries(journals)) {
    scenario(`is lost when another one has taken it, also where its renewal came first (${name})`, () =>
      Effect.gen(function* () {
        const { broker } = yield* journal(config)
        const { service, suspend, running } = yield* suspendable
        const first = yield* running(acquire(service, "host-a"))
        yield* pass(2)
        yield* fork(suspend(26))
        const second = yield* joined(yield* fork(acquire(broker, "host-b")))
        // It goes on, and renews its entry before it does anything else.
        yield* pass(15)
        const lost = yield* joined(yield* fork(Effect.flip(running(first.confirm))))
        assert.strictEqual(lost._tag, "ReplayTakenOver")
        assert.strictEqual(lost._tag === "ReplayTakenOver" ? lost.host : undefined, "host-b")
        yield* joined(yield* fork(second.confirm))
      })
    )

    scenario(`is not taken behind a look from before, and the run that holds it goes on (${name})`, () =>
      Effect.gen(function* () {
        const { broker } = yield* journal(config)
        const { service, suspend, running, state } = yield* suspendable
        let looks = 0
        state.behindRead = Effect.suspend(() => (looks++ === 0 ? suspend(26) : Effect.void))
        const first = yield* fork(Effect.result(running(acquire(service, "host-a"))))
        yield* pass(2)
        const second = yield* joined(yield* fork(acquire(broker, "host-b")))
        const refused = yield* joined(first)
        assert.strictEqual(refused._tag === "Failure" ? refused.failure._tag : "taken", "ReplayRunning")
        yield* pass(12)
        yield* joined(yield* fork(second.confirm))
      })
    )

    scenario(`is kept where nobody else came (${name})`, () =>
      Effect.gen(function* () {
        yield* journal(config)
        const { service, suspend, running } = yield* suspendable
        const first = yield* running(acquire(service, "host-a"))
        yield* pass(2)
        yield* fork(suspend(26))
        yield* pass(30)
        yield* joined(yield* fork(running(first.confirm)))
      })
    )
  }
})

/** Readers that see the records at these offsets as a broker stamped them whose clock is 20 minutes ahead. */
const aheadAt = (broker: Service, offsets: ReadonlySet<bigint>): Service => ({
  ...broker,
  reader: (options) =>
    Effect.map(broker.reader(options), (reader) =>
      readerOf(reader, (found) =>
        Effect.succeed(
          found._tag !== "Fetched"
            ? found
            : {
                ...found,
                chunk: {
                  ...found.chunk,
                  records: found.chunk.records.map((record) =>
                    offsets.has(record.offset) ? { ...record, timestamp: record.timestamp + 1_200_000 } : record
                  )
                }
              }
        )
      )
    )
})

describe("OPS-10 the lease of a replay on a broker whose clock was ahead for a moment", () => {
  const before = {
    "before the lease": [0n],
    "behind its last renewal, up to the look of another run": [3n, 4n]
  } as const
  for (const [when, offsets] of Object.entries(before)) {
    scenario(`${when}: a run that lives keeps its lease, and another one waits`, () =>
      Effect.gen(function* () {
        const memory = yield* journal(journals["a new journal"])
        const broker = aheadAt(memory.broker, new Set<bigint>(offsets))
        const note = { key: bytes("position/0/shipping"), value: bytes("0") }
        yield* memory.append(topic, 0, [note])
        const first = yield* acquire(broker, "host-a")
        yield* memory.append(topic, 0, [note])
        const second = yield* timed(Effect.result(acquire(broker, "host-b")))
        assert.strictEqual(second.result._tag === "Failure" ? second.result.failure._tag : "taken", "ReplayRunning")
        assert.isAtLeast(second.seconds, 20)
        yield* joined(yield* fork(first.confirm))
      })
    )
  }

  scenario("a run that is dead holds the next one up for no longer than its lease", () =>
    Effect.gen(function* () {
      const memory = yield* journal(journals["a new journal"])
      const dead = { v: 1, host: "h", pid: 1, since: 0, replayed: 0, holds: true }
      yield* memory.append(topic, 0, [{ key: bytes("lease/dead/billing"), value: bytes(JSON.stringify(dead)) }])
      const { seconds } = yield* timed(acquire(aheadAt(memory.broker, new Set([0n])), "host-b"))
      assert.isAtMost(seconds, 16)
    })
  )
})
