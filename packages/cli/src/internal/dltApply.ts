/**
 * `eventbus dlt apply` and `resume`: this process works on a run until that is over, paused or stopped.
 */
import type { ReplayRun } from "@eventbus/core"
import { Console, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { aside, handlers, type Source, withRuns } from "./deadLetters.ts"
import { example, ofRun } from "./dltRuns.ts"
import { CommandFailed, exitCodes } from "./failures.ts"
import { receiptText } from "./runText.ts"
import { jsonText } from "./text.ts"

const arguments_ = {
  ...ofRun,
  id: Argument.String("id").pipe(Argument.withDescription("The id of the plan, and of its run")),
  handlers
}

/** Prints the receipt, and ends with 0 only when the run is done and nothing of its plan stays. */
export const ended = Effect.fnUntraced(function* (receipt: ReplayRun.Receipt, json: boolean) {
  yield* Console.log(json ? jsonText(receipt) : receiptText(receipt))
  const { state, dealtWith, count } = receipt
  if (state !== "done") return yield* new CommandFailed({ message: "", code: exitCodes.refused })
  if (dealtWith < count) return yield* new CommandFailed({ message: "", code: exitCodes.partly })
})

const working = (verb: "apply" | "resume") =>
  Effect.fnUntraced(function* ({ id, json, ...source }: Source & { readonly id: string; readonly json: boolean }) {
    const receipt = yield* withRuns(source, (runs) =>
      verb === "apply" ? aside(runs.apply(id)) : aside(runs.resume(id))
    )
    yield* ended(receipt, json)
  })

export const apply = Command.make("apply", arguments_, working("apply")).pipe(
  Command.withShortDescription("Applies a plan over dead letters"),
  Command.withDescription(
    "Applies a plan, and works on its run until that is done, paused, stopped or cancelled. Ctrl-C leaves the run to 'dlt resume'. A plan with a transform needs --handlers. Exit code 1 when the run is not done, 4 when letters of the plan stay."
  ),
  Command.withExamples([
    { command: `eventbus dlt apply app.yaml orders ${example}`, description: "The plan that 'dlt plan' has made" }
  ])
)

export const resume = Command.make("resume", arguments_, working("resume")).pipe(
  Command.withShortDescription("Goes on with a run over dead letters"),
  Command.withDescription(
    "Goes on with a run that was paused, that stopped itself, or whose process is gone, as 'dlt apply' does. Returns count anew from here."
  ),
  Command.withExamples([
    { command: `eventbus dlt resume app.yaml orders ${example}`, description: "A run that was paused" }
  ])
)
