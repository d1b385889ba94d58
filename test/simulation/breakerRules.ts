/**
 * Rules about circuit breakers (rulings 17, 27, 28 and 35).
 */
import { trialOf } from "./Breakers.ts"
import { on, type Rule } from "./Rule.ts"
import type { BindingPlan } from "./Scenario.ts"

/** Ruling 28: nothing is handled while it is open. */
const open: Rule["check"] = on("Called", ({ process, binding, partition, offsets }, ledger) =>
  ledger.breakers.of(process, binding).state === "OPEN"
    ? `${process} handles ${partition} at ${offsets[0]} while the breaker of ${binding} is open`
    : undefined
)

/** Ruling 27: the permits of a half-open breaker are a hard cap, over the main topic and all tiers. */
const permits: Rule["check"] = on("Called", ({ process, binding, partition, offsets }, ledger) => {
  const plan = ledger.logs.planOf(binding)
  const breaker = ledger.breakers.of(process, binding)
  if (plan.breaker === undefined || breaker.state !== "HALF_OPEN") return undefined
  const { permits } = plan.breaker
  const at = `${process} handles ${partition} at ${offsets[0]}`
  if (breaker.running.size >= permits) {
    return `${at} as trial call ${breaker.running.size + 1} at once, and ${permits} are allowed`
  }
  // Records of a batch or of a transaction share permits; who waits for a place between two attempts gives its own back.
  const keepsPermit = (plan.listener === "single" || plan.listener === "batch") && hasNoBound(plan)
  if (!keepsPermit) return undefined
  const isNew = !breaker.trials.has(trialOf(partition, offsets[0]))
  return isNew && breaker.trials.size >= permits
    ? `${at} as trial ${breaker.trials.size + 1}, and ${permits} are allowed`
    : undefined
})

const hasNoBound = ({ maxInFlight, processingOrder, tiers }: BindingPlan): boolean =>
  maxInFlight === undefined && processingOrder === "partition" && tiers.length === 0

/** With `automaticPauseOnOpen: false` records wait where they are, and the binding shows nothing. */
const shown: Rule["check"] = on("Connector", ({ process, event }, ledger) => {
  if (event._tag !== "StateChanged" || !event.reasons.includes("breaker")) return undefined
  const { breaker } = ledger.logs.planOf(event.binding)
  if (breaker === undefined || !breaker.automaticPauseOnOpen) return `${process}: ${event.binding} shows a breaker`
  const { state } = ledger.breakers.of(process, event.binding)
  return state === "OPEN" ? undefined : `${process}: ${event.binding} is paused by a breaker that is ${state}`
})

/** Rulings 17 and 59: what fails while it is open, and what opens it, stays where it is. */
const staying: Rule["check"] = on("Sent", ({ process, copy }, ledger) => {
  const source = ledger.sources.of(process, copy)
  const given = source?.assignment.failedDeliveries.get(source.record.offset)
  if (given?.breaker === undefined) return undefined
  return `${source?.record.partition}: the copy of ${source?.record.offset} (${copy.id}) is published, and its failure ${given.breaker}`
})

/** Ruling 35: a drain waits for handlers and for copies on their way, for nothing else. */
const drains: Rule["check"] = on("Connector", ({ process, event }, ledger) => {
  if (event._tag !== "DrainTimedOut") return undefined
  const plan = ledger.logs.planOf(event.binding)
  // The broker may hold a transaction up.
  if (plan.listener === "transactional") return undefined
  const isBusy = [...ledger.calls.values()].some((call) => call.process === process && call.binding === event.binding)
  const assignment = ledger.assignments.current(process, event.consumer, `${event.topic}/${event.partition}`)
  if (isBusy || assignment === undefined || assignment.failedDeliveries.size > 0) return undefined
  const { inFlight } = ledger.trafficOf(process, plan.groupId)
  return inFlight > 0
    ? undefined
    : `${process} waited for ${event.topic}/${event.partition} until its drain timed out, and nothing ran`
})

export const breakerRules: ReadonlyArray<Rule> = [
  { name: "breaker-open", check: open },
  { name: "breaker-permits", check: permits },
  { name: "breaker-shown", check: shown },
  { name: "breaker-staying", check: staying },
  { name: "drains", check: drains }
]
