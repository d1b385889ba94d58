/**
 * Rules for partitions that move to another member of the group.
 */
import type { Assignment } from "./accounts.ts"
import type { PartitionName } from "./History.ts"
import type { Ledger } from "./Ledger.ts"
import { on, type Rule } from "./Rule.ts"
import { groupOf, topicOf } from "./retries.ts"
import { rebalanceTimeoutMillis } from "./Scenario.ts"

/**
 * A process that gives a partition up lets its handlers end, and commits what they did, so that the next owner repeats nothing. These explain an
 * exception: the drain ran out of time, commits failed while it lasted, a record before it failed and was left for the next owner, or a pause or
 * the circuit breaker kept one from starting.
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
  const committed = ledger.logs.committed.get(partition) ?? assignment.position
  const repeated = [...assignment.finished].find((offset) => offset >= committed)
  if (repeated === undefined) return undefined
  const { inFlight, lastFailureMillis } = ledger.trafficOf(
    process,
    groupOf(ledger.logs.planOf(binding), topicOf(partition))
  )
  const since = assignment.endingSinceMillis
  if (inFlight > 0 || (since !== undefined && lastFailureMillis >= since)) return undefined
  if ([...assignment.failed].some((offset) => offset < repeated)) return undefined
  const pausedUntilMillis = ledger.pausedUntilMillis.get(`${process} ${binding}`) ?? -1
  const { notClosedUntilMillis: breakerUntilMillis } = ledger.breakers.of(process, binding)
  if (Math.max(pausedUntilMillis, breakerUntilMillis) >= (since ?? Number.POSITIVE_INFINITY)) return undefined
  return `with ${repeated} finished and only ${committed} committed: it will be handled again`
}

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

export const groupRules: ReadonlyArray<Rule> = [
  { name: "handovers", check: handovers },
  { name: "releases", check: releases }
]
