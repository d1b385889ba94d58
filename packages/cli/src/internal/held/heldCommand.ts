/**
 * `eventbus held`: records that hold their partition in a running process, and the decision of an operator about one of them. Only the process that owns the partition
 * knows of such a record, so there is no way to it but the admin API of that process.
 */
import type * as HeldAnswers from "@eventbus/admin/HeldAnswers"
import { DeadLetterSelection, LogFormat } from "@eventbus/core"
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import { checkReason } from "../dlt/dltRuns.ts"
import * as Flags from "../flags.ts"
import { atProcess } from "../runningProcess.ts"
import { bindingText } from "../statusCommand.ts"
import * as Target from "../target.ts"
import { columns, counted, jsonText } from "../text.ts"

const binding = Argument.String("binding").pipe(Argument.withDescription("The binding, or cluster:binding"))

const decisionFlags = {
  binding,
  position: Argument.String("partition@offset").pipe(
    Argument.withDescription("The record, as 'held list' names it: the decision is about exactly this one")
  ),
  url: Target.requiredUrl,
  reason: Flag.String("reason").pipe(
    Flag.withAlias("r"),
    Flag.withDescription("Why, for the record: the log of the process has it, and the dead letter")
  ),
  topic: Flag.String("topic").pipe(
    Flag.withDescription("The topic of the record, such as that of a retry tier. Default: the binding's own"),
    Flag.optional
  ),
  json: Flags.json
}

interface Decision {
  readonly binding: string
  readonly position: string
  readonly url: string
  readonly reason: string
  readonly topic: Option.Option<string>
  readonly json: boolean
}

const decided = (verb: "skipHeld" | "deadLetterHeld") =>
  Effect.fnUntraced(function* ({ binding: name, position, url, reason, topic, json }: Decision) {
    yield* checkReason(reason)
    const at = DeadLetterSelection.formatPosition(yield* Flags.positionOf("the position", position))
    const request = { params: { name, position: at }, query: { reason, ...Flags.given("topic", topic) } }
    const found = yield* atProcess(url, ({ client: { held }, asked }) => asked(held[verb](request)))
    yield* Console.log(json ? jsonText(found) : columns([bindingText(found)]).join("\n"))
  })

const list = Command.make(
  "list",
  { binding, url: Target.requiredUrl, json: Flags.json },
  Effect.fnUntraced(function* ({ binding: name, url, json }) {
    const found = yield* atProcess(url, ({ client: { held }, asked }) => asked(held.held({ params: { name } })))
    yield* Console.log(json ? jsonText(found) : textOf(found))
  })
).pipe(
  Command.withShortDescription("Lists the records that wait for a decision"),
  Command.withDescription(
    "Lists the records of a binding that hold their partition in a running process until somebody decides about them, and the batches that cannot be read."
  ),
  Command.withExamples([{ command: "eventbus held list orders --url http://localhost:8080", description: "All" }])
)

const example = (verb: string, description: string) => [
  { command: `eventbus held ${verb} orders 3@1204 --url http://localhost:8080 --reason "INC-1204"`, description }
]

const skip = Command.make("skip", decisionFlags, decided("skipHeld")).pipe(
  Command.withShortDescription("Drops a record that holds its partition"),
  Command.withDescription(
    "Drops exactly the record at this position, or passes the batch there that cannot be read, and its partition goes on. Exit code 1 when it is not held any more."
  ),
  Command.withExamples(example("skip", "For good"))
)

const deadLetter = Command.make("dead-letter", decisionFlags, decided("deadLetterHeld")).pipe(
  Command.withShortDescription("Dead-letters a record that holds its partition"),
  Command.withDescription(
    "Sends exactly the record at this position to the dead letter topic, and its partition goes on. Exit code 1 when it is not held any more."
  ),
  Command.withExamples(example("dead-letter", "To be repaired later"))
)

export const held = Command.make("held").pipe(
  Command.withShortDescription("Decides about records that hold their partition"),
  Command.withDescription(
    "Shows the records that hold their partition in a running process, and skips or dead-letters one of them."
  ),
  Command.withSubcommands([list, skip, deadLetter])
)

const textOf = ({ held: all }: HeldAnswers.AllHeld): string =>
  [`${counted(all.length, "record waits", "records wait")} for a decision`, ...columns(all.map(lineOf))].join("\n")

const lineOf = ({
  position,
  topic,
  kind,
  since,
  exceptionClass,
  message,
  lastOffset,
  detail
}: HeldAnswers.HeldRecord) => {
  const why = [exceptionClass, message, detail].filter((part) => part !== undefined && part !== "").join(": ")
  const end = lastOffset === undefined ? "" : `to ${lastOffset}`
  return [position, end, topic, kind, `since ${since}`, why].map(LogFormat.oneLine)
}
