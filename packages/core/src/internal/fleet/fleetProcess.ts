/**
 * A process of a fleet: reads the control topic, applies its holds and obeys its commands, and writes heartbeats and answers. It joins when its connector is made, before any
 * binding is registered, and leaves behind the last binding.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import type { Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import * as Format from "../base/entryFormat.ts"
import { keepRunning } from "../base/keepRunning.ts"
import * as LogLine from "../base/logLine.ts"
import * as Acks from "./ackEntries.ts"
import * as ClusterClock from "./clusterClock.ts"
import type { ReadCommand } from "./commandEntries.ts"
import * as Execution from "./commandExecution.ts"
import * as ConfigHash from "./configHash.ts"
import * as Control from "./control.ts"
import type { FleetMember } from "./fleetMember.ts"
import * as Publisher from "./fleetPublisher.ts"
import type { FleetTopics } from "./fleetTopics.ts"
import * as Heartbeats from "./heartbeatEntries.ts"
import * as ProcessHolds from "./processHolds.ts"

export interface ProcessOptions {
  readonly broker: Broker["Service"]
  readonly topics: FleetTopics
  readonly hostname: string
  readonly version: string
  readonly onControlUnavailable: ProcessHolds.OnControlUnavailable
  readonly controlTimeoutMillis: number
}

export interface FleetProcess {
  readonly id: string
  /** The holds on a binding by now. */
  readonly holdsOf: ProcessHolds.ProcessHolds["of"]
}

/** Between two looks at the control topic. On Kafka, a look waits half a second for something new. */
const pollMillis = 100

/** After a failure to read the control topic. */
const againMillis = 1_000

/** A first heartbeat that fails must not hold up a start for longer. */
const firstBeatMillis = 3_000

const leaveMillis = 2_000

/** An answer is repeated so often. */
const answerTimes = 60

/** So many answers are kept, for commands that are given again. */
const mostAnswers = 1_000

/** Joins the fleet, in the background, until the scope closes. `members`: the bindings that the process has now. */
export const join = Effect.fnUntraced(function* (
  options: ProcessOptions,
  members: () => ReadonlyArray<FleetMember>
): Effect.fn.Return<FleetProcess, never, Scope.Scope> {
  const { broker, topics, hostname, controlTimeoutMillis } = options
  const id = globalThis.crypto.randomUUID()
  const clock = ClusterClock.make(yield* Clock.Clock)
  const clients = yield* Effect.acquireRelease(Scope.make(), (open) => Scope.close(open, Exit.void))
  const publisher = Publisher.make(broker, topics, clients)
  const { problem, failed, worked } = makeProblem(topics.control)
  const commands = yield* commandsOf({ id, host: hostname, members, nowMillis: clock.nowMillis }, publisher)
  const read: { control?: Control.Control; obeys?: bigint | undefined } = {}
  const visibility = makeVisibility()
  const holdsHaveChanged = Latch.makeUnsafe(false)
  const holds = ProcessHolds.make({
    ...{ clock, topic: topics.control, onControlUnavailable: options.onControlUnavailable },
    holds: () => read.control?.holds ?? new Map(),
    revision: () => read.control?.revision() ?? 0
  })
  const apply = applied(holds, members)
  const beat = heartbeats(options, {
    ...{ id, clock, publisher, members, obeys: () => read.obeys, seenAt: visibility.seenAt },
    control: () => problem() ?? holds.knowledge()
  })

  const open = Control.open(broker, topics.control, clock, (command, isRepeated) => {
    // Commands that were there before operators saw this process were for others.
    if (holds.knowledge() === "known" || visibility.reaches(command)) commands.accept(command, isRepeated)
  }).pipe(Scope.provide(clients))
  const look = Effect.gen(function* () {
    const control = read.control ?? (yield* open)
    read.control = control
    yield* control.readOn()
    yield* worked
    holds.become("known")
    const isNews = yield* apply
    read.obeys = control.newest()
    commands.obeyAccepted()
    // The operator who has written it waits for the next heartbeat.
    if (isNews) yield* holdsHaveChanged.open
    yield* Effect.sleep(pollMillis)
  }).pipe(
    Effect.catch((error: BrokerError) => Effect.andThen(failed(error, holds.knowledge()), Effect.sleep(againMillis)))
  )
  const giveUp = Effect.suspend(() => {
    if (holds.knowledge() !== "reading") return Effect.void
    holds.become("unavailable")
    const then = options.onControlUnavailable === "run" ? "run" : "are held until it can be"
    return Effect.andThen(
      LogLine.error(
        `The holds of the fleet are not known: topic '${topics.control}' could not be read within ${controlTimeoutMillis} ms. Bindings ${then}`
      ),
      apply
    )
  })
  // A hold may end by itself before the process knows the cluster's time: the first heartbeat tells it.
  const begin = Effect.andThen(awaitAtMost(Effect.ignore(beat), firstBeatMillis), Effect.forever(look))
  // Closed behind the loops: a heartbeat after the tombstone would be that of a process that lives.
  const leave = publisher.publish({ partition: 0, key: Format.bytesOf(Heartbeats.keyOf(id)), value: null })
  yield* Effect.addFinalizer(() => awaitAtMost(Effect.ignore(leave), leaveMillis))
  yield* Effect.forkScoped(keepRunning("fleet control", begin))
  yield* Effect.forkScoped(Effect.andThen(Effect.sleep(controlTimeoutMillis), giveUp))
  yield* Effect.forkScoped(keepRunning("fleet holds", Effect.forever(Effect.andThen(Effect.sleep(1_000), apply))))
  yield* Effect.forkScoped(keepRunning("fleet heartbeats", beating(beat, holdsHaveChanged)))
  return { id, holdsOf: holds.of }
})

