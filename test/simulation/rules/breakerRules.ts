/**
 * Rules about circuit breakers (rulings 17, 27, 28, 35 and 72).
 */
import { trialOf } from "../history/Breakers.ts"
import type { BindingPlan } from "../scenario/Scenario.ts"
import { on, type Rule } from "./Rule.ts"

/** Ruling 28: no handler is called while the breaker is open. */
const open: Rule["check"] = on("Called", ({ process, binding, partition, offsets }, ledger) =>
  ledger.breakers.of(process, binding).state === "OPEN"
    ? `${process} handles ${partition} at ${offsets[0]} while the breaker of ${binding} is open`
    : undefined
)

/** Ruling 27: the permits of a half-open breaker are a hard limit over the main topic and all tiers. */
const permits: Rule["check"] = on("Called", ({ process, binding, partition, offsets }, ledger) => {
  const plan = ledger.planOf(binding)
  const breaker = ledger.breakers.of(process, binding)
  if (plan.breaker === undefined || breaker.state !== "HALF_OPEN") return undefined
  const { permits } = plan.breaker
  const at = `${process} handles ${partition} at ${offsets[0]}`
  if (breaker.running.size >= permits) {
    return `${at} as trial call ${breaker.running.size + 1} at once, and ${permits} are allowed`
  }
  // Records of a batch or a transaction share permits. A record that waits for a concurrency slot between two attempts returns its permit.
  const keepsPermit = (plan.listener === "single" || plan.listener === "batch") && hasNoBound(plan)
  if (!keepsPermit) return undefined
  const isNew = !breaker.trials.has(trialOf(partition, offsets[0]))
  return isNew && breaker.trials.size >= permits
    ? `${at} as trial ${breaker.trials.size + 1}, and ${permits} are allowed`
    : undefined
})

const hasNoBound = ({ maxInFlight, processingOrder, tiers }: BindingPlan): boolean =>
  maxInFlight === undefined && processingOrder === "partition" && tiers.length === 0

/** With `automaticPauseOnOpen: false` the binding does not become PAUSED, and its records wait. */
const shown: Rule["check"] = on("Connector", ({ process, event }, ledger) => {
  if (event._tag !== "StateChanged" || !event.reasons.includes("breaker")) return undefined
  const { breaker } = ledger.planOf(event.binding)
  if (breaker === undefined || !breaker.automaticPauseOnOpen) return `${process}: ${event.binding} shows a breaker`
  const { state } = ledger.breakers.of(process, event.binding)
  return state === "OPEN" ? undefined : `${process}: ${event.binding} is paused by a breaker that is ${state}`
})

/** Rulings 17 and 59: a record that fails while the breaker is open, or that opens it, is not published as a copy. */
const holds: Rule["check"] = on("Sent", ({ process, copy }, ledger) => {
  const source = ledger.sources.of(process, copy)
  const given = source?.assignment.failedDeliveries.get(source.record.offset)
  if (given?.breaker === undefined || given.breaker === "was the one of a trial call") return undefined
  return `${source?.record.partition}: the copy of ${source?.record.offset} (${copy.id}) is published, and its failure ${given.breaker}`
})

/**
 * Ruling 72: a failed trial call uses nothing up: no copy of its record is published, unless its trials failed in as many half-open states as a record has attempts.
 * So an outage copies no record that was first handed over after the breaker opened.
 */
const trials: Rule["check"] = on("Sent", ({ process, copy }, ledger) => {
  const source = ledger.sources.of(process, copy)
  if (source === undefined) return undefined
  const { record, assignment } = source
  if (assignment.failedDeliveries.get(record.offset)?.breaker !== "was the one of a trial call") return undefined
  const { failedTrials } = ledger.breakers.of(process, record.binding)
  const failed = failedTrials.get(trialOf(record.partition, record.offset)) ?? 0
  return failed >= ledger.planOf(record.binding).maxAttempts
    ? undefined
    : `${record.partition}: the copy of ${record.offset} (${copy.id}) is published after ${failed} failed trial calls`
})

/** Ruling 35: a drain waits for handlers and for copies in flight, and for nothing else. */
const drains: Rule["check"] = on("Connector", ({ process, event, atMillis }, ledger) => {
  if (event._tag !== "DrainTimedOut") return undefined
  const plan = ledger.planOf(event.binding)
  // The broker may delay a transaction.
  if (plan.listener === "transactional") return undefined
  const isBusy = [...ledger.calls.values()].some((call) => call.process === process && call.binding === event.binding)
  const assignment = ledger.assignments.current(process, event.consumer, `${event.topic}/${event.partition}`)
  if (isBusy || assignment === undefined || assignment.failedDeliveries.size > 0) return undefined
  // The end of a drain gives up the copies that it waited for (ruling 83), and their records say so first.
  if (assignment.abandonedMillis === atMillis) return undefined
  const { inFlight } = ledger.trafficOf(process, plan.groupId)
  return inFlight > 0
    ? undefined
    : `${process} waited for ${event.topic}/${event.partition} until its drain timed out, and nothing ran`
})

export const breakerRules: ReadonlyArray<Rule> = [
  { name: "breaker-open", check: open },
  { name: "breaker-permits", check: permits },
  { name: "breaker-shown", check: shown },
  { name: "breaker-holds", check: holds },
  { name: "breaker-trials", check: trials },
  { name: "drains", check: drains }
]
