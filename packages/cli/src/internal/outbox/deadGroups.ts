/**
 * `eventbus outbox dead groups`: dead events by the reason of their failure.
 */
import { LogFormat } from "@eventbus/core"
import type { DeadEvents } from "@eventbus/outbox"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { columns, counted, jsonText } from "../text.ts"
import { shared, withOperator } from "./deadEvents.ts"
import { timeOf } from "./deadEventText.ts"

export const groups = Command.make(
  "groups",
  shared,
  Effect.fnUntraced(function* ({ json, ...source }) {
    const report = yield* withOperator(source, (operator, { view }) =>
      view({ action: "outboxGroups" }, operator.groups)
    )
    const groups = report.groups.map(({ firstMicros, lastMicros, ...group }) => ({
      ...group,
      first: timeOf(firstMicros),
      last: timeOf(lastMicros)
    }))
    yield* Console.log(json ? jsonText({ ...report, groups }) : textOf(report))
  })
).pipe(
  Command.withShortDescription("Groups dead events by the reason of their failure"),
  Command.withDescription(
    "Groups dead events by event type and error, the group with most of them first: how many, and when the first and the last of them died."
  ),
  Command.withExamples([
    { command: "eventbus outbox dead groups --outbox ./outbox.ts", description: "All groups" },
    { command: "eventbus outbox dead groups --outbox ./outbox.ts --json", description: "For a program" }
  ])
)

const textOf = ({ groups, other }: DeadEvents.GroupReport): string => {
  const rows = groups.map(({ fingerprint, eventType, errorClass, message, count, firstMicros, lastMicros }) =>
    [
      fingerprint,
      counted(count, "dead event"),
      eventType,
      `first ${timeOf(firstMicros)}`,
      `last ${timeOf(lastMicros)}`,
      [errorClass, message].filter((part) => part !== "").join(": ")
    ].map(LogFormat.oneLine)
  )
  const total = groups.reduce((sum, { count }) => sum + count, other)
  return [
    `${counted(groups.length, "group")}, ${counted(total, "dead event")}`,
    ...columns(rows),
    ...(other === 0 ? [] : [`${counted(other, "dead event")} in further groups`])
  ].join("\n")
}