/** Applies the holds to all bindings when they may have changed. Answers whether they may have. */
const applied = (holds: ProcessHolds.ProcessHolds, members: () => ReadonlyArray<FleetMember>) => {
  let stamp = holds.stamp()
  return Effect.suspend(() => {
    const before = stamp
    stamp = holds.stamp()
    if (stamp === before) return Effect.succeed(false)
    return Effect.as(
      Effect.forEach(members(), (member) => member.hold(holds.of(member.definition)), { discard: true }),
      true
    )
  })
}

/** The failure to read the control topic that lasts. Its beginning and its end have a line in the log. */
const makeProblem = (topic: string) => {
  let message: string | undefined
  return {
    problem: () => message,
    failed: (error: BrokerError, knowledge: ProcessHolds.Knowledge) =>
      Effect.suspend(() => {
        const isNew = message === undefined
        message = error.message
        const kept = knowledge === "known" ? " The holds stay as they were read last." : ""
        return isNew
          ? LogLine.warning(`The control topic '${topic}' cannot be read: ${error.message}${kept}`)
          : Effect.void
      }),
    worked: Effect.suspend(() => {
      if (message === undefined) return Effect.void
      message = undefined
      return LogLine.info(`The control topic '${topic}' can be read again`)
    })
  }
}

/** Since when operators see a process. From its first heartbeat on a command is for it, too, also while it still reads the control topic. */
const makeVisibility = () => {
  let sinceMillis = Number.POSITIVE_INFINITY
  return {
    seenAt: (appendedMillis: number) => {
      sinceMillis = Math.min(sinceMillis, appendedMillis)
    },
    reaches: ({ appendedMillis = 0 }: ReadCommand): boolean => appendedMillis >= sinceMillis
  }
}

interface Beating {
  readonly id: string
  readonly clock: ClusterClock.ClusterClock
  readonly publisher: Publisher.FleetPublisher
  readonly members: () => ReadonlyArray<FleetMember>
  /** Whether the holds are known; when not, why. */
  readonly control: () => string
  /** The offset in the control topic up to which the holds are applied. */
  readonly obeys: () => bigint | undefined
  /** Told when the cluster appended a heartbeat, where the topic tells. */
  readonly seenAt: (appendedMillis: number) => void
}

