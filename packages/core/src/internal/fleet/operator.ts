/**
 * The operations of operators on a fleet: they write holds and commands to the control topic, and read what processes answer. Reading costs nothing while nobody asks.
 */
import { Clock, Effect, Schedule, Scope, Semaphore } from "effect"
import type { Admin, Broker, Producer } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { CommandReport, CommandRequest, Hold, HoldRequest, HoldTarget, UnfitTopic, View } from "../../FleetView.ts"
import { InvalidArgument } from "../../Replay.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import * as ClusterClock from "./clusterClock.ts"
import * as Commands from "./commandEntries.ts"
import * as CommandReports from "./commandReports.ts"
import * as Control from "./control.ts"
import * as Arguments from "./fleetArguments.ts"
import * as Format from "./fleetFormat.ts"
import * as FleetLog from "./fleetLog.ts"
import * as Topics from "./fleetTopics.ts"
import * as Heartbeats from "./heartbeatEntries.ts"
import * as Holds from "./holdEntries.ts"
import * as ProcessHolds from "./processHolds.ts"
import * as ProcessViews from "./processViews.ts"

export interface Operator {
  readonly createTopics: Effect.Effect<void, BrokerError | UnfitTopic>
  readonly hold: (request: HoldRequest) => Effect.Effect<Hold, InvalidArgument | UnfitTopic | BrokerError>
  readonly release: (target: HoldTarget) => Effect.Effect<boolean, InvalidArgument | UnfitTopic | BrokerError>
  readonly command: (
    request: CommandRequest
  ) => Effect.Effect<CommandReport, InvalidArgument | UnfitTopic | BrokerError>
  readonly view: Effect.Effect<View, BrokerError>
}

export interface OperatorOptions {
  readonly broker: Broker["Service"]
  readonly topics: Topics.FleetTopics
  readonly hostname: string
}

/** Commands are ended so long after they were given. */
const commandsLastMillis = 604_800_000

/** Between two looks for answers. On Kafka, a look waits half a second for something new. */
const pollMillis = 50

/** Everything that the operations share, connected when it is first needed. */
interface Reading {
  readonly clock: ClusterClock.ClusterClock
  readonly control: Control.Control
  readonly log: FleetLog.FleetLog
}

/** Nothing is connected before the first operation. The clients close with the scope. */
export const make = Effect.fnUntraced(function* (
  options: OperatorOptions
): Effect.fn.Return<Operator, never, Scope.Scope> {
  const { broker, topics, hostname } = options
  const scope = yield* Effect.scope
  const wallClock = yield* Clock.Clock
  const clock = ClusterClock.make(wallClock)
  /** A topic is read by one operation at a time. */
  const reads = Semaphore.makeUnsafe(1)
  const connected: { reading?: Reading; producer?: Producer } = {}

  const reading = Effect.gen(function* () {
    if (connected.reading !== undefined) return connected.reading
    const control = yield* Control.open(broker, topics.control, clock)
    const log = yield* FleetLog.open(broker, topics.fleet, clock)
    connected.reading = { clock, control, log }
    return connected.reading
  }).pipe(Scope.provide(scope))

  const send = Effect.fnUntraced(function* (entries: ReadonlyArray<readonly [key: string, value: Uint8Array | null]>) {
    connected.producer ??= yield* Scope.provide(broker.producer({ deliveryTimeout: "10 seconds" }), scope)
    const records = entries.map(([key, value]) => ({
      ...{ topic: topics.control, partition: 0, key: Format.bytesOf(key), value }
    }))
    return yield* connected.producer.sendAll(records)
  })

  /** Reads both topics past everything that was written before. */
  const load = (admin: Admin) =>
    reads.withPermits(1)(
      Effect.gen(function* () {
        const found = yield* reading
        yield* readAll(admin, topics.control, found.control.readOn)
        yield* readAll(admin, topics.fleet, found.log.readOn)
        yield* freshen(found, wallClock)
        return found
      })
    )

  const withAdmin = <A, E>(use: (admin: Admin) => Effect.Effect<A, E>) =>
    Effect.scoped(Effect.flatMap(broker.admin, use))

  /** For operations that write to the control topic. */
  const writing = <A, E>(use: (found: Reading) => Effect.Effect<A, E>) =>
    withAdmin((admin) => Effect.andThen(Topics.ensure(admin, topics, "control"), Effect.flatMap(load(admin), use)))

  const write = Effect.fnUntraced(function* (
    { control }: Reading,
    entries: ReadonlyArray<readonly [key: string, value: Uint8Array | null]>
  ) {
    const [first] = yield* send(entries)
    yield* reads.withPermits(1)(control.readOn(first?.offset))
  })

  return {
    createTopics: withAdmin((admin) =>
      Effect.andThen(Topics.ensure(admin, topics, "control"), Topics.ensure(admin, topics, "fleet"))
    ),
    hold: (request) =>
      Effect.flatMap(Arguments.hold(request), (address) =>
        writing(
          Effect.fnUntraced(function* (found) {
            const key = Holds.keyOf(address)
            const { reason, by = hostname, until } = request
            const kept = found.control.holds.get(key)?.fields
            yield* write(found, [[key, Format.encode({ by, reason, until }, kept)]])
            const written = { ...address, by, reason, sinceMillis: clock.nowMillis(), untilMillis: until }
            return found.control.holds.get(key)?.hold ?? written
          })
        )
      ),
    release: (target) =>
      Effect.flatMap(Arguments.address("release", target), (address) =>
        writing(
          Effect.fnUntraced(function* (found) {
            const key = Holds.keyOf(address)
            const wasHeld = found.control.holds.has(key)
            // A process may know a hold of a topic that was deleted: the tombstone reaches it, too.
            yield* write(found, [[key, null]])
            return wasHeld
          })
        )
      ),
    command: (request) =>
      Effect.flatMap(Arguments.command(request, hostname), (command) =>
        writing((found) => issue(found, command, request.id ?? globalThis.crypto.randomUUID(), write, reads))
      ),
    view: withAdmin(
      Effect.fnUntraced(function* (admin) {
        const problems = [
          ...(yield* Topics.problems(admin, topics, "control")),
          ...(yield* Topics.problems(admin, topics, "fleet"))
        ]
        const { control, log } = yield* load(admin)
        const asOfMillis = clock.nowMillis()
        const processes = ProcessViews.of(log.processes, asOfMillis)
        return { processes, holds: ProcessHolds.activeAt(control.holds, asOfMillis), problems, asOfMillis }
      })
    )
  }
})

