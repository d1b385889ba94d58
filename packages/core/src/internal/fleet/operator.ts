/**
 * The operations of operators on a fleet: they write holds and commands to the control topic, and read what processes answer.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Admin, Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type {
  CommandReport,
  CommandRequest,
  Hold,
  HoldRequest,
  HoldTarget,
  ProcessAnswers,
  ReleaseRequest,
  UnfitTopic,
  View
} from "../../FleetView.ts"
import { InvalidArgument } from "../../Replay.ts"
import type { Time } from "../../Time.ts"
import * as Format from "../base/entryFormat.ts"
import { isoText } from "../base/isoText.ts"
import * as Commands from "./commandEntries.ts"
import * as CommandReports from "./commandReports.ts"
import type { Control } from "./control.ts"
import * as Arguments from "./fleetArguments.ts"
import type { FleetLog } from "./fleetLog.ts"
import * as Topics from "./fleetTopics.ts"
import * as Holds from "./holdEntries.ts"
import * as HoldReports from "./holdReports.ts"
import * as OperatorTopics from "./operatorTopics.ts"
import * as ProcessHolds from "./processHolds.ts"
import * as ProcessViews from "./processViews.ts"
import * as Releases from "./releaseEntries.ts"

type Failure = InvalidArgument | UnfitTopic | BrokerError

export interface Operator {
  readonly createTopics: Effect.Effect<void, BrokerError | UnfitTopic>
  readonly hold: (request: HoldRequest) => Effect.Effect<Hold, Failure>
  readonly release: (request: ReleaseRequest) => Effect.Effect<boolean, Failure>
  readonly applied: (target: HoldTarget, wait?: Time) => Effect.Effect<ProcessAnswers, InvalidArgument | BrokerError>
  readonly command: (request: CommandRequest) => Effect.Effect<CommandReport, Failure>
  readonly view: Effect.Effect<View, BrokerError>
}

export interface OperatorOptions {
  readonly broker: Broker["Service"]
  readonly topics: Topics.FleetTopics
  readonly hostname: string
}

/** Commands are ended so long after they were given. */
const commandsLastMillis = 604_800_000

/** Nothing is connected before the first operation. The clients close with the scope. */
export const make = Effect.fnUntraced(function* ({
  broker,
  topics,
  hostname
}: OperatorOptions): Effect.fn.Return<Operator, never, Scope.Scope> {
  const own = yield* OperatorTopics.make(broker, topics)

  const withAdmin = <A, E>(use: (admin: Admin) => Effect.Effect<A, E>) =>
    Effect.scoped(Effect.flatMap(broker.admin, use))

  /** For operations that write to the control topic. */
  const writing = <A, E>(use: (control: Control, admin: Admin) => Effect.Effect<A, E>) =>
    withAdmin((admin) =>
      Effect.andThen(
        Topics.ensure(admin, topics, "control"),
        Effect.flatMap(own.control(admin), (control) => use(control, admin))
      )
    )

  return {
    createTopics: withAdmin((admin) =>
      Effect.andThen(Topics.ensure(admin, topics, "control"), Topics.ensure(admin, topics, "fleet"))
    ),
    hold: (request) =>
      Effect.flatMap(Arguments.hold(request, hostname), ({ address, by, reason, untilMillis }) =>
        writing(
          Effect.fnUntraced(function* ({ holds }, admin) {
            if (untilMillis !== undefined) yield* refusePast(own, admin, untilMillis)
            const key = Holds.keyOf(address)
            yield* own.write([[key, Format.encode({ by, reason, until: untilMillis }, holds.get(key)?.fields)]])
            const written = { ...address, by, reason, sinceMillis: own.nowMillis(), untilMillis }
            return holds.get(key)?.hold ?? written
          })
        )
      ),
    release: (request) =>
      Effect.flatMap(Arguments.release(request, hostname), ({ address, by, reason }) =>
        writing(({ holds }) => {
          const key = Holds.keyOf(address)
          const held = holds.get(key)?.hold
          const note = held === undefined ? [] : [Releases.entryOf(held, { by, reason })]
          // A process may know a hold of a topic that was deleted: the tombstone reaches it, too.
          return Effect.as(own.write([...note, [key, null]]), held !== undefined)
        })
      ),
    applied: (target, wait) =>
      Effect.flatMap(Arguments.applied(target, wait), ([address, waitMillis]) =>
        withAdmin(
          Effect.fnUntraced(function* (admin) {
            const newest = (yield* own.control(admin)).newest()
            const { processes } = yield* own.log(admin)
            const now = () => HoldReports.of(address, newest, ProcessViews.of(processes, own.nowMillis()), processes)
            return yield* untilNobodyIsMissing(own, now, waitMillis)
          })
        )
      ),
    command: (request) =>
      Effect.flatMap(Arguments.command(request, hostname), (command) =>
        writing(
          Effect.fnUntraced(function* (control, admin) {
            const { id = globalThis.crypto.randomUUID() } = command
            yield* give(own, control, id, command.entry)
            return yield* report(own, yield* own.log(admin), id, command)
          })
        )
      ),
    view: withAdmin((admin) => viewOf(own, topics, admin))
  }
})