/** One heartbeat after another: at once when the holds have changed. */
const beating = (beat: Effect.Effect<void>, holdsHaveChanged: Latch.Latch): Effect.Effect<never> =>
  Effect.forever(
    Effect.timeoutOption(holdsHaveChanged.await, Heartbeats.everyMillis).pipe(
      Effect.andThen(holdsHaveChanged.close),
      Effect.andThen(beat)
    )
  )

/** Writes one heartbeat, and learns the cluster's time from it. A failure that lasts has one line in the log. */
const heartbeats = (
  { hostname, version }: ProcessOptions,
  { id, clock, publisher, members, control, obeys, seenAt }: Beating
): Effect.Effect<void> => {
  let isFailing = false
  const hash = ConfigHash.make()
  return Effect.gen(function* () {
    const snapshots = yield* Effect.forEach(members(), ({ snapshot }) => snapshot)
    const upTo = obeys()
    const head = {
      ...(upTo === undefined ? {} : { obeys: String(upTo) }),
      ...{ host: hostname, pid: globalThis.process?.pid ?? 0, version, control: control() },
      ...{ configHash: hash(members().map(({ definition }) => definition)), sentAt: yield* Clock.currentTimeMillis }
    }
    const key = Format.bytesOf(Heartbeats.keyOf(id))
    const offset = yield* publisher.publish({ partition: 0, key, value: Heartbeats.encode(head, snapshots) })
    const appendedMillis = yield* publisher.appendedMillis(offset)
    clock.newest(appendedMillis)
    if (appendedMillis !== undefined) seenAt(appendedMillis)
    isFailing = false
  }).pipe(
    Effect.catch((error: BrokerError) => {
      const wasFailing = isFailing
      isFailing = true
      return wasFailing
        ? Effect.void
        : LogLine.warning(`Operators do not see this process: its heartbeat failed: ${error.message}`)
    })
  )
}

/**
 * Obeys each command once, each in a fiber of its own: a stop must not hold up the next command. Accepted commands wait until the holds in front of them are applied: right behind a
 * release, a resume would be refused for the hold.
 */
const commandsOf = Effect.fnUntraced(function* (process: Execution.Obeying, publisher: Publisher.FleetPublisher) {
  const fork = yield* FiberSet.makeRuntime()
  const last = new Map<string, Execution.Ack>()
  const publish = (command: string, ack: Execution.Ack) => {
    const { topic: _, ...record } = Acks.record("", command, process.id, { ...ack, host: process.host })
    return publisher.publish(record).pipe(
      Effect.retry({ times: answerTimes, schedule: Schedule.spaced("1 second") }),
      Effect.catch((error) =>
        LogLine.warning(`The answer to command ${command} of the fleet failed: ${error.message}`)
      ),
      Effect.asVoid
    )
  }
  const answer = (id: string) => (ack: Execution.Ack) =>
    Effect.suspend(() => {
      last.set(id, ack)
      const [oldest] = last.keys()
      if (last.size > mostAnswers && oldest !== undefined) last.delete(oldest)
      return publish(id, ack)
    })
  const obey = (command: ReadCommand, isRepeated: boolean): void => {
    const given = last.get(command.id)
    if (!isRepeated) fork(Execution.run(process, command, answer(command.id)))
    // The first answer may be gone from the topic by now.
    else if (given !== undefined) fork(publish(command.id, given))
  }
  const accepted: Array<() => void> = []
  return {
    accept: (command: ReadCommand, isRepeated: boolean) => void accepted.push(() => obey(command, isRepeated)),
    obeyAccepted: () => {
      for (const run of accepted.splice(0)) run()
    }
  }
})
