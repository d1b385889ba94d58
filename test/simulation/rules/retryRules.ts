/**
 * Rules about failing records: the number of attempts, the destination and the headers of copies, and their due times.
 */

import type { Assignment, FailedDelivery, LedgerRecord } from "../history/accounts.ts"
import type { Copy } from "../history/copies.ts"
import * as Copies from "../history/copies.ts"
import type { Ledger } from "../history/Ledger.ts"
import { ownHeaders } from "../scenario/plannedRecords.ts"
import {
  areOfOneTier,
  concurrencyOf,
  deadLetterTopic,
  mainTopicOf,
  mainTopics,
  nextTierAttempt,
  topicOf,
  topicOfTier
} from "../scenario/retries.ts"
import type { BindingPlan } from "../scenario/Scenario.ts"
import { beginMillis } from "../scenario/Scenario.ts"
import { on, type Rule } from "./Rule.ts"

/** Errors that are retried in place. A defect of the handler has no tag. */
const isTriedInPlace = ({ failure }: Pick<FailedDelivery, "failure">): boolean =>
  failure.tag === undefined || failure.tag === "Transient"

/** Ruling 13: no record is handled before its due time. */
const dueTimes: Rule["check"] = on("Called", ({ partition, offsets, atMillis }, ledger) => {
  for (const offset of offsets) {
    const record = ledger.logs.record(partition, offset)
    if (record !== undefined && atMillis < record.dueMillis) {
      return `${partition}: ${offset} (${record.plan.id}) is handled ${record.dueMillis - atMillis} ms before it is due`
    }
  }
  return undefined
})

/** The `concurrency` of a tier limits its handlers in a process. */
const tierSlots: Rule["check"] = on("Called", ({ process, binding, partition, offsets }, ledger) => {
  const plan = ledger.planOf(binding)
  const topic = topicOf(partition)
  if (mainTopics(plan).includes(topic)) return undefined
  const bound = concurrencyOf(plan, topic)
  const running = [...ledger.calls.values()].filter(
    (call) => call.process === process && call.binding === binding && areOfOneTier(plan, topicOf(call.partition), topic)
  )
  return running.length < bound
    ? undefined
    : `${process} runs ${running.length + 1} handlers of ${topic}, and ${bound} are allowed: ${partition} at ${offsets[0]}`
})

/** Rulings 12, 18 and 72: the number of attempts is the configured one, unless the processing budget is used up. The trial call of a half-open breaker is one. */
const attempts: Rule["check"] = on("Connector", ({ process, event }, ledger) => {
  if (event._tag !== "AttemptFailed") return undefined
  const { attempt, failure, retryInMillis } = event
  const plan = ledger.planOf(event.binding)
  const at = `${event.topic}/${event.partition} at ${event.record.offset}`
  if (attempt > plan.maxAttempts) return `${at} failed attempt ${attempt}, and there are ${plan.maxAttempts}`
  if (retryInMillis !== undefined) {
    if (attempt < plan.maxAttempts && isTriedInPlace(event)) return undefined
    return `${at} is tried again after attempt ${attempt} (${failure.className})`
  }
  const record = ledger.logs.record(`${event.topic}/${event.partition}`, event.record.offset)
  if (record?.plan.behaviour._tag === "Undecodable")
    return attempt === 0 ? undefined : `${at} cannot be read, and was tried`
  const assignment = ledger.assignments.current(process, event.consumer, `${event.topic}/${event.partition}`)
  const isCutShort = assignment?.budgetReached === true || failure.tag === "ProcessingBudgetExceeded"
  const isTrial = ledger.breakers.of(process, event.binding).state === "HALF_OPEN"
  if (!isTriedInPlace(event) || isCutShort || isTrial || attempt === plan.maxAttempts) return undefined
  return `${at} is given up after attempt ${attempt} of ${plan.maxAttempts} (${failure.className})`
})

