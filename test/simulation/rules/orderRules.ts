/**
 * Rules of order per key through retry topics. They read the history alone: what a new owner would find from the committed state is worked out here, and not asked of the
 * connector.
 */
import type { Entry, PartitionName, StoredLock } from "../history/History.ts"
import { epochOf, type OrderBook } from "../history/OrderBook.ts"
import type { OrderKey, OrderRecord } from "../history/orderRecords.ts"
import { topicOf } from "../scenario/retries.ts"

interface OrderRule {
  readonly name: string
  /** Returns a sentence when the entry breaks the rule. */
  readonly check: (entry: Entry, book: OrderBook) => string | undefined
}

const nameOf = ({ plan, partition, offset, index }: OrderRecord): string =>
  `${plan.id} (#${index} of ${plan.key} in ${partition} at ${offset})`

/** Records that a handler gets, or that become dead letters. */
const handledBy = (entry: Entry, book: OrderBook): ReadonlyArray<OrderRecord> => {
  if (entry._tag === "Called") return entry.ids.flatMap((id) => book.byId.get(id) ?? [])
  if (entry._tag !== "Stored" || !book.isLetter(entry.partition)) return []
  return entry.copies.flatMap(({ copy }) => book.byId.get(copy.id) ?? [])
}

/** Records that others wait for, and that wait for others. */
const bound = (records: ReadonlyArray<OrderRecord>, book: OrderBook): ReadonlyArray<OrderRecord> =>
  records.filter((record) => !book.isLoose(record))

/** A record begins when everything of its key before it has been done at least once. */
const overtaken: OrderRule["check"] = (entry, book) => {
  for (const record of handledBy(entry, book)) {
    if (record.isRelaxed) continue
    const before = record.of?.records.find((one) => one.index < record.index && !one.isDone && !book.isLoose(one))
    if (before !== undefined) return `${nameOf(record)} overtakes ${nameOf(before)}`
  }
  return undefined
}

/**
 * No process handles two records of a key at once. One that keeps no order does where a crash has left a lock that no commit tells of: it reads the source from before the lock, beside
 * its retry topics.
 */
const parallel: OrderRule["check"] = (entry, book) => {
  if (entry._tag !== "Called") return undefined
  const [record] = handledBy(entry, book)
  if (record?.of === undefined || record.isRelaxed) return undefined
  if (book.isRelaxed(entry.process) && book.disturbances.first !== undefined) return undefined
  for (const { process, records, isLate } of book.running.values()) {
    const other = records.find(({ of, isRelaxed }) => of === record.of && !isRelaxed)
    if (process === entry.process && other !== undefined && !isLate)
      return `${nameOf(record)} begins beside ${nameOf(other)}`
  }
  return undefined
}

/** I4: behind a record comes the next one of its key, or one before it. */
const skipped: OrderRule["check"] = (entry, book) => {
  for (const record of doneBy(entry, book)) {
    const { of: key, index } = record
    if (key === undefined || record.isRelaxed) continue
    const last = Math.max(key.last, key.zombie)
    if (index > last + 1 && bound(key.records.slice(last + 1, index), book).length > 0)
      return `${nameOf(record)} comes behind #${key.last} (a former owner: #${key.zombie})`
  }
  return undefined
}

/** The records that an owner has done by this. */
const doneBy = (entry: Entry, book: OrderBook): ReadonlyArray<OrderRecord> => {
  if (entry._tag === "Returned") {
    const call = book.running.get(entry.call)
    if (entry.outcome !== "done" || call === undefined || call.isLate) return []
    return call.records.filter((record) => !book.isZombie(entry.process, record))
  }
  if (entry._tag !== "Stored") return []
  return handledBy(entry, book).filter((record) => !book.isLateLetter(record))
}

/** I5: nothing is handled twice where nothing has happened that leads to it. */
const twice: OrderRule["check"] = (entry, book) => {
  const { first, leavesRetries } = book.disturbances
  if (first !== undefined) return undefined
  const again = handledBy(entry, book).find(
    (record) => record.isDone && !(leavesRetries && book.withoutOrder.has(record))
  )
  return again && `${nameOf(again)} is handled again, and there was no crash, lost session, fault, or failure`
}

