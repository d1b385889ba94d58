/** Groups dead events by the reason of their failure in one pass. Nothing of an event is kept but its id. */
import { Fingerprint } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { DeadEvent, DeadEventGroup, GroupReport } from "../../DeadEvents.ts"
import type { OutboxStoreError } from "../../OutboxError.ts"
import type { DeadEventStatements } from "../store/contract.ts"
import { eachDeadEvent, errorOf } from "./deadEventScan.ts"

/** Messages may differ in more than numbers, so that each event has a group of its own. */
const mostGroups = 1_000
const mostSamples = 5

export const deadEventGroups = Effect.fnUntraced(function* (
  statements: DeadEventStatements
): Effect.fn.Return<GroupReport, OutboxStoreError> {
  const groups = new Map<string, DeadEventGroup>()
  let other = 0
  yield* eachDeadEvent(statements, {}, 0, (event) => {
    const known = groups.get(event.group)
    if (known !== undefined) groups.set(event.group, withOneMore(known, event))
    else if (groups.size < mostGroups) groups.set(event.group, firstOf(event))
    else other++
    return true
  })
  return { groups: Array.from(groups.values()).toSorted((a, b) => b.count - a.count), other }
})

const firstOf = (event: DeadEvent): DeadEventGroup => {
  const { className, message } = errorOf(event)
  return {
    fingerprint: event.group,
    eventType: event.eventType,
    errorClass: className,
    message: Fingerprint.maskedMessage(message),
    count: 1,
    firstMicros: event.diedAtMicros,
    lastMicros: event.diedAtMicros,
    samples: [event.eventId]
  }
}

const withOneMore = (group: DeadEventGroup, { eventId, diedAtMicros }: DeadEvent): DeadEventGroup => ({
  ...group,
  count: group.count + 1,
  firstMicros: Math.min(group.firstMicros, diedAtMicros),
  lastMicros: Math.max(group.lastMicros, diedAtMicros),
  samples: group.samples.length < mostSamples ? [...group.samples, eventId] : group.samples
})
