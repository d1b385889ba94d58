/**
 * `eventbus dlt list`: dead letters one by one, the newest first.
 */
import type * as DeadLetterAnswers from "@eventbus/admin/DeadLetterAnswers"
import { DeadLetterList, DeadLetterSelection, LogFormat } from "@eventbus/core"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { refuseUsage } from "../failures.ts"
import * as Flags from "../flags.ts"
import * as Target from "../target.ts"
import { columns, jsonText } from "../text.ts"
import { group, statesOf, topic, withOperator } from "./deadLetters.ts"
import { errorText, eventText } from "./letterText.ts"

export const list = Command.make(
  "list",
  {
    ...Target.shared(),
    topic,
    group: Flag.optional(group),
    state: Flag.String("state").pipe(
      Flag.withMetavar("state,..."),
      Flag.withDescription(`Only dead letters in these states: ${DeadLetterList.states.join(", ")}. Default: all`),
      Flag.optional
    ),
    text: Flag.String("text").pipe(
      Flag.withDescription("With this text in exception class, message, detail, topic, key or value, in whatever case"),
      Flag.optional
    ),
    before: Flags.before,
    limit: Flags.limit("dead letters")
  },
  Effect.fnUntraced(function* ({ group, state, text, before, limit, json, ...source }) {
    const target = yield* Target.read(source, [])
    const states = yield* statesOf(state, DeadLetterList.states)
    yield* checkPage(group, before)
    const query: DeadLetterList.Query = {
      limit,
      ...Flags.given("fingerprint", group),
      ...Flags.given("text", text),
      ...Flags.given("before", before),
      ...(states === undefined ? {} : { states })
    }
    const page = yield* withOperator(source, target, (operator) => operator.page(query))
    yield* Console.log(json ? jsonText(page) : textOf(page))
  })
).pipe(
  Command.withShortDescription("Lists dead letters, the newest first"),
  Command.withDescription(
    "Lists dead letters, the newest first over all partitions, page by page, and what was done about each last."
  ),
  Command.withExamples([
    { command: "eventbus dlt list app.yaml orders", description: "The newest 50" },
    { command: "eventbus dlt list app.yaml orders --group v1-9f86d081884c7d65 --text o-17", description: "Of a group" }
  ])
)

/** The group and the cursor are refused before the cluster or the process is asked. */
const checkPage = Effect.fnUntraced(function* (group: Option.Option<string>, before: Option.Option<string>) {
  const [issue] = Option.isNone(group) ? [] : DeadLetterSelection.issues({ fingerprints: [group.value] })
  if (issue !== undefined) return yield* refuseUsage(`--group is ${issue.given}; allowed is ${issue.expected}`)
  if (Option.isSome(before) && !DeadLetterList.isCursor(before.value))
    return yield* refuseUsage(`--before is ${before.value.slice(0, 100)}; allowed is the cursor of the page before`)
})

const textOf = ({ letters, next }: DeadLetterAnswers.Page): string => {
  const rows = letters.map((letter) => {
    const { history, unreadable } = letter
    const last = history.at(-1)
    return [
      ...(letters.some(({ sourceTopic }) => sourceTopic !== undefined) ? [letter.sourceTopic ?? ""] : []),
      letter.position,
      letter.state,
      letter.deadLettered ?? "",
      letter.fingerprint,
      letter.key ?? "",
      unreadable ?? errorText(letter).slice(0, 200),
      unreadable === undefined && letter.origin === "unknown" ? "origin unknown" : "",
      last === undefined ? "" : eventText(last)
    ].map(LogFormat.oneLine)
  })
  const more = next === undefined ? [] : [`more: --before ${next}`]
  return [...(rows.length === 0 ? ["no dead letters"] : columns(rows)), ...more].join("\n")
}
