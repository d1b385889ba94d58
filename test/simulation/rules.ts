/**
 * Rules that must hold in every run. A rule checks the next entry of a history against the state that the earlier entries give; it answers with a
 * sentence when the entry breaks it.
 */

import type { Call } from "./accounts.ts"
import { breakerRules } from "./breakerRules.ts"
import { groupRules } from "./groupRules.ts"
import type { Remains } from "./History.ts"
import type { Ledger } from "./Ledger.ts"
import { on, type Rule } from "./Rule.ts"
import { callsInAll, nextTierAttempt, type TierAttempt } from "./retries.ts"
import { retryRules } from "./retryRules.ts"
import type { RecordPlan, Scenario } from "./Scenario.ts"
import { assignmentOf } from "./transactions.ts"

/** Rulings 3 to 5: a commit covers finished records only, lies inside the log and never goes back. */
const commits: Rule["check"] = on("Broker", ({ entry }, ledger) => {
  if (entry._tag !== "Committed") return undefined
  for (const { topic, partition: number, offset } of entry.offsets) {
    const partition = `${topic}/${number}`
    const before = ledger.logs.committed.get(partition)
    if (before !== undefined && offset < before) return `${partition} went back from ${before} to ${offset}`
    const end = ledger.logs.logEnds.get(partition)
    // Markers of transactions stand behind the last record of a retry topic.
    if (end !== undefined && offset > end && !ledger.logs.hasMarkers(partition))
      return `${partition} was committed to ${offset}, and its log ends at ${end}`
    const open = ledger.logs.openUpTo(partition, offset)
    const first = open.find(({ removed }) => removed === "no")
    if (first !== undefined && assignmentOf(ledger, partition, open) === undefined)
      return `${partition} was committed to ${offset} while ${first.offset} (${first.plan.id}) is not finished`
  }
  return undefined
})

/** Records are handled under an assignment, once in it, from where it starts. */
const calls: Rule["check"] = on("Called", ({ process, consumer, partition, offsets, binding }, ledger) => {
  if (ledger.stopped.has(process)) return `${process} was stopped and handles ${partition}`
  const assignment = ledger.assignments.current(process, consumer, partition)
  if (assignment === undefined || !(assignment.state === "active" || assignment.state === "revoked")) {
    return `${process} handles ${partition}, which is not its own (${assignment?.state ?? "never assigned"})`
  }
  for (const offset of offsets) {
    const record = ledger.logs.record(partition, offset)
    if (record === undefined) return `${partition} has no readable record at ${offset}`
    if (record.binding !== binding) return `${partition} belongs to ${record.binding}, not to ${binding}`
    if (offset < assignment.position)
      return `${partition}: ${offset} lies before ${assignment.position}, where it starts`
    if (assignment.finished.has(offset))
      return `${partition}: ${offset} (${record.plan.id}) was finished in this assignment`
    const twice = (call: Call) => call.assignment === assignment && call.offsets.includes(offset)
    if (ledger.openCalls(process, partition).some(twice)) {
      return `${partition}: ${offset} (${record.plan.id}) is being handled already`
    }
  }
  return undefined
})

