/**
 * `eventbus outbox dead show`: one dead event in full.
 */
import { LogFormat } from "@eventbus/core"
import type { DeadEvents } from "@eventbus/outbox"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { refuse } from "../failures.ts"
import { columns, jsonText } from "../text.ts"
import { shared, withOperator } from "./deadEvents.ts"
import { eventAnswer, timeOf } from "./deadEventText.ts"
import { eventId } from "./eventSelection.ts"

export const show = Command.make(
  "show",
  { ...shared, eventId },
  Effect.fnUntraced(function* ({ json, outbox, eventId }) {
    const found = yield* withOperator({ outbox }, (operator, { view }) =>
      view({ action: "outboxShow", target: { event: eventId } }, operator.show(eventId))
    )
    if (found === undefined) return yield* refuse(`no dead event has the id ${eventId}`)
    yield* Console.log(json ? jsonText(answerOf(found)) : textOf(found))
  })
).pipe(
  Command.withShortDescription("Shows one dead event"),
  Command.withDescription("Shows one dead event: why it died, what it is about, its headers and its payload."),
  Command.withExamples([
    {
      command: "eventbus outbox dead show --outbox ./outbox.ts 01KBE2Z0M8Q4Y7T3N5V6W8X9ZA",
      description: "With bytes as text"
    }
  ])
)

/** The payload as text, where it is UTF-8. */
const contentOf = (bytes: Uint8Array): { readonly text: string } | { readonly base64: string } => {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) }
  } catch {
    return { base64: Buffer.from(bytes).toString("base64") }
  }
}

const answerOf = ({ envelope, unreadable, ...event }: DeadEvents.DeadEventDetail) => ({
  ...eventAnswer(event),
  occurredAt: new Date(envelope.occurredAtMillis).toISOString(),
  headers: envelope.headers,
  contentType: envelope.contentType,
  payload: contentOf(envelope.payload),
  ...(unreadable === undefined ? {} : { unreadable })
})

const textOf = ({ envelope, unreadable, ...event }: DeadEvents.DeadEventDetail): string => {
  const content = contentOf(envelope.payload)
  const rows: ReadonlyArray<readonly [string, string | undefined]> = [
    ["error", event.lastError],
    ["group", event.group],
    ["died", timeOf(event.diedAtMicros)],
    ["written", timeOf(event.createdAtMicros)],
    ["failed before", String(event.attempts)],
    ["type", event.eventType],
    ["aggregate", event.aggregateId === undefined ? undefined : `${event.aggregateType} ${event.aggregateId}`],
    ["tenant", event.tenantId],
    ["unreadable", unreadable === undefined ? undefined : `${unreadable.reason}: ${unreadable.rawHeaders ?? "none"}`],
    ...Array.from(envelope.headers, ([name, value]) => ["header", `${name}: ${value}`] as const),
    ["payload", "text" in content ? content.text : `base64 ${content.base64}`]
  ]
  const lines = rows.flatMap(([name, text]) => (text === undefined ? [] : [[name, LogFormat.oneLine(text)]]))
  return [`dead event ${event.eventId}`, ...columns(lines)].join("\n")
}
