/**
 * `eventbus dlt groups`: dead letters by the reason of their failure.
 */
import { DeadLetterGroup, LogFormat } from "@eventbus/core"
import { Console, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { shared, statesOf, withLetters } from "./deadLetters.ts"
import { columns, counted, jsonText, timeText } from "./text.ts"

export const groups = Command.make(
  "groups",
  {
    ...shared,
    state: Flag.String("state").pipe(
      Flag.withMetavar("state,..."),
      Flag.withDescription(`Only dead letters in these states: ${DeadLetterGroup.states.join(", ")}. Default: all`),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ state, json, ...source }) {
    const states = yield* statesOf(state, DeadLetterGroup.states)
    const report = yield* withLetters(source, (letters) => letters.groups(states === undefined ? {} : { states }))
    yield* Console.log(json ? jsonText(report) : textOf(report))
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

const textOf = ({ groups, other, foreign, unreadable }: DeadLetterGroup.GroupReport): string => {
  const rows = groups.map(({ fingerprint, count, cameBack, exceptionClass, frame, message, lastMillis }) =>
    [
      fingerprint,
      `${count} to deal with`,
      cameBack === 0 ? "" : `${cameBack} came back`,
      timeText(lastMillis),
      [exceptionClass, frame === undefined ? message : `at ${frame}`].join(" ")
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