/** Order per partition or key, within an assignment. */
const order: Rule["check"] = on("Called", ({ process, consumer, partition, offsets, binding }, ledger) => {
  const assignment = ledger.assignments.current(process, consumer, partition)
  const first = offsets[0]
  if (assignment === undefined || first === undefined) return undefined
  const plan = ledger.logs.planOf(binding)
  const name = (offset: bigint) => `${offset} (${ledger.logs.record(partition, offset)?.plan.id ?? "?"})`
  const isTransactional = plan.listener === "transactional"
  const gone = (offset: bigint) => assignment.failedDeliveries.has(offset) && plan.onExhausted === "dead-letter"
  // A transaction that failed runs again without what failed in it.
  const undone = (offset: bigint) => isTransactional && (assignment.pending.has(offset) || offset > first)
  const unfinished = [...assignment.begun].filter(
    (offset) => !offsets.includes(offset) && !gone(offset) && !undone(offset)
  )
  if (plan.listener === "whole-batch") {
    const again = offsets.every((offset) => assignment.begun.has(offset))
    if (again || unfinished.length === 0) return undefined
    return `${partition}: a batch from ${name(first)} began before ${name(unfinished[0]!)} was finished`
  }
  if (plan.processingOrder === "unordered") return undefined
  const key = ledger.logs.record(partition, first)?.plan.key
  const sameLane = (offset: bigint): boolean =>
    plan.processingOrder === "partition" || ledger.logs.record(partition, offset)?.plan.key === key
  const overtaken = unfinished.find(sameLane)
  if (overtaken !== undefined) return `${partition}: ${name(first)} began before ${name(overtaken)} was finished`
  const later = [...assignment.finished].find((offset) => offset > first && sameLane(offset))
  return later === undefined ? undefined : `${partition}: ${name(first)} began after ${name(later)}`
})

/** Ruling 51: `maxInFlight` bounds handlers of a binding in a process. */
const inFlight: Rule["check"] = on("Called", ({ process, binding }, ledger) => {
  const { maxInFlight, processingOrder } = ledger.logs.planOf(binding)
  const bound = maxInFlight ?? (processingOrder === "partition" ? Number.POSITIVE_INFINITY : 16)
  const running = [...ledger.calls.values()].filter(
    (call) => call.process === process && call.binding === binding
  ).length
  return running < bound ? undefined : `${process} runs ${running + 1} handlers of ${binding}, and ${bound} are allowed`
})

/** Ruling 7: under `MANUAL_IMMEDIATE` a record starts when the one that was handled before it is committed. */
const immediate: Rule["check"] = on("Called", ({ process, consumer, partition, offsets, binding }, ledger) => {
  const plan = ledger.logs.planOf(binding)
  const first = offsets[0]
  if (first === undefined || plan.ackMode !== "MANUAL_IMMEDIATE") return undefined
  if (plan.listener !== "single" || plan.processingOrder !== "partition") return undefined
  const assignment = ledger.assignments.current(process, consumer, partition)
  const before = [...(assignment?.finished ?? [])].filter((offset) => offset < first).pop()
  if (before === undefined || (ledger.logs.committed.get(partition) ?? -1n) > before) return undefined
  if (assignment?.notAwaited.has(before)) return undefined
  return `${partition}: ${first} began before ${before} was committed`
})

/** Rulings 9 and 11: an operator's pause lets nothing slip through. */
const pauses: Rule["check"] = on("Called", ({ process, binding, partition, offsets }, ledger) =>
  ledger.paused.has(`${process} ${binding}`)
    ? `${process} handles ${partition} at ${offsets[0]} while ${binding} is paused`
    : undefined
)

/** Ruling 3: an assignment starts at what is committed, or at the first record that is still there. */
const startPositions: Rule["check"] = on("Connector", ({ event }, ledger) => {
  if (event._tag !== "PartitionAssigned") return undefined
  // It looks again when the transactions of the owner before it are decided.
  if (ledger.logs.planOf(event.binding).listener === "transactional") return undefined
  const partition = `${event.topic}/${event.partition}`
  const committed = ledger.logs.committed.get(partition) ?? 0n
  if (event.position < committed)
    return `${partition} starts at ${event.position}, before ${committed}, which is committed`
  for (const record of ledger.logs.records.get(partition)?.values() ?? []) {
    if (record.offset >= event.position) return undefined
    if (record.offset >= committed && record.removed === "no") {
      return `${partition} starts at ${event.position} and jumps over ${record.offset} (${record.plan.id})`
    }
  }
  return undefined
})