/** I1: everything of a key below its lock is done. */
const trueLocks: OrderRule["check"] = (entry, book) => {
  if (entry._tag !== "Locked") return undefined
  for (const lock of entry.locks) {
    const open = recordsOf(book, entry.partition, lock).find(
      (record) => record.offset < lock.offset && !record.isDone && !book.isLoose(record)
    )
    if (open !== undefined) return `${entry.partition}: a lock at ${lock.offset}, and ${nameOf(open)} is not done`
  }
  return undefined
}

const recordsOf = (book: OrderBook, tier: PartitionName, { key }: StoredLock): ReadonlyArray<OrderRecord> => {
  if (key === null) return []
  const main = Array.from(book.keys.keys()).find((partition) => book.tiersOf(partition).includes(tier))
  return main === undefined ? [] : (book.keys.get(main)?.get(key)?.records ?? [])
}

/** I2, I3: from what is committed alone, a new owner finds everything that is not done. */
const covered: OrderRule["check"] = (entry, book) => {
  if (entry._tag !== "Broker" || entry.entry._tag !== "Committed") return undefined
  const committed = new Map(book.committed)
  for (const { topic, partition, offset, metadata } of entry.entry.offsets)
    committed.set(`${topic}/${partition}`, { offset, epoch: epochOf(metadata) })
  const locks = new Map<PartitionName, ReadonlyMap<string, StoredLock>>()
  for (const main of book.mains()) {
    const to = committed.get(main)?.offset ?? 0n
    const best = locksOf(book, main, committed)
    locks.set(main, best)
    for (const [name, key] of book.keys.get(main) ?? []) {
      const problem = uncovered(key, to, best.get(name), book)
      if (problem !== undefined) return problem
    }
  }
  return uncoveredByCopies(book, committed, locks)
}

/**
 * The highest lock of each key that a new owner believes. One that is gone counts: what it kept back is reported, or has a new lock. So does one whose claim is gone, where its key has no
 * other: it is void for the new owner, who believes it all the same.
 */
const locksOf = (
  book: OrderBook,
  main: PartitionName,
  committed: OrderBook["committed"]
): ReadonlyMap<string, StoredLock> => {
  const best = new Map<string, StoredLock>()
  const withoutClaim = new Map<string, StoredLock>()
  for (const tier of book.tiersOf(main)) {
    const { offset: from = 0n, epoch = 0 } = committed.get(tier) ?? {}
    let inForce = epoch
    let claimGone = 0
    for (const lock of book.locks.get(tier) ?? []) {
      const isGone = book.deletions.isGone(tier, lock.at)
      if (lock.at < from && !isGone) continue
      if (lock.key === null && isGone) claimGone = Math.max(claimGone, lock.epoch)
      else if (lock.key === null) inForce = Math.max(inForce, lock.epoch)
      else if (isGone || lock.epoch === inForce) keepHigher(best, lock.key, lock)
      else if (lock.epoch === claimGone && claimGone > inForce) keepHigher(withoutClaim, lock.key, lock)
    }
  }
  return new Map([...withoutClaim, ...best])
}

const keepHigher = (locks: Map<string, StoredLock>, key: string, lock: StoredLock): void => {
  if (isHigher(lock, locks.get(key))) locks.set(key, lock)
}

const isHigher = ({ offset, hop }: StoredLock, other: StoredLock | undefined): boolean =>
  other === undefined || offset > other.offset || (offset === other.offset && hop > other.hop)

const uncovered = (
  { records }: OrderKey,
  to: bigint,
  lock: StoredLock | undefined,
  book: OrderBook
): string | undefined => {
  const open = records.find((record) => !record.isDone && !book.isLoose(record))
  if (open === undefined || open.offset >= to) return undefined
  if (lock === undefined) return `${nameOf(open)} is not done, ${to} is committed, and there is no lock of its key`
  return keeps(lock, open)
    ? undefined
    : `${nameOf(open)} is not done, ${to} is committed, and the lock of its key is ${lock.kind} at ${lock.offset}, next ${lock.next}`
}

