/** The id of a plan. */
import { createHash } from "node:crypto"
import type { Plan } from "../../DeadEvents.ts"

const digits = 32

/** A hash over the whole plan but its id. The same plan over the same deaths has the same id, whoever makes it. */
export const planId = (plan: Omit<Plan, "id">): string => {
  const { version, action, table, select, reason, rate, canary, canaryWaitMillis, stopAbove, further, events } = plan
  const { groups, eventType, aggregateType, aggregateId, eventIds, all } = select
  const chosen = [groups, eventType, aggregateType, aggregateId, eventIds, all].map((field) => field ?? null)
  const settings = [rate, canary, canaryWaitMillis, stopAbove]
  const text = JSON.stringify([version, action, table, chosen, reason, settings, further, events])
  return createHash("sha256").update(text).digest("hex").slice(0, digits)
}