/** Rulings 16 and 17: nothing is dead-lettered or dropped that was going to succeed. */
const routes: Rule["check"] = on("Connector", ({ event }, ledger) => {
  if (event._tag !== "Settled") return undefined
  const partition = `${event.topic}/${event.partition}`
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
  if (outage !== undefined && bindings[outage.binding] === plan) return behaviour._tag !== "Ignorable"
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

/** Ruling 35: a stop is bounded. */
const stops: Rule["check"] = on("ProcessStopped", ({ process, atMillis }, ledger) => {
  const began = ledger.stopping.get(process) ?? atMillis
  const longest = Math.max(...ledger.scenario.bindings.map((plan) => plan.shutdownTimeoutMillis)) + 20_000
  return atMillis - began <= longest ? undefined : `stopping ${process} took ${atMillis - began} ms`
})

/**
 * No record is lost: at the end each is handled, dead-lettered with a copy, dropped on purpose, or gone from the log and reported (unless the group had
 * never committed there: see `accountedFor`).
 */
const losses: Rule["check"] = on("Ended", ({ remains }, ledger) => {
  for (const log of ledger.logs.records.values()) {
    for (const record of log.values()) {
      const { id } = record.plan
      const at = `${id} (${record.partition} at ${record.offset})`
      // A copy that somebody gave up sending may arrive when everything was read to its end.
      if (record.storedMillis >= remains.readMillis) continue
      if (record.state === "open" && record.removed === "no") return `${at} was never finished`
      if (record.state === "open" && record.removed === "retention" && !record.reportedGone) {
        return `${at} was deleted before it was read, and nobody said so`
      }
      const isFurther = ledger.logs.copiesById.get(id)!.some(({ tierAttempt: { tier, attempt } }) => {
        const { tierAttempt } = record
        return tier > tierAttempt.tier || (tier === tierAttempt.tier && attempt > tierAttempt.attempt)
      })
      if (record.state === "routed" && !isFurther && !remains.deadLetters.some((value) => valueOf(value) === id)) {
        return `${at} counts as routed, and there is no copy`
      }
      if (record.state === "dead-lettered" && !remains.deadLetters.some((value) => valueOf(value) === id)) {
        return `${at} counts as dead-lettered, and there is no copy`
      }
    }
  }
  return needless(remains, ledger)
})

/** Every copy in a dead letter topic is of a record that belongs there. */
const needless = (remains: Remains, ledger: Ledger): string | undefined => {
  for (const value of remains.deadLetters) {
    const [record] = ledger.logs.copiesById.get(valueOf(value)) ?? []
    if (record === undefined) return `a dead letter topic has '${value}', which nobody published`
    if (!mayBeDeadLettered(record.plan, record.binding, ledger.scenario)) {
      return `${record.plan.id} is in the dead letter topic, and would have been handled`
    }
  }
  return undefined
}

/** Undecodable values carry a mark in front of their id. */
const valueOf = (value: string): string => value.replace(/^!/, "")

/** When the faults are over, everything is read to the end. */
const settling: Rule["check"] = on("Ended", ({ remains }) => {
  const [first] = remains.lagging
  return (
    first && `${first.partition} is committed to ${first.committed ?? "nothing"}, and its log ends at ${first.logEnd}`
  )
})

/** Ruling 36: after everything is stopped nothing is left. */
const leftovers: Rule["check"] = (entry) => {
  if (entry._tag === "Ended") return entry.remains.leftovers[0]
  return entry._tag === "Closed" && entry.fibers > 0
    ? `${entry.fibers} fibers run on after everything was closed`
    : undefined
}

export const rules: ReadonlyArray<Rule> = [
  { name: "commits", check: commits },
  { name: "calls", check: calls },
  { name: "order", check: order },
  { name: "in-flight", check: inFlight },
  { name: "immediate", check: immediate },
  { name: "pauses", check: pauses },
  { name: "start-positions", check: startPositions },
  { name: "routes", check: routes },
  { name: "stops", check: stops },
  { name: "losses", check: losses },
  { name: "settling", check: settling },
  { name: "leftovers", check: leftovers },
  ...groupRules,
  ...retryRules,
  ...breakerRules
]
