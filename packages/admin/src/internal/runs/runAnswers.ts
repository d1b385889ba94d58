/**
 * Turns plans, runs and receipts into answers that JSON can hold. Without `payload`, nothing in them quotes a record.
 */
import { DeadLetterSelection, type ReplayPlan, type ReplayRun } from "@eventbus/core"
import type { Payload } from "../../Mask.ts"
import type * as Answers from "../../RunAnswers.ts"
import { countsOf, given, isoOf } from "../answersOf.ts"
import { textOf } from "../masking.ts"

/** A plan. `payload`: with the keys of its selection, and the reasons of refusals in words. */
export const planOf = (plan: ReplayPlan.Plan, payload: Payload): Answers.Plan => {
  const { id, action, tier, transform, rate, canary, canaryWaitMillis, stopAbove, ignoreMaxReplays } = plan
  const { reason, by, count, passedOver, unreadable } = plan
  return {
    ...{ id, action, rate, canary, canaryWaitMillis, stopAbove, ignoreMaxReplays, reason, by, count },
    ...given("tier", tier),
    ...given("transform", transform),
    select: selectionOf(plan.select, payload),
    sample: plan.sample.map(DeadLetterSelection.formatPosition),
    targets: countsOf(plan.targets),
    ...refusedOf(plan.refusals, payload),
    ...{ passedOver, unreadable, created: isoOf(plan.createdAtMillis), expires: isoOf(plan.expiresAtMillis) }
  }
}

/** A selection. `payload`: with its keys. */
export const selectionOf = (select: DeadLetterSelection.DeadLetterSelection, payload: Payload): Answers.Selection => {
  const { fingerprints, fromMillis, toMillis, keys, records, all, except } = select
  return {
    ...given("groups", fingerprints),
    ...given("from", timeOf(fromMillis)),
    ...given("to", timeOf(toMillis)),
    ...given("keys", keysOf(keys, payload)),
    ...given("keyCount", keys?.length),
    ...given("records", records?.map(DeadLetterSelection.formatPosition)),
    ...given("all", all),
    ...given("except", except?.map(DeadLetterSelection.formatPosition))
  }
}

const timeOf = (millis: number | undefined): string | undefined => (millis === undefined ? undefined : isoOf(millis))

const keysOf = (keys: ReadonlyArray<string> | undefined, payload: Payload): ReadonlyArray<string> | undefined => {
  const shown = keys?.flatMap((key) => textOf(payload, key) ?? [])
  return shown?.length === keys?.length ? shown : undefined
}

/** Reasons that are the same once they are masked count together. */
const refusalsOf = (
  refusals: ReadonlyMap<string, number>,
  payload: Payload
): ReturnType<typeof countsOf> | undefined => {
  if (payload === false || (payload !== true && payload.maskText === undefined)) return undefined
  const shown = new Map<string, number>()
  for (const [reason, count] of refusals) {
    const text = textOf(payload, reason) ?? ""
    shown.set(text, (shown.get(text) ?? 0) + count)
  }
  return countsOf(shown)
}

/** A function that repairs letters may say in words what it has found in one. */
const refusedOf = (
  refusals: ReadonlyMap<string, number>,
  payload: Payload
): Pick<Answers.Plan, "refused" | "refusals"> => ({
  refused: Array.from(refusals.values()).reduce((sum, count) => sum + count, 0),
  ...given("refusals", refusalsOf(refusals, payload))
})

const runOf = (run: ReplayRun.RunSummary, payload: Payload): Answers.Run => {
  const { id, action, tier, transform, state, stateReason, reason, by, count, dealtWith, refused, rate, host, pid } =
    run
  return {
    ...{ id, action, state, reason, by, count, dealtWith, refused, rate, host, pid },
    ...given("tier", tier),
    ...given("transform", transform),
    ...given("stateReason", stateReason),
    ...given("abandonedSince", timeOf(run.abandonedSinceMillis)),
    ...given("refusals", refusalsOf(run.refusals, payload)),
    ...{ started: isoOf(run.startedAtMillis), updated: isoOf(run.updatedAtMillis) }
  }
}

/** All runs. `payload`: with the reasons of refusals in words. */
export const runsOf = (runs: ReadonlyArray<ReplayRun.RunSummary>, payload: Payload): Answers.Runs => ({
  runs: runs.map((run) => runOf(run, payload))
})

/** A run and the outcome of its copies. `payload`: with the reasons of refusals in words. */
export const receiptOf = (receipt: ReplayRun.Receipt, payload: Payload): Answers.Receipt => {
  const { passed, cameBack, waiting, unknown = 0, elsewhere, closed } = receipt
  return { ...runOf(receipt, payload), passed, cameBack, waiting, unknown, elsewhere, closed }
}
