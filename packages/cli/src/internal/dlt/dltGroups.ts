/**
 * `eventbus dlt groups`: dead letters by the reason of their failure.
 */
import type * as DeadLetterAnswers from "@eventbus/admin/DeadLetterAnswers"
import { DeadLetterGroup, LogFormat } from "@eventbus/core"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Target from "../target.ts"
import { columns, counted, jsonText } from "../text.ts"
import { statesOf, topic, withOperator } from "./deadLetters.ts"

export const groups = Command.make(
  "groups",
  {
    ...Target.shared(),
    topic,
    state: Flag.String("state").pipe(
      Flag.withMetavar("state,..."),
      Flag.withDescription(
        `Only dead letters in these states: ${DeadLetterGroup.states.join(", ")}. Letters in other states belong to no group. Default: all`
      ),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ state, json, ...source }) {
    const target = yield* Target.read(source, [])
    const states = yield* statesOf(state, DeadLetterGroup.states)
    const found = yield* withOperator(source, target, (operator) => operator.groups(states))
    yield* Console.log(json ? jsonText(found) : textOf(found))
  })
).pipe(
  Command.withShortDescription("Groups dead letters by the reason of their failure"),
  Command.withDescription(
    "Groups dead letters by the reason of their failure, the group with most of them first: how many wait, since when, and how many came back after a replay."
  ),
  Command.withExamples([
    { command: "eventbus dlt groups app.yaml orders", description: "All groups" },
    { command: "eventbus dlt groups app.yaml orders --state waiting --json", description: "What waits, for a program" }
  ])
)

const textOf = ({ groups, other, foreign, unreadable }: DeadLetterAnswers.Groups): string => {
  const rows = groups.map(
    ({ fingerprint, origin, sourceTopic, count, cameBack, exceptionClass, frame, message = "", first, last }) =>
      [
        ...(sourceTopic === undefined ? [] : [sourceTopic]),
        fingerprint,
        `${count} to deal with`,
        cameBack === 0 ? "" : `${cameBack} came back`,
        first === undefined ? "" : `oldest ${first}`,
        last === undefined ? "" : `newest ${last}`,
        [exceptionClass, frame === undefined ? message : `at ${frame}`].join(" ").trim(),
        origin === "unknown" ? "origin unknown" : ""
      ].map(LogFormat.oneLine)
  )
  const total = groups.reduce((sum, { count }) => sum + count, 0)
  return [
    `${counted(groups.length, "group")}, ${counted(total, "dead letter")} to deal with`,
    ...columns(rows),
    ...(other === 0 ? [] : [`${counted(other, "dead letter")} in further groups`]),
    ...(foreign === 0 ? [] : [`${counted(foreign, "dead letter")} of other consumer groups`]),
    ...(unreadable === 0 ? [] : [`${counted(unreadable, "offset")} that cannot be read`])
  ].join("\n")
}