/** The fleet at this moment. */
const viewOf = Effect.fnUntraced(function* (
  own: OperatorTopics.OperatorTopics,
  topics: Topics.FleetTopics,
  admin: Admin
): Effect.fn.Return<View, BrokerError> {
  const problems = [
    ...(yield* Topics.problems(admin, topics, "control")),
    ...(yield* Topics.problems(admin, topics, "fleet"))
  ]
  const { holds, releases } = yield* own.control(admin)
  const log = yield* own.log(admin)
  yield* own.freshen
  const asOfMillis = own.nowMillis()
  const processes = ProcessViews.of(log.processes, asOfMillis, own.provenMillis())
  return {
    ...{ processes, holds: ProcessHolds.activeAt(holds, asOfMillis), problems, asOfMillis },
    releases: Array.from(releases.values()).sort((one, other) => other.atMillis - one.atMillis)
  }
})

/** A hold that has ended already would hold nothing, and end the one that it replaces. */
const refusePast = Effect.fnUntraced(function* (own: OperatorTopics.OperatorTopics, admin: Admin, untilMillis: number) {
  yield* own.log(admin)
  yield* own.freshen
  const now = own.nowMillis()
  if (untilMillis > now) return
  const expected = `a time after now, which is ${isoText(now)} by the cluster's clock`
  return yield* new InvalidArgument({ command: "hold", argument: "until", given: String(untilMillis), expected })
})

/** Writes the command unless the topic has it, and ends those that are seven days old. */
const give = Effect.fnUntraced(function* (
  own: OperatorTopics.OperatorTopics,
  { commands }: Control,
  id: string,
  entry: Commands.CommandEntry
) {
  const known = commands.get(id)
  if (known === undefined) {
    const over = Array.from(commands.values())
      .filter(({ appendedMillis = 0 }) => own.nowMillis() - appendedMillis > commandsLastMillis)
      .map((command) => [Commands.keyOf(command.id), null] as const)
    yield* own.write([[Commands.keyOf(id), Format.encode(entry)], ...over])
  } else if (!CommandReports.isSame(known, entry)) {
    const expected = "the id of no other command"
    return yield* new InvalidArgument({ command: "command", argument: "id", given: id, expected })
  }
})

/** Waits until all processes that live have answered. The command's own append time says which do. */
const report = Effect.fnUntraced(function* (
  own: OperatorTopics.OperatorTopics,
  log: FleetLog,
  id: string,
  { entry, waitMillis }: Arguments.Command
) {
  const asked = CommandReports.asked(ProcessViews.of(log.processes, own.nowMillis()), entry)
  return yield* untilNobodyIsMissing(own, () => CommandReports.of(id, asked, log.acks.get(id)), waitMillis)
})

/** The report once nobody is missing in it, or after `waitMillis`. */
const untilNobodyIsMissing = <Report extends ProcessAnswers>(
  { poll }: OperatorTopics.OperatorTopics,
  now: () => Report,
  waitMillis: number
): Effect.Effect<Report, BrokerError> => {
  const isWhole = () => now().missing.length === 0
  // All may have answered before the first poll, which would wait for something new.
  const polled = Effect.suspend(() => (isWhole() ? Effect.void : Effect.repeat(poll, { until: isWhole })))
  return Effect.map(Effect.timeoutOption(polled, waitMillis), now)
}
