/**
 * `eventbus dlt apply` and `resume`: a process works on a run until that is over, paused or stopped, and the command says how far it is.
 */
import type * as RunAnswers from "@eventbus/admin/RunAnswers"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { CommandFailed, exitCodes } from "../failures.ts"
import * as Target from "../target.ts"
import { jsonText } from "../text.ts"
import { handlers, needHandlers, withOperator } from "./deadLetters.ts"
import { example } from "./dltRuns.ts"
import type { Operator } from "./operator.ts"
import { progressText, receiptText } from "./runText.ts"

/** Prints the receipt, and ends with 0 only when the run is done, has dealt with something, and nothing of its plan stays. */
export const ended = Effect.fnUntraced(function* (receipt: RunAnswers.Receipt, said: string, json: boolean) {
  yield* Console.log(json ? jsonText(receipt) : receiptText(receipt, said))
  const { state, dealtWith, count } = receipt
  if (state !== "done" || count === 0) return yield* new CommandFailed({ message: "", code: exitCodes.refused })
  if (dealtWith < count) return yield* new CommandFailed({ message: "", code: exitCodes.partly })
})

const progressInterval = "3 seconds"

/** Works on a run. Once it has begun, lines on standard error say how far it is, as long as that changes. */
export const worked = Effect.fnUntraced(function* (
  operator: Operator,
  verb: "apply" | "resume",
  id: string,
  said: string
) {
  const begun = yield* Deferred.make<void>()
  const telling = Effect.gen(function* () {
    yield* Deferred.await(begun)
    yield* Console.error(`run ${id} has begun; after an interruption: eventbus dlt resume ${said} ${id}`)
    let shown = ""
    while (true) {
      yield* Effect.sleep(progressInterval)
      const receipt = yield* Effect.option(operator.receipt(id))
      const line = Option.match(receipt, { onNone: () => shown, onSome: progressText })
      if (line !== shown) yield* Console.error(line)
      shown = line
    }
  })
  return yield* Effect.raceFirst(operator.work(verb, id, begun), telling)
})

const working = (verb: "apply" | "resume") =>
  Effect.fnUntraced(function* ({ json, ...source }: Target.Source & { readonly json: boolean }) {
    const target = yield* Target.read(source, ["id"])
    const [id = ""] = target.further
    const receipt = yield* withOperator(source, target, (operator) =>
      Effect.gen(function* () {
        const isBare = Option.isNone(source.url) && Option.isNone(source.handlers ?? Option.none())
        // The command about the run says what is wrong with an id that has no plan.
        const plan = isBare ? Option.getOrUndefined(yield* Effect.option(operator.getPlan(id))) : undefined
        yield* needHandlers(plan?.transform, source)
        return yield* worked(operator, verb, id, target.said)
      })
    )
    yield* ended(receipt, target.said, json)
  })

export const apply = Command.make("apply", { ...Target.shared("id"), handlers }, working("apply")).pipe(
  Command.withShortDescription("Applies a plan over dead letters"),
  Command.withDescription(
    "Applies a plan, and works on its run until that is done, paused, stopped or cancelled. Ctrl-C leaves the run to 'dlt resume'. A plan with a transform needs --handlers. Exit code 1 when the run is not done or the plan has no letters, 4 when letters of the plan stay."
  ),
  Command.withExamples([
    { command: `eventbus dlt apply app.yaml orders ${example}`, description: "The plan that 'dlt plan' has made" }
  ])
)

export const resume = Command.make("resume", { ...Target.shared("id"), handlers }, working("resume")).pipe(
  Command.withShortDescription("Goes on with a run over dead letters"),
  Command.withDescription(
    "Goes on with a run that was paused, that stopped itself, or whose process is gone, as 'dlt apply' does. Returns count anew from here."
  ),
  Command.withExamples([
    { command: `eventbus dlt resume app.yaml orders ${example}`, description: "A run that was paused" }
  ])
)
