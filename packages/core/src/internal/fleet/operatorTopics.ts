/** The topics of a fleet as its operators read and write them. Nothing is connected before it is needed, and nothing is read while nobody asks. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Admin, Broker, Producer } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import * as Clocks from "../base/clocks.ts"
import * as Format from "../base/entryFormat.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import * as ClusterClock from "./clusterClock.ts"
import * as Control from "./control.ts"
import * as FleetLog from "./fleetLog.ts"
import type { FleetTopics } from "./fleetTopics.ts"
import * as Heartbeats from "./heartbeatEntries.ts"
import * as ProcessViews from "./processViews.ts"

/** An entry of the control topic, or its end (null). */
type Entry = readonly [key: string, value: Uint8Array | null]

export interface OperatorTopics {
  /** The cluster's time. */
  readonly nowMillis: () => number
  /** The time that the newest record proves. */
  readonly provenMillis: () => number
  /** The control topic, read past everything that was written before. */
  readonly control: (admin: Admin) => Effect.Effect<Control.Control, BrokerError>
  /** The fleet topic, in the same way. */
  readonly log: (admin: Admin) => Effect.Effect<FleetLog.FleetLog, BrokerError>
  /** Reads on in the fleet topic. */
  readonly poll: Effect.Effect<void, BrokerError>
  /** Waits until the newest heartbeat tells the time, or until there is none to wait for. */
  readonly freshen: Effect.Effect<void, BrokerError>
  /** Writes to the control topic, and reads what it has written. */
  readonly write: (entries: ReadonlyArray<Entry>) => Effect.Effect<void, BrokerError>
}

/** Between two looks. On Kafka, a look waits half a second for something new. */
const pollMillis = 50

/** The clients close with the scope. */
export const make = Effect.fnUntraced(function* (
  broker: Broker["Service"],
  topics: FleetTopics
): Effect.fn.Return<OperatorTopics, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const wallClock = yield* Clock.Clock
  const clock = ClusterClock.make(wallClock)
  const opened: { control?: Control.Control; log?: FleetLog.FleetLog; producer?: Producer } = {}

  const control = Effect.gen(function* () {
    opened.control ??= yield* Scope.provide(Control.open(broker, topics.control, clock), scope)
    return opened.control
  })
  const log = Effect.gen(function* () {
    opened.log ??= yield* Scope.provide(FleetLog.open(broker, topics.fleet, clock), scope)
    return opened.log
  })
  const producer = Effect.gen(function* () {
    opened.producer ??= yield* Scope.provide(broker.producer({ deliveryTimeout: "10 seconds" }), scope)
    return opened.producer
  })
  /** One operation at a time opens and reads. */
  const alone = Semaphore.makeUnsafe(1).withPermits(1)
  const heard = hearing(wallClock, () => opened.log?.records() ?? 0)
  const poll = alone(
    Effect.flatMap(log, ({ readOn }) => readOn()).pipe(
      Effect.andThen(Effect.sync(heard.note)),
      Effect.andThen(Effect.sleep(pollMillis))
    )
  )

  return {
    nowMillis: clock.nowMillis,
    provenMillis: clock.provenMillis,
    control: (admin) => alone(Effect.tap(control, ({ readOn }) => readAll(admin, topics.control, readOn))),
    log: (admin) =>
      alone(Effect.tap(log, ({ readOn }) => Effect.map(readAll(admin, topics.fleet, readOn), heard.note))),
    poll,
    freshen: Effect.suspend(() => freshened(clock, wallClock, poll, heard)),
    write: (entries) => {
      const records = entries.map(([key, value]) => ({
        ...{ topic: topics.control, partition: 0, key: Format.bytesOf(key), value }
      }))
      return alone(
        Effect.gen(function* () {
          const written = yield* (yield* producer).sendAll(records)
          yield* (yield* control).readOn(written[0]?.offset)
        })
      )
    }
  }
})

const readAll = Effect.fnUntraced(function* (admin: Admin, topic: string, readOn: Control.Control["readOn"]) {
  const [end] = yield* ReplayProgress.logOffsetsOf(admin, topic)
  if (end !== undefined && end.logEnd > end.logStart) yield* readOn(end.logEnd - 1n)
})

interface Hearing {
  /** Records of the fleet topic that were read. */
  readonly records: () => number
  /** The topic was read to its end. */
  readonly note: () => void
  /** Whether a record was appended within a lease, by the monotonic clock of this process. */
  readonly isFresh: () => boolean
}

/** A record that a reading finds was appended behind the reading before it; those that the first one finds may be of any age. */
const hearing = (clock: Clock.Clock, records: () => number): Hearing => {
  const elapsedMillis = Clocks.stopwatch(clock)
  let last: { readonly records: number; readonly atMillis: number } | undefined
  let heardMillis = Number.NEGATIVE_INFINITY
  return {
    records,
    note: () => {
      if (last !== undefined && records() > last.records) heardMillis = last.atMillis
      last = { records: records(), atMillis: elapsedMillis() }
    },
    isFresh: () => elapsedMillis() - heardMillis <= ProcessViews.leaseMillis
  }
}

/**
 * The newest record that a reader finds at first may be old, because no process lives. When this process's clock does not agree that it is new, the next heartbeat is waited for.
 * When none comes within a lease, nobody lives, and a clock that is ahead is right for all that is known; one that is behind the log is wrong.
 */
const freshened = Effect.fnUntraced(function* (
  clock: ClusterClock.ClusterClock,
  wallClock: Clock.Clock,
  poll: OperatorTopics["poll"],
  heard: Hearing
) {
  const offMillis = wallClock.currentTimeMillisUnsafe() - clock.nowMillis()
  if (Math.abs(offMillis) <= ProcessViews.leaseMillis || heard.isFresh()) return
  const before = heard.records()
  const waitMillis = offMillis > 0 ? Heartbeats.everyMillis + 1_000 : ProcessViews.leaseMillis + 1_000
  yield* Effect.timeoutOption(Effect.repeat(poll, { until: () => heard.records() > before }), waitMillis)
  if (heard.records() === before && offMillis > 0) clock.believe(wallClock.currentTimeMillisUnsafe())
})
