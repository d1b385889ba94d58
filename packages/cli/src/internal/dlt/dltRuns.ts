/**
 * `eventbus dlt runs`, `receipt`, `pause`, `cancel` and `rate`: runs over dead letters, whichever process works on them.
 */
import type * as RunAnswers from "@eventbus/admin/RunAnswers"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { refuseUsage } from "../failures.ts"
import * as Target from "../target.ts"
import { jsonText } from "../text.ts"
import { withOperator } from "./deadLetters.ts"
import type { Failed, Operator } from "./operator.ts"
import { receiptText, runsText } from "./runText.ts"

/** An id for examples. */
export const example = "6f1c2c1e-8a55-4a44-9c53-1f9a7d3f6b20"

/** Why somebody decides about dead letters. */
export const reason = Flag.String("reason").pipe(
  Flag.withAlias("r"),
  Flag.withDescription("Why, for the record: it is kept with the run")
)

/** A reason that says nothing is refused before the cluster is asked. */
export const checkReason = (given: string) =>
  given.trim() === "" ? refuseUsage("--reason is empty; allowed is a text that says why") : Effect.void

interface OfRun extends Target.Source {
  readonly json: boolean
}

/** A command about a run, and the receipt after it. */
const commanded = Effect.fnUntraced(function* (
  { json, ...source }: OfRun,
  further: ReadonlyArray<string>,
  command: (operator: Operator, ...further: ReadonlyArray<string>) => Effect.Effect<RunAnswers.Receipt, Failed>
) {
  const target = yield* Target.read(source, further)
  const receipt = yield* withOperator(source, target, (operator) => command(operator, ...target.further))
  yield* Console.log(json ? jsonText(receipt) : receiptText(receipt, target.said))
})

export const runs = Command.make(
  "runs",
  Target.shared(),
  Effect.fnUntraced(function* ({ json, ...source }) {
    const target = yield* Target.read(source, [])
    const found = yield* withOperator(source, target, (operator) => operator.runs)
    yield* Console.log(json ? jsonText(found) : runsText(found, target.said))
  })
).pipe(
  Command.withShortDescription("Lists the runs over dead letters"),
  Command.withDescription("Lists the runs over the dead letters of a binding, the newest first."),
  Command.withExamples([{ command: "eventbus dlt runs app.yaml orders", description: "All runs" }])
)

export const receipt = Command.make("receipt", Target.shared("id"), (given) =>
  commanded(given, ["id"], (operator, id = "") => operator.receipt(id))
).pipe(
  Command.withShortDescription("Says what has become of a run's copies"),
  Command.withDescription(
    "Says how far a run is, and how many of its copies passed, came back, or wait. A receipt closes when its run is over and no copy waits."
  ),
  Command.withExamples([{ command: `eventbus dlt receipt app.yaml orders ${example}`, description: "By now" }])
)

const halting = (verb: "pause" | "cancel") =>
  Effect.fnUntraced(function* ({ reason: why, ...given }: OfRun & { readonly reason: string }) {
    yield* checkReason(why)
    yield* commanded(given, ["id"], (operator, id = "") => operator.halt(verb, id, why))
  })

export const pause = Command.make("pause", { ...Target.shared("id"), reason }, halting("pause")).pipe(
  Command.withShortDescription("Pauses a run over dead letters"),
  Command.withDescription("Pauses a run. The process that works on it ends its work within 5 seconds."),
  Command.withExamples([
    { command: `eventbus dlt pause app.yaml orders ${example} --reason "the shop is full"`, description: "For now" }
  ])
)

export const cancel = Command.make("cancel", { ...Target.shared("id"), reason }, halting("cancel")).pipe(
  Command.withShortDescription("Ends a run over dead letters for good"),
  Command.withDescription(
    "Ends a run for good. Copies that are published stay, and the other letters stay as they are."
  ),
  Command.withExamples([
    { command: `eventbus dlt cancel app.yaml orders ${example} --reason "wrong letters"`, description: "For good" }
  ])
)

export const rate = Command.make("rate", Target.shared("id", "rate"), (given) =>
  commanded(given, ["id", "rate"], (operator, id = "", rate = "") =>
    /^\d{1,6}$/.test(rate)
      ? operator.setRate(id, Number(rate))
      : refuseUsage(`the rate is "${rate}"; allowed is a whole number, 1 to 100000`)
  )
).pipe(
  Command.withShortDescription("Sets the rate of a run"),
  Command.withDescription("Sets the rate of a run: most copies a second. The process that works on it obeys at once."),
  Command.withExamples([
    { command: `eventbus dlt rate app.yaml orders ${example} 500`, description: "500 copies a second" }
  ])
)
