/**
 * `eventbus dlt show`: one dead letter in full.
 */
import type * as DeadLetterAnswers from "@eventbus/admin/DeadLetterAnswers"
import { LogFormat } from "@eventbus/core"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { refuse } from "../failures.ts"
import * as Flags from "../flags.ts"
import * as Target from "../target.ts"
import { columns, jsonText } from "../text.ts"
import { handlers, topic, withOperator } from "./deadLetters.ts"
import { errorText, eventText, originText } from "./letterText.ts"

export const show = Command.make(
  "show",
  { ...Target.shared("partition@offset"), topic, handlers },
  Effect.fnUntraced(function* ({ json, ...source }) {
    const target = yield* Target.read(source, ["partition@offset"])
    const [text = ""] = target.further
    const position = yield* Flags.positionOf("the position", text)
    const found = yield* withOperator(source, target, (operator) => operator.letter(position))
    if (found === undefined) return yield* refuse(`the dead letter topic has no record at ${text}`)
    yield* Console.log(json ? jsonText(found) : textOf(found))
  })
).pipe(
  Command.withShortDescription("Shows one dead letter"),
  Command.withDescription(
    "Shows one dead letter: why it failed, where it came from, what was done about it, its headers, and key and value as the serdes of --handlers read them."
  ),
  Command.withExamples([
    { command: "eventbus dlt show app.yaml orders 3@17", description: "With bytes as text" },
    { command: "eventbus dlt show app.yaml orders 3@17 --handlers ./handlers.ts --json", description: "Decoded" }
  ])
)

const textOf = (letter: DeadLetterAnswers.Letter): string => {
  const { position, state, origin, unreadable, history, payload } = letter
  const { causes = [], headers = [] } = payload ?? {}
  const rows: ReadonlyArray<readonly [string, string | undefined]> = [
    ["error", errorText(letter)],
    ...causes.map((cause) => ["caused by", `${cause.exceptionClass}: ${cause.message}`] as const),
    ["group", letter.fingerprint],
    [
      // Its time is that of the record itself: nothing says that it was dead-lettered then.
      origin === "unknown" ? "written" : "dead-lettered",
      [letter.deadLettered, letter.reason, letter.detail].filter((part) => part !== undefined).join("  ")
    ],
    ["came from", originText(letter)],
    ["attempts", origin === "unknown" && letter.totalAttempts === 0 ? undefined : String(letter.totalAttempts)],
    ["replays", String(letter.replayCount)],
    ["came back from", letter.cameBackFrom === undefined ? undefined : `run ${letter.cameBackFrom}`],
    ...history.map((event) => ["history", eventText(event)] as const),
    ["owner", letter.owner],
    ["key", contentText(payload?.key)],
    ["value", contentText(payload?.value)],
    ...headers.map(({ name, value = "" }) => ["header", `${name}: ${value}`] as const)
  ]
  const known = unreadable === undefined ? rows : [["unreadable", unreadable] as const]
  const lines = known.flatMap(([name, text]) => (text === undefined ? [] : [[name, LogFormat.oneLine(text)]]))
  return [`dead letter ${position}  ${state}`, ...columns(lines)].join("\n")
}

const contentText = (content: DeadLetterAnswers.Content | undefined): string | undefined => {
  const text = content?.text ?? (content?.base64 === undefined ? undefined : `base64 ${content.base64}`)
  return content?.problem === undefined ? text : `${text ?? "none"}  (${content.problem})`
}
