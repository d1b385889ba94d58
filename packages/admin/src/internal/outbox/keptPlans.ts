/**
 * The plans over dead events that this process has made, and its work on them. A plan names up to 100 000 events, so no request could bring it along.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import { DeadEventPlanNotFound } from "../../AdminError.ts"
import type * as Answers from "../../DeadEventAnswers.ts"
import type * as Port from "../../OutboxPort.ts"

const keptMillis = 24 * 3_600_000

/** Most plans that a process keeps, and most events of them all. */
const mostPlans = 100
const mostEvents = 1_000_000

/** The work of this process on a plan. */
export interface Work {
  readonly state: Exclude<Answers.Receipt["state"], "planned">
  readonly stateReason?: string
  readonly startedMillis: number
  readonly endedMillis?: number
  readonly dealtWith?: number
}

/** A plan, and the work on it. */
export interface KeptPlan {
  readonly plan: Port.Plan
  /** The one who asked for it. */
  readonly by: string
  readonly createdMillis: number
  /** Undefined while nobody has applied it. */
  work: Work | undefined
  /** Works on it. */
  fiber: Fiber.Fiber<unknown, unknown> | undefined
}

export interface KeptPlans {
  /** Keeps a plan. The same plan over the same deaths has the same id: it takes the place of the older one, unless that is worked on. */
  readonly keep: (plan: Port.Plan, by: string) => Effect.Effect<KeptPlan>
  readonly find: (id: string) => Effect.Effect<KeptPlan, DeadEventPlanNotFound>
}

export const make = (): KeptPlans => {
  /** The oldest first. */
  const kept = new Map<string, KeptPlan>()

  const forget = (nowMillis: number) => {
    let events = Array.from(kept.values()).reduce((sum, { plan }) => sum + plan.count, 0)
    for (const [id, { plan, createdMillis, work }] of kept) {
      const isCrowded = kept.size > mostPlans || (events > mostEvents && kept.size > 1)
      if (work?.state === "running" || !(isCrowded || createdMillis + keptMillis <= nowMillis)) continue
      events -= plan.count
      kept.delete(id)
    }
  }

  return {
    keep: (plan, by) =>
      Effect.map(Clock.currentTimeMillis, (createdMillis) => {
        const known = kept.get(plan.id)
        if (known?.work?.state === "running") return known
        const made: KeptPlan = { plan, by, createdMillis, work: undefined, fiber: undefined }
        kept.delete(plan.id)
        kept.set(plan.id, made)
        forget(createdMillis)
        return made
      }),
    find: (id) =>
      Effect.flatMap(Clock.currentTimeMillis, (nowMillis) => {
        forget(nowMillis)
        const found = kept.get(id)
        return found === undefined ? Effect.fail(new DeadEventPlanNotFound({ id })) : Effect.succeed(found)
      })
  }
}
