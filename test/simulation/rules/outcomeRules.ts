/**
 * Rules about the fate of records, and about the state at the end of a run.
 */

import type { Remains } from "../history/History.ts"
import type { Ledger } from "../history/Ledger.ts"
import { callsInAll, nextTierAttempt, type TierAttempt } from "../scenario/retries.ts"
import type { RecordPlan, Scenario } from "../scenario/Scenario.ts"
import { on, type Rule } from "./Rule.ts"

/** Rulings 16 and 17: a record that would be handled is neither dead-lettered nor dropped. */
const routes: Rule["check"] = on("Connector", ({ event }, ledger) => {
  if (event._tag !== "Settled") return undefined
  const partition = `${event.topic}/${event.partition}`
  if (ledger.logs.ownerOfForeign(partition, event.record.offset) !== undefined) return undefined
  const record = ledger.logs.record(partition, event.record.offset)
  if (record === undefined) return `${partition} has no readable record at ${event.record.offset}`
  const { behaviour, id } = record.plan
  if (event.settlement === "DeadLettered" && !mayBeDeadLettered(record.plan, event.binding, ledger.scenario)) {
    return `${id} was dead-lettered (${event.failure?.className}: ${event.failure?.message}), and would have been handled`
  }
  if (event.settlement === "Skipped" && behaviour._tag !== "Ignorable") return `${id} was dropped`
  if (event.settlement === "Handled" && record.state !== "done") return `${id} counts as handled, and no handler did it`
  return undefined
})

const mayBeDeadLettered = ({ behaviour }: RecordPlan, binding: string, { bindings, outage }: Scenario): boolean => {
  const plan = bindings.find(({ name }) => name === binding)
  if (plan === undefined) return false
  if (outage?.binding === binding) return behaviour._tag !== "Ignorable"
  switch (behaviour._tag) {
    case "Rejected":
    case "Undecodable":
    case "Stuck":
    case "Broken":
      return true
    case "Flaky":
      return behaviour.how !== "interrupt" && behaviour.failures >= callsInAll(plan)
    case "Busy": {
      let deliveries = 1
      for (let at: TierAttempt | undefined = { tier: 0, attempt: 1 }; at !== undefined; deliveries++) {
        at = nextTierAttempt(plan, at, behaviour.route)
      }
      return behaviour.failures >= deliveries - 1
    }
    default:
      return false
  }
}

/**
 * No record is lost: at the end each is handled, dead-lettered with a copy, dropped on purpose, or gone from the log and reported (unless the group had
 * never committed there: see `accountedFor`).
 */
const losses: Rule["check"] = on("Ended", ({ remains }, ledger) => {
  const deadLetters = new Set(ownLetters(remains, ledger).map(({ value, replays }) => `${valueOf(value)} ${replays}`))
  for (const log of ledger.logs.byPartition.values()) {
    for (const record of log.values()) {
      const { id } = record.plan
      const at = `${id} (${record.partition} at ${record.offset})`
      // A copy whose publish timed out may arrive after everything was read.
      if (record.storedMillis >= remains.readMillis) continue
      if (record.state === "open" && record.removed === "no") return `${at} was never finished`
      if (record.state === "open" && record.removed === "retention" && !record.reportedGone) {
        return `${at} was deleted before it was read, and nobody said so`
      }
      const isFurther = ledger.logs.copiesById.get(id)!.some(({ tierAttempt: { tier, attempt }, replays }) => {
        const { tierAttempt } = record
        if (replays !== record.replays) return false
        return tier > tierAttempt.tier || (tier === tierAttempt.tier && attempt > tierAttempt.attempt)
      })
      // Retention or an operator may have deleted it since.
      const isDeadLettered =
        deadLetters.has(`${id} ${record.replays}`) || ledger.logs.letters.count(id, record.replays) > 0
      // The transaction that would have routed it was aborted, retention took it meanwhile, and somebody said so.
      const isGone = record.removed === "retention" && record.reportedGone
      if (record.state === "routed" && !isFurther && !isDeadLettered && !isGone) {
        return `${at} counts as routed, and there is no copy`
      }
      if (record.state === "dead-lettered" && !isDeadLettered) {
        return `${at} counts as dead-lettered, and there is no copy`
      }
    }
  }
  return needless(remains, ledger)
})

const ownLetters = ({ deadLetters }: Remains, { logs }: Ledger) =>
  deadLetters.filter(({ owner }) => logs.foreignGroup(owner) === undefined)

/** Every record in a dead letter topic belongs there. */
const needless = (remains: Remains, ledger: Ledger): string | undefined => {
  for (const { value } of ownLetters(remains, ledger)) {
    const [record] = ledger.logs.copiesById.get(valueOf(value)) ?? []
    if (record === undefined) return `a dead letter topic has '${value}', which nobody published`
    if (!mayBeDeadLettered(record.plan, record.binding, ledger.scenario)) {
      return `${record.plan.id} is in the dead letter topic, and would have been handled`
    }
  }
  return undefined
}

/** Undecodable values have a mark in front of their id. */
const valueOf = (value: string): string => value.replace(/^!/, "")

/** Every partition is read to its end after the faults. */
const settling: Rule["check"] = on("Ended", ({ remains }) => {
  const [first] = remains.lagging
  return (
    first && `${first.partition} is committed to ${first.committed ?? "nothing"}, and its log ends at ${first.logEnd}`
  )
})

/** Ruling 36: nothing is left after everything has stopped. */
const leftovers: Rule["check"] = (entry) => {
  if (entry._tag === "Ended") return entry.remains.leftovers[0]
  return entry._tag === "Closed" && entry.fibers > 0
    ? `${entry.fibers} fibers run on after everything was closed`
    : undefined
}

export const outcomeRules: ReadonlyArray<Rule> = [
  { name: "routes", check: routes },
  { name: "losses", check: losses },
  { name: "settling", check: settling },
  { name: "leftovers", check: leftovers }
]
