/**
 * The headers by which a record of a retry topic takes part in order per key (`orderingMode: "PER_KEY"`, connector rulings of order per key).
 *
 * A **lock** is a copy with these headers: it says that everything of its key below `offset` is done. A **claim** has no key: from it on, locks of a lower epoch are void. They
 * are bound to the group, and to the source partition in one cluster and one incarnation of its topic. Headers are untrusted input (ruling 14): a record whose bond is not
 * that of its reader is no lock, and is retried without order.
 */
import type { ConsumerRecord, Header, TopicPartition } from "../../ConsumerRecord.ts"
import { number } from "./deadLetterHeaders.ts"
import * as Names from "./headerNames.ts"
import * as HeaderValues from "./headerValues.ts"

/**
 * - `retry`: the record at `offset` waits for its delivery.
 * - `next`: from `offset` on nothing is done; the lock has no body.
 * - `held`: the record at `offset` waits for an operator.
 */
export type LockKind = "retry" | "next" | "held"

/** An operator's decision about a held record. */
export type Verb = "retry-held" | "skip-held"

export interface Lock {
  readonly kind: LockKind
  /** Everything of the key below this offset of the source is done. */
  readonly offset: bigint
  /** Counts the locks of one offset, from 1. The highest pair of offset and hop is the key's lock. */
  readonly hop: number
  readonly epoch: number
  /** Where the first follower can be. */
  readonly next: bigint
}

export interface Claim {
  readonly kind: "claim"
  readonly epoch: number
}

export interface Command {
  readonly kind: Verb
  /** The offset of the held record. */
  readonly offset: bigint
}

/** The source partition that the offsets are of, and the group. */
export interface Bond extends TopicPartition {
  readonly clusterId: string
  /** Undefined when the cluster gives none (Kafka before 2.8). */
  readonly topicId: string | undefined
  readonly groupId: string
  /** Former names of the group. Their locks are strangers. Default: none. */
  readonly formerGroupIds?: ReadonlyArray<string>
}

const encoder = new TextEncoder()

const text = (key: string, value: string): Header => ({ key, value: encoder.encode(value) })

/** One bond serves a unit for as long as it lives. */
const bondHeaders = new WeakMap<Bond, Header>()

const bondHeader = (bond: Bond): Header => {
  const before = bondHeaders.get(bond)
  if (before !== undefined) return before
  const { clusterId, topicId = "", topic, partition, groupId } = bond
  const made = text(Names.orderBond, [clusterId, topicId, topic, partition, groupId].join("/"))
  bondHeaders.set(bond, made)
  return made
}

const kindHeader: Readonly<Record<LockKind, Header>> = {
  retry: text(Names.orderKind, "retry"),
  next: text(Names.orderKind, "next"),
  held: text(Names.orderKind, "held")
}

export const ofLock = (bond: Bond, { kind, offset, hop, epoch, next }: Lock): ReadonlyArray<Header> => [
  kindHeader[kind],
  number(Names.orderOffset, offset),
  number(Names.orderHop, hop),
  number(Names.orderEpoch, epoch),
  number(Names.orderNext, next),
  bondHeader(bond)
]

export const ofClaim = (bond: Bond, epoch: number): ReadonlyArray<Header> => [
  text(Names.orderKind, "claim"),
  number(Names.orderEpoch, epoch),
  bondHeader(bond)
]

export const ofCommand = (bond: Bond, { kind, offset }: Command): ReadonlyArray<Header> => [
  text(Names.orderKind, kind),
  number(Names.orderOffset, offset),
  bondHeader(bond)
]

/** Says that an operator has accepted the loss of order behind all strangers that lie below an offset of the same retry partition. */
export interface Acceptance {
  readonly kind: "accept-loss"
  readonly offset: bigint
}

export const ofAcceptance = (bond: Bond, offset: bigint): ReadonlyArray<Header> => [
  text(Names.orderKind, "accept-loss"),
  number(Names.orderOffset, offset),
  bondHeader(bond)
]

/** A record of another incarnation of the source topic, of another cluster, or of a former name of the group. */
export interface Stranger {
  readonly kind: "stranger"
  /** The bond that the record names. */
  readonly bond: string
  /** The former name of the group; undefined for the group itself. */
  readonly formerGroupId: string | undefined
  /** Undefined where it is no lock. */
  readonly lock: Lock | undefined
}