/** A settlement reports as many attempts as the handler saw. */
const counts: Rule["check"] = on("Connector", ({ process, event }, ledger) => {
  if (event._tag !== "Settled") return undefined
  const plan = ledger.planOf(event.binding)
  // A batch shares its calls, and an aborted transaction repeats some.
  if (plan.listener === "whole-batch" || plan.listener === "transactional") return undefined
  if (event.settlement === "Abandoned" || event.settlement === "HeldByBreaker") return undefined
  const partition = `${event.topic}/${event.partition}`
  const assignment = ledger.assignments.current(process, event.consumer, partition)
  const cutOff = event.failure?.tag === "ProcessingBudgetExceeded" ? 1 : 0
  const calls = (assignment?.attempts.get(event.record.offset) ?? 0) + cutOff
  return assignment === undefined || calls === event.attempts
    ? undefined
    : `${partition}: ${event.record.offset} is ${event.settlement} after ${event.attempts} attempts, and there were ${calls}`
})

/** Rulings 6 and 17: only failed deliveries are published, each once, and none that failed after its partition began to be released. */
const publishing: Rule["check"] = on("Sent", ({ process, copy, atMillis }, ledger) => {
  const source = ledger.sources.of(process, copy)
  if (source === undefined) return `${process} publishes ${copy.id} to ${copy.topic}, and no delivery gave it up`
  const { record, assignment } = source
  const from = `${record.partition}: the copy of ${record.offset} (${copy.id})`
  const { state, endingSinceMillis: sinceMillis } = assignment
  const isOver = state !== "active" && state !== "revoked"
  // Copies of records that were given up earlier are still published: records behind them may be handled.
  const isTooLate = sinceMillis !== undefined && assignment.failedDeliveries.get(record.offset)!.atMillis > sinceMillis
  if (isOver || isTooLate) {
    return `${from} is published by ${process}, whose partition is ${isOver ? state : "being given up"}`
  }
  if (assignment.sent.has(record.offset)) return `${from} is published twice`
  const problem = misdirected(ledger, record, assignment, copy) ?? untrue(record, assignment, copy, atMillis)
  return problem === undefined ? undefined : `${from} ${problem}`
})

/** Rulings 13, 15 and 56: the error and the tier decide the destination of a copy. */
const misdirected = (ledger: Ledger, record: LedgerRecord, assignment: Assignment, copy: Copy): string | undefined => {
  const plan = ledger.planOf(record.binding)
  const given = assignment.failedDeliveries.get(record.offset)!
  const { topic, place, reason } = destination(plan, record, given)
  if (copy.topic !== topic) return `went to ${copy.topic}, and belongs into ${topic}`
  if (place === undefined) {
    const stated = copy.headers.get("dlt-reason")
    return stated === reason ? undefined : `is a dead letter for ${stated}, and is one for ${reason}`
  }
  const { tier, attempt } = place
  const stated = [Copies.numberOf(copy, "retry-tier"), Copies.numberOf(copy, "retry-attempt")]
  if (stated[0] === tier && stated[1] === attempt) return undefined
  return `says tier ${stated[0]}, attempt ${stated[1]}, and is for tier ${tier}, attempt ${attempt}`
}

const destination = (
  plan: BindingPlan,
  { plan: { behaviour }, tierAttempt: from, partition }: LedgerRecord,
  { failure }: FailedDelivery
) => {
  const main = mainTopicOf(plan, topicOf(partition))
  const deadLetter = (reason: string) => ({ topic: deadLetterTopic(main), place: undefined, reason })
  if (behaviour._tag === "Undecodable" || failure.tag === "Unwanted") return deadLetter("NON_RETRYABLE")
  const route = behaviour._tag === "Busy" && failure.tag === "Busy" ? behaviour.route : ({ _tag: "Next" } as const)
  const tierAttempt = nextTierAttempt(plan, from, route)
  if (tierAttempt !== undefined)
    return { topic: topicOfTier(plan, tierAttempt.tier, main), place: tierAttempt, reason: undefined }
  const isMistaken = route._tag === "Tier" && route.tier > Math.max(from.tier, plan.tiers.length) && !skipsTiers(plan)
  return deadLetter(isMistaken ? "NON_RETRYABLE" : "RETRIES_EXHAUSTED")
}

const skipsTiers = (plan: BindingPlan): boolean =>
  plan.listener === "batch" && plan.batchFailureStrategy === "DLQ_AND_CONTINUE"

