/**
 * Dead events, plans and receipts as text for a terminal, and for programs.
 */
import { LogFormat } from "@eventbus/core"
import type { DeadEvents } from "@eventbus/outbox"
import { columns, counted, indent } from "../text.ts"

/** A time of the database as ISO-8601. */
export const timeOf = (micros: number): string => new Date(Math.floor(micros / 1_000)).toISOString()

/** A dead event for programs: times are ISO-8601. */
export const eventAnswer = ({ createdAtMicros, diedAtMicros, ...event }: DeadEvents.DeadEvent) => ({
  ...event,
  createdAt: timeOf(createdAtMicros),
  diedAt: timeOf(diedAtMicros)
})

const mostNames = 10

const few = (names: ReadonlyArray<string>, count = names.length): string => {
  const shown = names.slice(0, mostNames)
  return [...shown, ...(count > shown.length ? [`${count - shown.length} more`] : [])].join(", ")
}

/** Such as `group v1-9f86d081884c7d65, type Placed`. */
export const selectionText = (select: DeadEvents.Selection): string => {
  const { groups, eventType, aggregateType, aggregateId, eventIds, all } = select
  const parts = [
    ...(all === undefined ? [] : ["all"]),
    ...(groups === undefined ? [] : [`group ${few(groups)}`]),
    ...(eventType === undefined ? [] : [`type ${eventType}`]),
    ...(aggregateType === undefined ? [] : [`aggregate type ${aggregateType}`]),
    ...(aggregateId === undefined ? [] : [`aggregate ${aggregateId}`]),
    ...(eventIds === undefined ? [] : [`id ${few(eventIds)}`])
  ]
  return parts.join(", ")
}

const verbs = { replay: "would be replayed", discard: "would be deleted, for good" } as const

/** The plan in words. `file`: where it lies; undefined when it lies nowhere. */
export const planText = (plan: DeadEvents.Plan, outbox: string, file: string | undefined): string => {
  const { id, action, select, reason, rate, canary, canaryWaitMillis, stopAbove, count, further, events } = plan
  const ofReplays = [
    ["rate", `${rate} a second at most`],
    [
      "canary",
      canary === 0 ? "none" : `${canary} first; the others wait ${canaryWaitMillis} ms at most for their fate`
    ],
    ["stops", stopAbove >= 100 ? "never by itself" : `when more than ${stopAbove} % of the events fail again`]
  ]
  const sample = events.slice(0, mostNames).map(([eventId]) => eventId)
  const rows = [
    ["selection", selectionText(select)],
    ["reason", reason],
    ...(action === "replay" ? ofReplays : []),
    ...(count === 0 ? [] : [["events", few(sample, count)]])
  ].map((row) => row.map(LogFormat.oneLine))
  const next =
    file === undefined
      ? "to apply it, plan again with --out FILE"
      : `apply it: eventbus outbox dead apply --outbox ${outbox} ${file}`
  return [
    count === 0
      ? LogFormat.oneLine(`plan ${id}: nothing is selected: no dead event meets ${selectionText(select)}`)
      : `plan ${id}: ${counted(count, "dead event")} ${verbs[action]}`,
    ...(further === 0 ? [] : [`  ${counted(further, "further event")} need another plan after this one`]),
    ...columns(rows).map((line) => indent(1, line)),
    ...(count === 0 ? [] : [indent(1, next)])
  ].join("\n")
}

const fates = (receipt: DeadEvents.Receipt): string => {
  const { action, delivered, gone, deadAgain, waiting, retrying, untouched } = receipt
  const found: ReadonlyArray<readonly [number, string]> = [
    [delivered, "delivered"],
    [gone, action === "discard" ? "deleted" : "gone from the table: deleted after their delivery, discarded or purged"],
    [deadAgain, "dead again"],
    [waiting - retrying, "wait"],
    [retrying, "failed again and are retried"],
    [untouched, "untouched"]
  ]
  return found
    .filter(([number]) => number > 0)
    .map(([number, text]) => `${number} ${text}`)
    .join(", ")
}

/** The receipt of a plan in words, after its work with the state of that. */
export const receiptText = (receipt: DeadEvents.Receipt | DeadEvents.ApplyReport): string => {
  const { id, action, count, closed } = receipt
  const state = "state" in receipt ? ` is ${[receipt.state, receipt.stateReason].filter(Boolean).join(": ")}` : ""
  const isUntouched = count > 0 && receipt.untouched === count
  return [
    LogFormat.oneLine(`plan ${id}: ${action} of ${counted(count, "dead event")}${state}`),
    ...(count === 0 ? [] : [`  ${fates(receipt)}`]),
    isUntouched ? "  the plan was not applied" : closed ? "  the receipt is closed" : "  the receipt is open"
  ].join("\n")
}

/** How far the work on a plan is, in one line. */
export const progressText = (receipt: DeadEvents.Receipt): string => `plan ${receipt.id}: ${fates(receipt)}`