/** The highest numbers that are read. Only a false record comes near them; the owner stays there, since it could not read its own locks beyond. Epochs fit a number exactly. */
export const maxEpoch = Number.MAX_SAFE_INTEGER
export const maxHop = 1_000_000_000

const kinds: ReadonlySet<string> = new Set<LockKind>(["retry", "next", "held"])
const verbs: ReadonlySet<string> = new Set<Verb>(["retry-held", "skip-held"])

/** Whether it waits for no delivery: it takes part in order per key, and is no lock of a record that waits. */
export const isAtOnce = (record: ConsumerRecord): boolean => {
  const kind = HeaderValues.last(record.headers, Names.orderKind)
  return kind !== undefined && HeaderValues.text(kind) !== "retry"
}

/** Whether it is a claim, a command, an acceptance, or a lock without a record to deliver, whosever it is: no handler may see it. */
export const isForNoHandler = (record: ConsumerRecord): boolean => {
  const value = HeaderValues.last(record.headers, Names.orderKind)
  if (value === undefined) return false
  const kind = HeaderValues.text(value)
  return kind === "claim" || kind === "accept-loss" || kind === "next" || (kind !== undefined && verbs.has(kind))
}

/** Reads a record of a retry topic. Undefined for one that takes no part: it is retried without order. */
export const read = (record: ConsumerRecord, bond: Bond): OwnRecord | Stranger | undefined => {
  const kind = HeaderValues.text(HeaderValues.last(record.headers, Names.orderKind))
  if (kind === undefined) return undefined
  const bound = HeaderValues.last(record.headers, Names.orderBond)
  // Nearly every lock is the unit's own: comparing bytes costs less than reading them as text.
  if (HeaderValues.isSame(bound, bondHeader(bond).value)) return parse(record, kind)
  return ofStranger(record, kind, HeaderValues.text(bound) ?? "", bond)
}

const ofStranger = (record: ConsumerRecord, kind: string, bound: string, bond: Bond): Stranger | undefined => {
  const groupId = groupOfSameSource(bound, bond)
  if (groupId === undefined) return undefined
  const parsed = parse(record, kind)
  const lock = parsed !== undefined && isLock(parsed) ? parsed : undefined
  return { kind: "stranger", bond: bound, formerGroupId: groupId === bond.groupId ? undefined : groupId, lock }
}

type OwnRecord = Lock | Claim | Command | Acceptance

const parse = (record: ConsumerRecord, kind: string): OwnRecord | undefined => {
  const epoch = HeaderValues.wholeNumber(HeaderValues.last(record.headers, Names.orderEpoch), 0, maxEpoch)
  if (kind === "claim") return epoch === undefined ? undefined : { kind, epoch }
  const offset = HeaderValues.offset(HeaderValues.last(record.headers, Names.orderOffset))
  if (offset === undefined) return undefined
  if (kind === "accept-loss") return { kind, offset }
  if (record.key === null) return undefined
  if (isVerb(kind)) return { kind, offset }
  const hop = HeaderValues.wholeNumber(HeaderValues.last(record.headers, Names.orderHop), 1, maxHop)
  const next = HeaderValues.offset(HeaderValues.last(record.headers, Names.orderNext))
  if (!isLockKind(kind) || hop === undefined || next === undefined || epoch === undefined) return undefined
  return { kind, offset, hop, epoch, next }
}

const isLockKind = (kind: string): kind is LockKind => kinds.has(kind)
const isVerb = (kind: string): kind is Verb => verbs.has(kind)

export const isLock = (read: OwnRecord | Stranger): read is Lock => isLockKind(read.kind)

/** The group that the bond names, this one or a former name of it, where it names this source partition, of whichever cluster and incarnation. */
const groupOfSameSource = (
  bound: string,
  { topic, partition, groupId, formerGroupIds = [] }: Bond
): string | undefined => {
  const [, , boundTopic, boundPartition, ...group] = bound.split("/")
  if (boundTopic !== topic || boundPartition !== String(partition)) return undefined
  return [groupId, ...formerGroupIds].find((each) => each === group.join("/"))
}
