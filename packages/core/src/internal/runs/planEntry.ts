/** A plan as the journal keeps it, and back. */
import type { DeadLetterSelection } from "../../DeadLetterSelection.ts"
import type { Plan } from "../../ReplayPlan.ts"
import * as PlanSelection from "./planSelection.ts"
import * as Positions from "./positions.ts"
import type { Request } from "./requests.ts"
import type { PlanEntry } from "./runEntries.ts"
import type { Options } from "./runOptions.ts"
import type { Survey } from "./survey.ts"

/** A plan is applied within so long. */
export const lifetimeMillis = 900_000

export const make = (options: Options, request: Request, survey: Survey, nowMillis: number): PlanEntry => {
  const { action, tier, transform, rate, canary, stopAbove, ignoreMaxReplays, reason, by } = request
  const { count, digest, passedOver, unreadable, topicId } = survey
  return {
    ...{ v: 1, action, rate, canary, canaryWait: request.canaryWaitMillis, stopAbove, ignoreMaxReplays, reason, by },
    ...(tier === undefined ? {} : { tier }),
    ...(transform === undefined ? {} : { transform }),
    select: written(request.select),
    ...{ count, digest, passedOver, unreadable, createdAt: nowMillis },
    sample: survey.sample.map(Positions.textOf),
    targets: Object.fromEntries(survey.targets),
    refusals: Object.fromEntries(survey.refusals),
    ends: survey.ends.map(Positions.textOf),
    ...(topicId === undefined ? {} : { topicId }),
    anchors: survey.anchors,
    mayWriteTo: PlanSelection.mayWriteTo(options, request)
  }
}

/** An infinite time is the same as none, and JSON has no form for it. */
const written = (select: DeadLetterSelection): PlanEntry["select"] => {
  const { fingerprints, fromMillis, toMillis, keys, records, all, except } = select
  return {
    ...(fingerprints === undefined ? {} : { fingerprints }),
    ...(Number.isFinite(fromMillis) ? { fromMillis: fromMillis! } : {}),
    ...(Number.isFinite(toMillis) ? { toMillis: toMillis! } : {}),
    ...(keys === undefined ? {} : { keys }),
    ...(records === undefined ? {} : { records: records.map(Positions.textOf) }),
    ...(all === undefined ? {} : { all }),
    ...(except === undefined ? {} : { except: except.map(Positions.textOf) })
  }
}

const readSelect = (select: PlanEntry["select"]): DeadLetterSelection => {
  const { records, except, ...others } = select
  return {
    ...others,
    ...(records === undefined ? {} : { records: Positions.read(records) }),
    ...(except === undefined ? {} : { except: Positions.read(except) })
  }
}

export const read = (id: string, entry: PlanEntry): Plan => {
  const { action, tier, transform, rate, canary, stopAbove, ignoreMaxReplays, reason, by } = entry
  const { count, passedOver, unreadable, createdAt, canaryWait } = entry
  return {
    ...{ id, action, tier, transform, rate, canary, stopAbove, ignoreMaxReplays, reason, by },
    ...{ count, passedOver, unreadable, canaryWaitMillis: canaryWait, select: readSelect(entry.select) },
    sample: Positions.read(entry.sample),
    targets: new Map(Object.entries(entry.targets)),
    refusals: new Map(Object.entries(entry.refusals)),
    ends: Positions.read(entry.ends),
    createdAtMillis: createdAt,
    expiresAtMillis: createdAt + lifetimeMillis
  }
}
