/**
 * `eventbus start`, `stop`, `pause` and `resume`: commands on a binding of a running process.
 */
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { checkReason } from "./dlt/dltRuns.ts"
import * as Flags from "./flags.ts"
import { atProcess } from "./runningProcess.ts"
import { bindingText } from "./statusCommand.ts"
import * as Target from "./target.ts"
import { columns, jsonText } from "./text.ts"

const flags = {
  binding: Argument.String("binding").pipe(Argument.withDescription("The binding, or cluster:binding")),
  url: Target.requiredUrl,
  reason: Flag.String("reason").pipe(
    Flag.withAlias("r"),
    Flag.withDescription("Why, for the record: the log of the process has it")
  ),
  json: Flags.json
}

const tier = Flag.Int("tier").pipe(
  Flag.withDescription("Only this retry tier, from 1. Default: the whole binding"),
  Flag.optional
)

interface Given {
  readonly binding: string
  readonly url: string
  readonly reason: string
  readonly json: boolean
  readonly tier?: Option.Option<number>
}

const commanded = (verb: "start" | "stop" | "pause" | "resume") =>
  Effect.fnUntraced(function* ({ binding, url, reason, json, tier = Option.none() }: Given) {
    yield* checkReason(reason)
    const params = { name: binding }
    const query = { reason, ...Flags.given("tier", tier) }
    const found = yield* atProcess(url, ({ client: { bindings }, asked }) =>
      verb === "start" || verb === "stop"
        ? asked(bindings[verb]({ params, query: { reason } }))
        : asked(bindings[verb]({ params, query }))
    )
    yield* Console.log(json ? jsonText(found) : columns([bindingText(found)]).join("\n"))
  })

const example = (verb: string) => [
  {
    command: `eventbus ${verb} orders --url http://localhost:8080 --reason "INC-1204"`,
    description: "A binding of this process"
  }
]

const ofProcess = "It is about this process alone: others of the group go on as they are."

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

export const pause = Command.make("pause", { ...flags, tier }, commanded("pause")).pipe(
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
