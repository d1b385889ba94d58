/**
 * Rules about calls of handlers and about commits: each record once, in order, within the limits.
 */

import type { Call } from "../history/accounts.ts"
import * as FinishedOffsets from "../history/FinishedOffsets.ts"
import type { PartitionName } from "../history/History.ts"
import type { Ledger } from "../history/Ledger.ts"
import { topicOf, waitsGrow } from "../scenario/retries.ts"
import { on, type Rule } from "./Rule.ts"

/** Rulings 3 to 5: a commit covers finished records only, lies inside the log and never goes back. */
const commits: Rule["check"] = on("Broker", ({ entry }, ledger) => {
  if (entry._tag !== "Committed") return undefined
  for (const { topic, partition: number, offset, metadata } of entry.offsets) {
    const partition = `${topic}/${number}`
    const untrue = untrueClaim(ledger, partition, metadata)
    if (untrue !== undefined) return untrue
    const before = ledger.committed.get(partition)
    if (before !== undefined && offset < before) return `${partition} went back from ${before} to ${offset}`
    const end = ledger.logs.ends.get(partition)
    // In a retry topic, transaction markers follow the last record.
    if (end !== undefined && offset > end && !ledger.logs.hasMarkers(partition))
      return `${partition} was committed to ${offset}, and its log ends at ${end}`
    const open = ledger.openUpTo(partition, offset)
    const first = open.find(({ removed }) => removed === "no")
    if (first !== undefined && ledger.assignmentOfTransaction(partition, open) === undefined)
      return `${partition} was committed to ${offset} while ${first.offset} (${first.plan.id}) is not finished`
  }
  return undefined
})

/** MSG-20: an offset that a commit calls finished is not handled by the next owner. */
const untrueClaim = (ledger: Ledger, partition: PartitionName, metadata: string): string | undefined => {
  for (const offset of FinishedOffsets.of(metadata)) {
    const record = ledger.logs.record(partition, offset)
    if (record?.state === "open" && record.removed === "no")
      return `${partition}: a commit calls ${offset} (${record.plan.id}) finished, and it is not`
  }
  return undefined
}

/** A handler is called under an assignment, once for each record in it, from its start position on. */
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

/** Order per partition or key within an assignment. */
const order: Rule["check"] = on("Called", ({ process, consumer, partition, offsets, binding }, ledger) => {
  const assignment = ledger.assignments.current(process, consumer, partition)
  const first = offsets[0]
  if (assignment === undefined || first === undefined) return undefined
  const plan = ledger.planOf(binding)
  const name = (offset: bigint) => `${offset} (${ledger.logs.record(partition, offset)?.plan.id ?? "?"})`
  const isTransactional = plan.listener === "transactional"
  const gone = (offset: bigint) => assignment.failedDeliveries.has(offset) && plan.onExhausted === "dead-letter"
  // A failed transaction is repeated without the record that failed.
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
  // There, the due times are the order.
  if (waitsGrow(plan, topicOf(partition))) return undefined
  const later = [...assignment.finished].find((offset) => offset > first && sameLane(offset))
  return later === undefined ? undefined : `${partition}: ${name(first)} began after ${name(later)}`
})

/** Ruling 51: `maxInFlight` limits the handlers of a binding in a process. */
const inFlight: Rule["check"] = on("Called", ({ process, binding }, ledger) => {
  const { maxInFlight, processingOrder } = ledger.planOf(binding)
  const bound = maxInFlight ?? (processingOrder === "partition" ? Number.POSITIVE_INFINITY : 16)
  const running = [...ledger.calls.values()].filter(
    (call) => call.process === process && call.binding === binding
  ).length
  return running < bound ? undefined : `${process} runs ${running + 1} handlers of ${binding}, and ${bound} are allowed`
})

/**
 * Rulings 7 and 73: under `MANUAL_IMMEDIATE` no record starts while a copy of its partition is pending. In order, a record starts after the commit of the record before it,
 * whatever became of that one.
 */
const immediate: Rule["check"] = on("Called", ({ process, consumer, partition, offsets, binding }, ledger) => {
  const plan = ledger.planOf(binding)
  const first = offsets[0]
  if (first === undefined || plan.ackMode !== "MANUAL_IMMEDIATE") return undefined
  if (plan.listener !== "single") return undefined
  const assignment = ledger.assignments.current(process, consumer, partition)
  const copied = [...(assignment?.failedDeliveries.keys() ?? [])].find((offset) => offset !== first)
  if (copied !== undefined && assignment?.begun.has(first) === false)
    return `${partition}: ${first} began while the copy of ${copied} was pending`
  if (plan.processingOrder !== "partition") return undefined
  const before = [...(assignment?.finished ?? [])].filter((offset) => offset < first).pop()
  if (before === undefined || (ledger.committed.get(partition) ?? -1n) > before) return undefined
  if (ledger.told.get(partition)?.has(before) === true) return undefined
  return `${partition}: ${first} began before ${before} was committed`
})

export const callRules: ReadonlyArray<Rule> = [
  { name: "commits", check: commits },
  { name: "calls", check: calls },
  { name: "order", check: order },
  { name: "in-flight", check: inFlight },
  { name: "immediate", check: immediate }
]
