/**
 * The account of every order: its final state according to the database and the cluster alone.
 */
import { type ConsumerRecord, Serde } from "@eventbus/core"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import { Result } from "effect"
import type { Evidence } from "./evidence.ts"
import { isChargeable, Order } from "./shop.ts"

type Record = ConsumerRecord.ConsumerRecord

/** Reason of dead letters, with their number. */
export interface DeadLetterGroup {
  readonly exception: string
  readonly reason: string
  readonly count: number
  /** Number of dead letters by their number of attempts, the fewest attempts first. */
  readonly attempts: ReadonlyArray<{ readonly attempts: number; readonly count: number }>
}

export interface Account {
  /** Orders whose transaction has committed. */
  readonly placed: number
  readonly produced: number
  readonly paid: number
  readonly deadLettered: number
  readonly deadLetterGroups: ReadonlyArray<DeadLetterGroup>
  /** Dead letters of an unreachable bank, about a card that the bank never charges. */
  readonly hopeless: number
  /** Dead letters of an unreachable bank, about a card that the bank charges when it is up: the cost of its outage. */
  readonly outage: number
  /** Orders that are not committed and not begun, or wait in a retry topic. The next start continues with them. */
  readonly waiting: number
  /** Committed orders that are neither paid, waiting for a retry nor dead-lettered. */
  readonly lost: number
  /** Orders that were paid or dead-lettered more than once, because an event ended their work before its commit. */
  readonly repeated: number
  /** Orders that are paid or dead-lettered and will be repeated, because their commit is missing. */
  readonly uncommitted: number
  /** One sentence for each problem; empty when every record is accounted for. */
  readonly problems: ReadonlyArray<string>
}

/**
 * `cutOff` names the partitions whose work was cut off before its commit (the partition was lost, a drain timed out, ...). At-least-once
 * delivery repeats records after that and only after that, so repetitions elsewhere are problems.
 */
export const account = (evidence: Evidence, cutOff: ReadonlySet<number>): Account => {
  const payments = Map.groupBy(evidence.payments, (payment) => text(payment.key))
  const deadLetters = Map.groupBy(evidence.deadLetters, originOf)
  const retrying = new Set(evidence.retrying.map(originOf))
  const problems = publicationProblems(evidence)
  const count = { paid: 0, deadLettered: 0, waiting: 0, lost: 0, repeated: 0, uncommitted: 0 }

  for (const order of evidence.orders) {
    const id = idOf(order)
    const paid = payments.get(id)?.length ?? 0
    const letters = deadLetters.get(id) ?? []
    const committed = order.offset < (evidence.committed.get(order.partition) ?? 0n)
    payments.delete(id)
    deadLetters.delete(id)
    if (letters.some((letter) => !sameBytes(letter, order))) problems.push(`${id}: its dead letter has other bytes`)
    if (paid + letters.length === 0) {
      const lost = committed && !retrying.has(id)
      count[lost ? "lost" : "waiting"]++
      if (lost) problems.push(`${id} is lost: committed, but neither paid, waiting for a retry nor dead-lettered`)
      continue
    }
    count[paid > 0 ? "paid" : "deadLettered"]++
    if (committed && paid + letters.length === 1) continue
    if (paid + letters.length > 1) count.repeated++
    if (!committed) count.uncommitted++
    if (cutOff.has(order.partition)) continue
    problems.push(`${id}: paid ${paid} times, dead-lettered ${letters.length} times, committed: ${committed}`)
  }
  for (const id of payments.keys()) problems.push(`a payment for ${id}, which is no order`)
  for (const id of deadLetters.keys()) problems.push(`a dead letter for ${id}, which is no order`)

  return {
    placed: evidence.placed.size,
    produced: evidence.orders.length,
    ...count,
    deadLetterGroups: groupsOf(evidence.deadLetters),
    ...silenceOf(evidence.deadLetters),
    problems
  }
}

/** Every committed event must be in the topic exactly once, and nothing else may be. */
const publicationProblems = ({ placed, orders }: Evidence): Array<string> => {
  const published = Map.groupBy(orders, (order) => KafkaRelay.eventIdOf(order) ?? idOf(order))
  const strangers = [...published.keys()].filter((id) => !placed.has(id))
  const unpublished = [...placed].filter((id) => !published.has(id))
  const repeated = [...published].filter(([, records]) => records.length > 1)
  return [
    ...unpublished.map((id) => `${id} was committed and never published`),
    ...strangers.map((id) => `${id} was published and never committed`),
    ...repeated.map(([id, records]) => `${id} was published ${records.length} times`)
  ]
}

/** The connector's name of a record: `Delivery.deduplicationKey`. */
const idOf = ({ topic, partition, offset }: Record): string => `${topic}-${partition}-${offset}`

const originOf = (letter: Record): string =>
  ["topic", "partition", "offset"].map((part) => header(letter, `original-${part}`)).join("-")

const groupsOf = (letters: ReadonlyArray<Record>): ReadonlyArray<DeadLetterGroup> => {
  const groups = Map.groupBy(letters, (letter) => `${exceptionOf(letter)}\n${header(letter, "dlt-reason")}`)
  return Array.from(groups, ([key, members]) => {
    const [exception = "", reason = ""] = key.split("\n")
    return { exception, reason, count: members.length, attempts: attemptsOf(members) }
  }).sort((a, b) => b.count - a.count)
}

const attemptsOf = (letters: ReadonlyArray<Record>): DeadLetterGroup["attempts"] => {
  const groups = Map.groupBy(letters, (letter) => Number(header(letter, "total-attempts")))
  return Array.from(groups, ([attempts, members]) => ({ attempts, count: members.length })).sort(
    (a, b) => a.attempts - b.attempts
  )
}

/** Dead letters of an unreachable bank, split by whether the bank would have charged the card. */
const silenceOf = (letters: ReadonlyArray<Record>): Pick<Account, "hopeless" | "outage"> => {
  const silent = letters.filter((letter) => exceptionOf(letter) === "GatewayDown")
  const outage = silent.filter(({ value }) => {
    const order = orderSerde.decode(value)
    return Result.isSuccess(order) && isChargeable(order.success)
  }).length
  return { hopeless: silent.length - outage, outage }
}

const orderSerde = Serde.json(Order)

const exceptionOf = (letter: Record): string => header(letter, "last-exception-class")

const header = (record: Record, name: string): string =>
  text(record.headers.find(({ key }) => key === `x-eventbus-${name}`)?.value ?? null)

const text = (bytes: Uint8Array | null): string => (bytes === null ? "" : decoder.decode(bytes))

const sameBytes = (a: Record, b: Record): boolean => hex(a.key) === hex(b.key) && hex(a.value) === hex(b.value)

const hex = (bytes: Uint8Array | null): string => (bytes === null ? "null" : Buffer.from(bytes).toString("hex"))

const decoder = new TextDecoder()
