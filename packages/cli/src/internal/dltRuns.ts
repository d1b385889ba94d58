/**
 * `eventbus dlt runs`, `receipt`, `pause`, `cancel` and `rate`: runs over dead letters, whichever process works on them.
 */
import type { ReplayRun } from "@eventbus/core"
import { Console, Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Source, shared, withRuns } from "./deadLetters.ts"
import { refuseUsage } from "./failures.ts"
import { receiptText, runsText } from "./runText.ts"
import { jsonText } from "./text.ts"

/** The flags of a command about a run. */
export const ofRun = {
  file: shared.file,
  binding: shared.binding,
  id: Argument.String("id").pipe(Argument.withDescription("The id of the run")),
  profile: shared.profile,
  brokers: shared.brokers,
  json: shared.json
}

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

interface OfRun extends Source {
  readonly id: string
  readonly json: boolean
}

/** A command about a run, and the receipt after it. */
const commanded = Effect.fnUntraced(function* <E extends Effect.Error<ReturnType<ReplayRun.RunCommand>>>(
  { id, json, ...source }: OfRun,
  command: (runs: ReplayRun.Runs) => Effect.Effect<void, E>
) {
  const receipt = yield* withRuns(source, (runs) => Effect.andThen(command(runs), runs.receipt(id)))
  yield* Console.log(json ? jsonText(receipt) : receiptText(receipt))
})

export const runs = Command.make(
  "runs",
  shared,
  Effect.fnUntraced(function* ({ json, ...source }) {
    const found = yield* withRuns(source, ({ list }) => list)
    yield* Console.log(json ? jsonText(found) : runsText(found))
  })
).pipe(
  Command.withShortDescription("Lists the runs over dead letters"),
  Command.withDescription("Lists the runs over the dead letters of a binding, the newest first."),
  Command.withExamples([{ command: "eventbus dlt runs app.yaml orders", description: "All runs" }])
)

export const receipt = Command.make("receipt", ofRun, (given) => commanded(given, () => Effect.void)).pipe(
  Command.withShortDescription("Says what has become of a run's copies"),
  Command.withDescription(
    "Says how far a run is, and how many of its copies passed, came back, or wait. A receipt closes when its run is over and no copy waits."
  ),
  Command.withExamples([{ command: `eventbus dlt receipt app.yaml orders ${example}`, description: "By now" }])
)

const halting = (verb: "pause" | "cancel") =>
  Effect.fnUntraced(function* ({ reason: why, ...given }: OfRun & { readonly reason: string }) {
    yield* checkReason(why)
    yield* commanded(given, (runs) => runs[verb](given.id, why))
  })

export const pause = Command.make("pause", { ...ofRun, reason }, halting("pause")).pipe(
  Command.withShortDescription("Pauses a run over dead letters"),
  Command.withDescription("Pauses a run. The process that works on it ends its work within 5 seconds."),
  Command.withExamples([
    { command: `eventbus dlt pause app.yaml orders ${example} --reason "the shop is full"`, description: "For now" }
  ])
)

export const cancel = Command.make("cancel", { ...ofRun, reason }, halting("cancel")).pipe(
  Command.withShortDescription("Ends a run over dead letters for good"),
  Command.withDescription(
    "Ends a run for good. Copies that are published stay, and the other letters stay as they are."
  ),
  Command.withExamples([
    { command: `eventbus dlt cancel app.yaml orders ${example} --reason "wrong letters"`, description: "For good" }
  ])
)

export const rate = Command.make(
  "rate",
  {
    ...ofRun,
    rate: Argument.Int("rate").pipe(Argument.withDescription("Most copies a second, 1 to 100000"))
  },
  ({ rate: given, ...of }) => commanded(of, (runs) => runs.setRate(of.id, given))
).pipe(
  Command.withShortDescription("Sets the rate of a run"),
  Command.withDescription("Sets the rate of a run: most copies a second. The process that works on it obeys at once."),
  Command.withExamples([
    { command: `eventbus dlt rate app.yaml orders ${example} 500`, description: "500 copies a second" }
  ])
)
