/** Makes a plan: freezes the dead events of a selection, each with its death. Changes nothing. */
import { Ranges } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { Plan, PlanRequest } from "../../DeadEvents.ts"
import type { OutboxStoreError } from "../../OutboxError.ts"
import type { DeadEventStatements } from "../store/contract.ts"
import { eachDeadEvent } from "./deadEventScan.ts"
import { planId } from "./planId.ts"

/** The events of a plan are in memory, and in its file. */
const mostEvents = 100_000

export const planMaking = Effect.fnUntraced(function* (
  statements: DeadEventStatements,
  table: string,
  request: PlanRequest
): Effect.fn.Return<Plan, OutboxStoreError> {
  const { action, select, reason, rate = 50, canary = 20, canaryWait = "60 seconds", stopAbove = 5 } = request
  const events: Array<readonly [eventId: string, diedAtMicros: number]> = []
  let further = 0
  yield* eachDeadEvent(statements, select, 0, ({ eventId, diedAtMicros }) => {
    if (events.length < mostEvents) events.push([eventId, diedAtMicros])
    else further++
    return true
  })
  const canaryWaitMillis = Ranges.millisOf(canaryWait)
  const plan: Omit<Plan, "id"> = {
    ...{ version: 1, action, table, select, reason, rate, canary, canaryWaitMillis, stopAbove },
    ...{ count: events.length, further, events }
  }
  return { id: planId(plan), ...plan }
})