/** Rulings 14, 20 and 30: the headers of a copy are true, whatever headers its source has. */
const untrue = (
  record: LedgerRecord,
  { failedDeliveries }: Assignment,
  copy: Copy,
  atMillis: number
): string | undefined => {
  const { id, key } = record.plan
  const given = failedDeliveries.get(record.offset)!
  const userHeaders = Object.entries(ownHeaders(id)).map(([name, value]) => `${name}=${value}`)
  if (copy.repeated.length > 0) return `has the header ${copy.repeated[0]} twice`
  if (copy.userHeaders.join() !== userHeaders.join())
    return `has headers ${copy.userHeaders.join()}, and its record has ${userHeaders.join()}`
  if (copy.key !== key) return `has key ${copy.key}, and its record has ${key}`
  const total = record.totalAttempts + given.attempts
  const stated = Copies.numberOf(copy, "total-attempts")
  if (stated !== total) return `says ${stated} attempts, and there were ${total}`
  const firstMillis = Copies.numberOf(copy, "first-failure-timestamp") - beginMillis
  const { firstFailureMillis = firstMillis } = record
  if (firstMillis !== firstFailureMillis || !(firstMillis <= given.atMillis && firstMillis >= 0)) {
    return `says that it failed first at ${firstMillis} ms`
  }
  const publishedMillis = Copies.publishedMillis(copy)
  if (!(publishedMillis >= given.atMillis && publishedMillis <= atMillis))
    return `says that it was made at ${publishedMillis} ms`
  return untrueTrail(record, copy, total)
}

/** RTY-14, DLT-22: the headers have one entry for each tier in which the record failed, and the attempts of the entries add up to the total. */
const untrueTrail = (record: LedgerRecord, copy: Copy, total: number): string | undefined => {
  const { tier } = record.tierAttempt
  const tiers = [...copy.headers.keys()].flatMap((name) => {
    const passed = /^tier(\d+)-attempts$/.exec(name)
    return passed === null ? [] : [Number(passed[1])]
  })
  const isGivenUp = copy.headers.has("dlt-reason") || Copies.numberOf(copy, "retry-tier") !== tier
  const beyond = tiers.find((passed) => passed > tier || (passed === tier && !isGivenUp))
  if (beyond !== undefined) return `says that tier ${beyond} gave it up`
  if (!isGivenUp) return undefined
  const sum = tiers.reduce((all, passed) => all + Copies.numberOf(copy, `tier${passed}-attempts`), 0)
  return sum === total ? undefined : `has ${sum} attempts in its trail, and there were ${total}`
}

/** The headers of every copy name the first record of the id as its origin. */
const origins: Rule["check"] = on("Sent", ({ copy }, ledger) => {
  const [first] = ledger.logs.copiesById.get(copy.id) ?? []
  const origin = first && `${first.partition} at ${first.offset}`
  return origin === Copies.originOf(copy)
    ? undefined
    : `a copy of ${copy.id} says that it was first ${Copies.originOf(copy)}, and it was ${origin ?? "never published"}`
})

/** A routed record has its copy in its topic. */
const stored: Rule["check"] = on("Connector", ({ event }, ledger) => {
  if (event._tag !== "Settled" || event.settlement !== "Routed") return undefined
  const record = ledger.logs.record(`${event.topic}/${event.partition}`, event.record.offset)
  const { target } = event
  const isThere = (ledger.logs.copiesById.get(record?.plan.id ?? "") ?? []).some(
    ({ tierAttempt }) => tierAttempt.tier === target?.tier && tierAttempt.attempt === target?.attempt
  )
  return isThere ? undefined : `${record?.plan.id} counts as routed to ${target?.topic}, and there is no copy`
})

export const retryRules: ReadonlyArray<Rule> = [
  { name: "due-times", check: dueTimes },
  { name: "tier-slots", check: tierSlots },
  { name: "attempts", check: attempts },
  { name: "counts", check: counts },
  { name: "origins", check: origins },
  { name: "publishing", check: publishing },
  { name: "stored", check: stored }
]
