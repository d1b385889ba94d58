/**
 * `eventbus outbox dead list`: dead events one by one, the oldest first.
 */
import { LogFormat } from "@eventbus/core"
import type { DeadEvents } from "@eventbus/outbox"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Flags from "../flags.ts"
import { columns, jsonText } from "../text.ts"
import { shared, withOperator } from "./deadEvents.ts"
import { eventAnswer, selectionText, timeOf } from "./deadEventText.ts"
import * as Selection from "./eventSelection.ts"

export const list = Command.make(
  "list",
  {
    ...shared,
    group: Flag.optional(Selection.group),
    ...Selection.ofEvent,
    after: Flag.String("after").pipe(
      Flag.withMetavar("cursor"),
      Flag.withDescription("The page that follows, as the page before names it"),
      Flag.optional
    ),
    limit: Flags.limit("dead events")
  },
  Effect.fnUntraced(function* ({ json, outbox, group, type, aggregateType, aggregateId, after, limit }) {
    const query: DeadEvents.ListQuery = {
      limit,
      ...Flags.given("group", group),
      ...Flags.given("eventType", type),
      ...Flags.given("aggregateType", aggregateType),
      ...Flags.given("aggregateId", aggregateId),
      ...Flags.given("after", after)
    }
    const page = yield* withOperator({ outbox }, (operator, { view }) =>
      view({ action: "outboxList" }, operator.list(query))
    )
    yield* Console.log(json ? jsonText({ ...page, events: page.events.map(eventAnswer) }) : textOf(page, query))
  })
).pipe(
  Command.withShortDescription("Lists dead events, the oldest first"),
  Command.withDescription("Lists dead events in the order of their writing, page by page, with the error of each."),
  Command.withExamples([
    { command: "eventbus outbox dead list --outbox ./outbox.ts", description: "The oldest 50" },
    {
      command: "eventbus outbox dead list --outbox ./outbox.ts --group v1-9f86d081884c7d65 --limit 10",
      description: "Of a group"
    }
  ])
)

/** An empty page says of which events there are none. */
const noneText = ({ group, eventType, aggregateType, aggregateId, after }: DeadEvents.ListQuery): string => {
  const asked = selectionText({
    ...(group === undefined ? {} : { groups: [group] }),
    ...(eventType === undefined ? {} : { eventType }),
    ...(aggregateType === undefined ? {} : { aggregateType }),
    ...(aggregateId === undefined ? {} : { aggregateId })
  })
  const found = after === undefined ? "no dead events" : "no further dead events"
  return LogFormat.oneLine(asked === "" ? found : `${found} of ${asked}`)
}

const textOf = ({ events, next }: DeadEvents.DeadEventPage, query: DeadEvents.ListQuery): string => {
  const rows = events.map(({ eventId, eventType, aggregateType, aggregateId, diedAtMicros, group, lastError = "" }) =>
    [
      eventId,
      `died ${timeOf(diedAtMicros)}`,
      eventType,
      aggregateId === undefined ? "" : `${aggregateType} ${aggregateId}`,
      group,
      lastError.slice(0, 200)
    ].map(LogFormat.oneLine)
  )
  const more = next === undefined ? [] : [`more: --after ${next}`]
  return [...(rows.length === 0 ? [noneText(query)] : columns(rows)), ...more].join("\n")
}
