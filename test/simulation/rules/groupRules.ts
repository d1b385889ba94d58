/**
 * Rules about groups: positions, pauses, handovers and the end of a process.
 */

import type { Assignment } from "../history/accounts.ts"
import type { PartitionName } from "../history/History.ts"
import type { Ledger } from "../history/Ledger.ts"
import { groupOf, topicOf } from "../scenario/retries.ts"
import { type BindingPlan, rebalanceTimeoutMillis } from "../scenario/Scenario.ts"
import { on, type Rule } from "./Rule.ts"

/** Rulings 9 and 11: no handler is called after an operator's pause. */
const pauses: Rule["check"] = on("Called", ({ process, binding, partition, offsets }, ledger) =>
  ledger.paused.has(`${process} ${binding}`)
    ? `${process} handles ${partition} at ${offsets[0]} while ${binding} is paused`
    : undefined
)

/** Ruling 3: an assignment starts at the committed offset, or at the first record that still exists. */
const startPositions: Rule["check"] = on("Connector", ({ event }, ledger) => {
  if (event._tag !== "PartitionAssigned") return undefined
  // A transactional consumer reads its position again after the previous owner's transactions have ended.
  if (ledger.planOf(event.binding).listener === "transactional") return undefined
  const partition = `${event.topic}/${event.partition}`
  const committed = ledger.committed.get(partition) ?? 0n
  if (event.position < committed)
    return `${partition} starts at ${event.position}, before ${committed}, which is committed`
  for (const record of ledger.logs.byPartition.get(partition)?.values() ?? []) {
    if (record.offset >= event.position) return undefined
    if (record.offset >= committed && record.removed === "no") {
      return `${partition} starts at ${event.position} and jumps over ${record.offset} (${record.plan.id})`
    }
  }
  return undefined
})

/**
 * The owner that gives a partition up waits for its handlers and commits their records, so that the next owner repeats nothing. Exceptions: the
 * drain ran out of time, commits failed while it lasted, a commit had no answer when the time for commits ended, a record before it failed and was left for the next owner,
 * or a pause or the circuit breaker kept a record from starting. A copy that was on its way before is no exception: it goes on, also after a refusal (ruling 83).
 */
const handovers: Rule["check"] = on("Broker", ({ entry }, ledger) => {
  if (entry._tag !== "Released" && entry._tag !== "Left") return undefined
  const partitions = entry._tag === "Released" ? entry.partitions : [...ledger.members.ownedBy(entry)]
  const process = ledger.members.processOf(entry.memberId)
  for (const partition of partitions) {
    const assignments = ledger.assignments.ofPartition(process, partition)
    // A process says that it releases a partition before it does: another assignment of it is of a member that was not told yet that it is out.
    const assignment =
      (entry._tag === "Released" ? assignments.findLast(({ state }) => state === "released") : undefined) ??
      assignments.findLast(({ state }) => state === "closed" || state === "revoked" || state === "active")
    const problem = assignment && handover(assignment, partition, ledger)
    if (problem !== undefined) return `${process} gave ${partition} up ${problem}`
  }
  return undefined
})

const handover = (assignment: Assignment, partition: PartitionName, ledger: Ledger): string | undefined => {
  const { process, binding } = assignment
  if (assignment.drainTimedOut) return undefined
  const running = ledger.openCalls(process, partition).find((call) => call.assignment === assignment)
  if (running !== undefined) return `while ${running.offsets[0]} is being handled`
  const committed = ledger.committed.get(partition) ?? assignment.position
  const told = ledger.told.get(partition)
  const repeated = [...assignment.finished].find((offset) => offset >= committed && told?.has(offset) !== true)
  if (repeated === undefined) return undefined
  const plan = ledger.planOf(binding)
  const traffic = ledger.trafficOf(process, groupOf(plan, topicOf(partition)))
  const { inFlight, lastFailureMillis, answeredInStop } = traffic
  const since = assignment.endingSinceMillis
  if (inFlight > 0 || (since !== undefined && lastFailureMillis >= since)) return undefined
  // One request is on its way at a time, so the last commit waits for the answer to the one before it (ruling 7).
  const commitsEndMillis = (ledger.stopping.get(process) ?? Number.POSITIVE_INFINITY) + commitMillis(plan)
  if (answeredInStop.some((of) => of.sentMillis < commitsEndMillis && of.answeredMillis >= commitsEndMillis))
    return undefined
  const isLeft = (offset: bigint) => offset < repeated && !assignment.abandonedCopies.has(offset)
  if ([...assignment.failed].some(isLeft)) return undefined
  const pausedUntilMillis = ledger.pausedUntilMillis.get(`${process} ${binding}`) ?? -1
  const { notClosedUntilMillis } = ledger.breakers.of(process, binding)
  if (Math.max(pausedUntilMillis, notClosedUntilMillis) >= (since ?? Number.POSITIVE_INFINITY)) return undefined
  return `with ${repeated} finished and only ${committed} committed: it will be handled again`
}

/**
 * Time from the beginning of a stop until no commit is sent any more. A fifth of the stop, or half a second at least, is for the steps behind the drain, and two fifths of it
 * are for the commits.
 */
const commitMillis = ({ shutdownTimeoutMillis }: BindingPlan): number =>
  shutdownTimeoutMillis * 0.8 + Math.max(500, shutdownTimeoutMillis * 0.2) * 0.4

/**
 * A member that is asked for a partition releases it before the group takes it away, at the rebalance timeout. Only a release that cannot be delivered explains an
 * exception: the longest isolation lasts two minutes.
 */
const releases: Rule["check"] = on("Broker", ({ entry, atMillis }, ledger) => {
  if (entry._tag !== "Lost") return undefined
  for (const partition of entry.partitions) {
    const since = ledger.members.revokedSince(entry, partition)
    if (since === undefined || atMillis - since < rebalanceTimeoutMillis) continue
    if (ledger.lastFaultMillis >= since - 120_000) continue
    return `${ledger.members.processOf(entry.memberId)} was asked for ${partition} and kept it for ${atMillis - since} ms`
  }
  return undefined
})

/** Rulings 35 and 83: `shutdownTimeout` bounds a stop as a whole. The steps behind the drain get half a second at least. */
const stops: Rule["check"] = on("ProcessStopped", ({ process, atMillis }, ledger) => {
  const began = ledger.stopping.get(process) ?? atMillis
  const longest = Math.max(...ledger.scenario.bindings.map((plan) => plan.shutdownTimeoutMillis)) + 1_000
  return atMillis - began <= longest ? undefined : `stopping ${process} took ${atMillis - began} ms`
})

export const groupRules: ReadonlyArray<Rule> = [
  { name: "pauses", check: pauses },
  { name: "start-positions", check: startPositions },
  { name: "handovers", check: handovers },
  { name: "releases", check: releases },
  { name: "stops", check: stops }
]