const readAll = Effect.fnUntraced(function* (admin: Admin, topic: string, readOn: Control.Control["readOn"]) {
  const [end] = yield* ReplayProgress.logOffsetsOf(admin, topic)
  if (end !== undefined && end.logEnd > end.logStart) yield* readOn(end.logEnd - 1n)
})

/**
 * The newest record that a reader finds at first may be old, because no process lives. When this process's clock says so, the next heartbeat is waited for: when none comes,
 * nobody contradicts the clock.
 */
const freshen = Effect.fnUntraced(function* ({ clock, log }: Reading, wallClock: Clock.Clock) {
  if (wallClock.currentTimeMillisUnsafe() - clock.nowMillis() <= ProcessViews.leaseMillis) return
  const before = log.records()
  yield* Effect.repeat(Effect.andThen(log.readOn(), Effect.sleep(pollMillis)), {
    until: () => log.records() > before,
    schedule: Schedule.spaced(pollMillis)
  }).pipe(Effect.timeoutOption(Heartbeats.everyMillis + 1_000))
  if (log.records() === before) clock.newest(wallClock.currentTimeMillisUnsafe())
})

type Write = (
  found: Reading,
  entries: ReadonlyArray<readonly [key: string, value: Uint8Array | null]>
) => Effect.Effect<void, BrokerError>

/** Writes the command unless the topic has it, and waits until all processes that lived then have answered. */
const issue = Effect.fnUntraced(function* (
  found: Reading,
  { entry, waitMillis }: Arguments.Command,
  id: string,
  write: Write,
  reads: Semaphore.Semaphore
) {
  const { control, log, clock } = found
  const known = control.commands.get(id)
  if (known !== undefined && !CommandReports.isSame(known, entry)) {
    const expected = "the id of no other command"
    return yield* new InvalidArgument({ command: "command", argument: "id", given: id, expected })
  }
  if (known === undefined) {
    const over = Array.from(control.commands.values())
      .filter(({ appendedMillis = 0 }) => clock.nowMillis() - appendedMillis > commandsLastMillis)
      .map((command) => [Commands.keyOf(command.id), null] as const)
    yield* write(found, [[Commands.keyOf(id), Format.encode(entry)], ...over])
  }
  const asked = CommandReports.asked(ProcessViews.of(log.processes, clock.nowMillis()), entry)
  const report = () => CommandReports.of(id, asked, log.acks.get(id))
  const look = Effect.andThen(reads.withPermits(1)(log.readOn()), Effect.sleep(pollMillis))
  yield* Effect.timeoutOption(Effect.repeat(look, { until: () => report().missing.length === 0 }), waitMillis)
  return report()
})