/** Whether the record is the lock's, or one that follows. */
const keeps = ({ kind, offset, next }: StoredLock, record: OrderRecord): boolean => {
  const from = kind === "next" ? offset : offset + 1n
  return (kind !== "next" && offset === record.offset) || record.offset >= (from > next ? from : next)
}

/** Records that are retried without order have a copy that waits, unless they follow a lock by now. */
const uncoveredByCopies = (
  book: OrderBook,
  committed: OrderBook["committed"],
  locks: ReadonlyMap<PartitionName, ReadonlyMap<string, StoredLock>>
): string | undefined => {
  for (const record of book.withoutOrder) {
    const { plan, partition, offset, isDone } = record
    if (isDone || offset >= (committed.get(partition)?.offset ?? 0n) || book.isSaidGone(record)) continue
    const lock = plan.key === null ? undefined : locks.get(partition)?.get(plan.key)
    const copies = book.copies.get(plan.id) ?? []
    if (lock !== undefined && keeps(lock, record)) continue
    if (!copies.some((copy) => copy.offset >= (committed.get(copy.partition)?.offset ?? 0n)))
      return `${plan.id} (without order, in ${partition} at ${offset}) is not done, and nothing keeps it`
  }
  return undefined
}

/** A clean key may wait for this long: handlers, fetches and commits of a calm run, and far less than a tier. */
const cleanMillis = 10_000

/** In a calm run the records of a key that never fails do not wait for other keys. */
const others: OrderRule["check"] = (entry, book) => {
  if (!book.isCalm || entry._tag !== "Called") return undefined
  const late = handledBy(entry, book).find(
    ({ plan, publishedMillis }) =>
      plan.key?.startsWith("clean") === true && entry.atMillis - publishedMillis > cleanMillis
  )
  return late && `${nameOf(late)} of a clean key waited for ${entry.atMillis - late.publishedMillis} ms`
}

/** Everything is done at the end, or gone and reported, and the last effect of each key is that of its last record. */
const losses: OrderRule["check"] = (entry, book) => {
  if (entry._tag !== "Ended") return undefined
  for (const record of book.byId.values())
    if (!record.isDone && !book.isSaidGone(record)) return `${nameOf(record)} was never done`
  for (const keys of book.keys.values()) {
    for (const { name, last, zombie, records } of keys.values()) {
      const end = bound(records, book).at(-1)?.index ?? -1
      if (last < end && zombie < end) return `${name} ends with #${last} of ${records.length}`
    }
  }
  return undefined
}

/** Every partition is read to its end after the faults. */
const settling: OrderRule["check"] = (entry) => {
  const first = entry._tag === "Ended" ? entry.remains.lagging[0] : undefined
  return first && `${first.partition} is committed to ${first.committed}, and its log ends at ${first.logEnd}`
}

const leftovers: OrderRule["check"] = (entry) => {
  if (entry._tag === "Ended") return entry.remains.leftovers[0]
  return entry._tag === "Closed" && entry.fibers > 0 ? `${entry.fibers} fibers run on after the end` : undefined
}

/** A record is dead-lettered only if its handler fails for good, and a command or an expired wait is no reason for others. */
const letters: OrderRule["check"] = (entry, book) => {
  if (entry._tag !== "Stored" || !book.isLetter(entry.partition)) return undefined
  if (book.plan.perKey?.onDeadLetter === "hold") return undefined
  const wrong = handledBy(entry, book).find(({ plan }) => plan.behaviour._tag === "Fine")
  const isDown = book.scenario.outage !== undefined
  return wrong === undefined || isDown ? undefined : `${nameOf(wrong)} in ${topicOf(entry.partition)} never fails`
}

export const orderRules: ReadonlyArray<OrderRule> = [
  { name: "order-overtaken", check: overtaken },
  { name: "order-parallel", check: parallel },
  { name: "order-skipped", check: skipped },
  { name: "order-twice", check: twice },
  { name: "order-locks", check: trueLocks },
  { name: "order-covered", check: covered },
  { name: "order-others", check: others },
  { name: "order-letters", check: letters },
  { name: "losses", check: losses },
  { name: "settling", check: settling },
  { name: "leftovers", check: leftovers }
]
