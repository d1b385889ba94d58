/**
 * `eventbus outbox dead apply` and `receipt`: works on a plan, and says what has become of its events.
 */
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { CommandFailed, exitCodes, refuse } from "../failures.ts"
import { jsonText } from "../text.ts"
import { shared, withOperator } from "./deadEvents.ts"
import { progressText, receiptText } from "./deadEventText.ts"
import * as PlanFile from "./planFile.ts"

const file = Argument.String("plan").pipe(
  Argument.withDescription("The file that 'outbox dead plan --out' has written")
)

const progressInterval = "3 seconds"

export const apply = Command.make(
  "apply",
  { ...shared, file },
  Effect.fnUntraced(function* ({ outbox, json, file }) {
    const plan = yield* PlanFile.read(file)
    const { id, action, reason } = plan
    const report = yield* withOperator({ outbox }, (operator, { change }) => {
      const telling = Effect.gen(function* () {
        let shown = ""
        while (true) {
          yield* Effect.sleep(progressInterval)
          const receipt = yield* Effect.option(operator.receipt(plan))
          const line = Option.match(receipt, { onNone: () => shown, onSome: progressText })
          if (line !== shown) yield* Console.error(line)
          shown = line
        }
      })
      const command = { action: "outboxApply", permissions: [action], reason, run: id }
      return change(command, Effect.raceFirst(operator.apply(plan), telling))
    })
    yield* Console.log(json ? jsonText(report) : receiptText(report))
    if (report.state === "stopped" || report.count === 0) return yield* refuse("")
    if (report.dealtWith < report.count) return yield* new CommandFailed({ message: "", code: exitCodes.partly })
  })
).pipe(
  Command.withShortDescription("Applies a plan over dead events"),
  Command.withDescription(
    "Replays or deletes the events of a plan until that is done or stops itself. A plan one of whose events has changed since is refused. Exit code 1 when the work stopped itself, 4 when somebody else dealt with events of the plan meanwhile. After an interruption, 'receipt' says what was done; the rest needs a new plan."
  ),
  Command.withExamples([
    {
      command: "eventbus outbox dead apply --outbox ./outbox.ts plan.json",
      description: "The plan that 'outbox dead plan' has written"
    }
  ])
)

export const receipt = Command.make(
  "receipt",
  { ...shared, file },
  Effect.fnUntraced(function* ({ outbox, json, file }) {
    const plan = yield* PlanFile.read(file)
    const found = yield* withOperator({ outbox }, (operator, { view }) =>
      view({ action: "outboxReceipt", run: plan.id }, operator.receipt(plan))
    )
    yield* Console.log(json ? jsonText(found) : receiptText(found))
  })
).pipe(
  Command.withShortDescription("Says what has become of the events of a plan"),
  Command.withDescription(
    "Says how many events of a plan are delivered, dead again, or wait. A receipt closes when none waits."
  ),
  Command.withExamples([
    { command: "eventbus outbox dead receipt --outbox ./outbox.ts plan.json", description: "By now" }
  ])
)
