/**
 * `eventbus start`, `stop`, `pause` and `resume`: commands on a binding of a running process, or of all processes of its fleet.
 */
import { Settings } from "@eventbus/config"
import type { FleetView } from "@eventbus/core"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { checkReason } from "./dlt/dltRuns.ts"
import { CommandFailed, exitCodes, refuseUsage } from "./failures.ts"
import * as Flags from "./flags.ts"
import * as FleetOperator from "./fleetOperator.ts"
import { commandedText, undone } from "./fleetText.ts"
import { atProcess } from "./runningProcess.ts"
import { bindingText } from "./statusCommand.ts"
import * as Target from "./target.ts"
import { columns, jsonText } from "./text.ts"

const flags = {
  ...Target.shared(),
  reason: Flag.String("reason").pipe(
    Flag.withAlias("r"),
    Flag.withDescription("Why, for the record: the log of the process has it, and a hold of the fleet")
  ),
  fleet: Flag.Boolean("fleet").pipe(
    Flag.withDescription("In all processes: by a process with --url, else straight on the cluster of the file"),
    Flag.withDefault(false)
  )
}

const tier = Flag.Int("tier").pipe(
  Flag.withDescription("Only this retry tier, from 1. Default: the whole binding"),
  Flag.optional
)

const until = Flag.String("until").pipe(
  Flag.withDescription("With --fleet: when the hold ends by itself, ISO-8601 with Z or an offset"),
  Flag.optional
)

interface Given extends Target.Source {
  readonly reason: string
  readonly json: boolean
  readonly fleet: boolean
  readonly tier?: Option.Option<number>
  readonly until?: Option.Option<string>
}

const commanded = (verb: FleetView.Verb) =>
  Effect.fnUntraced(function* ({ fleet, ...given }: Given) {
    yield* checkReason(given.reason)
    return yield* fleet ? inFleet(verb, given) : inProcess(verb, given)
  })

type Asked = Omit<Given, "fleet">

const inProcess = Effect.fnUntraced(function* (verb: FleetView.Verb, given: Asked) {
  const { url, reason, json, tier = Option.none(), until = Option.none() } = given
  if (Option.isNone(url)) return yield* refuseUsage("--url names the process; --fleet is for all of them")
  if (Option.isSome(until)) return yield* refuseUsage("--until needs --fleet: a pause of one process has no end")
  const { binding: name } = yield* Target.read(given, [])
  const query = { reason, ...Flags.given("tier", tier) }
  const found = yield* atProcess(url.value, ({ client: { bindings }, asked }) =>
    asked(bindings[verb]({ params: { name }, query, payload: {} }))
  )
  // A process answers so for itself, and otherwise for the fleet.
  if ("state" in found) yield* Console.log(json ? jsonText(found) : columns([bindingText(found)]).join("\n"))
})

const inFleet = Effect.fnUntraced(function* (verb: FleetView.Verb, given: Asked) {
  const { reason, json, tier = Option.none(), until = Option.none() } = given
  const target = yield* Target.read(given, [])
  const ends = Option.map(until, Settings.parseTime)
  if (Option.exists(ends, Number.isNaN))
    return yield* refuseUsage("--until is no time; allowed is ISO-8601 with Z or an offset, or epoch milliseconds")
  const request = { reason, ...Flags.given("tier", tier), ...Flags.given("until", ends) }
  const found = yield* FleetOperator.command(given, target, verb, request)
  yield* Console.log(json ? jsonText(found) : commandedText(found))
  const message = undone(found)
  if (message !== "") return yield* Effect.fail(new CommandFailed({ message, code: exitCodes.partly }))
})

const example = (verb: string) => [
  {
    command: `eventbus ${verb} orders --url http://localhost:8080 --reason "INC-1204"`,
    description: "A binding of this process"
  },
  {
    command: `eventbus ${verb} app.yaml orders --fleet --reason "INC-1204"`,
    description: "In all processes, straight on the cluster"
  }
]

const ofProcess =
  "It is about this process alone: others of the group go on as they are. With --fleet it is about all of them; exit code 4 when some process has not answered."

export const start = Command.make("start", flags, commanded("start")).pipe(
  Command.withShortDescription("Starts a binding of a running process"),
  Command.withDescription(`Starts a binding of a running process that is created or stopped. ${ofProcess}`),
  Command.withExamples(example("start"))
)

export const stop = Command.make("stop", flags, commanded("stop")).pipe(
  Command.withShortDescription("Stops a binding of a running process"),
  Command.withDescription(
    `Stops a binding of a running process: running handlers end and commit, and it leaves its group. ${ofProcess}`
  ),
  Command.withExamples(example("stop"))
)

export const pause = Command.make("pause", { ...flags, tier, until }, commanded("pause")).pipe(
  Command.withShortDescription("Pauses a binding of a running process"),
  Command.withDescription(
    `Pauses a binding of a running process, or one of its retry tiers; it stays in its group. ${ofProcess}`
  ),
  Command.withExamples(example("pause"))
)

export const resume = Command.make("resume", { ...flags, tier }, commanded("resume")).pipe(
  Command.withShortDescription("Resumes a binding of a running process"),
  Command.withDescription(`Resumes a binding of a running process, or one of its retry tiers. ${ofProcess}`),
  Command.withExamples(example("resume"))
)
