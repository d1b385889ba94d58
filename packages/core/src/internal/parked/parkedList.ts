/**
 * Lists the parked keys of a group: those that its retry topics tell of, and for partitions of this process, what their units know.
 */
import * as Effect from "effect/Effect"
import type { Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import type { ErrorSummary } from "../../Failure.ts"
import { type ParkedKey, type State, states } from "../../ParkedKeys.ts"
import * as BigInts from "../base/bigInts.ts"
import type { Entry } from "../order/entry.ts"
import type { Found } from "../order/lockScan.ts"
import type { Unit } from "../order/unit.ts"
import * as Names from "../record/headerNames.ts"
import * as HeaderValues from "../record/headerValues.ts"
import type * as OrderHeaders from "../record/orderHeaders.ts"
import * as RetryState from "../record/retryState.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"
import * as LockReading from "./lockReading.ts"

export interface ListOptions {
  readonly definition: BindingDefinition<unknown>
  readonly broker: Broker["Service"]
  /** The units that this process runs. */
  readonly units: () => ReadonlyArray<Unit>
}

/** A parked key, and what a decision about it needs. */
export interface KeyInGroup {
  readonly key: ParkedKey
  /** The binding as it reads the key's source. */
  readonly definition: BindingDefinition<unknown>
  readonly bond: OrderHeaders.Bond
  /** Set where this process owns the partition. */
  readonly owned: { readonly unit: Unit; readonly entry: Entry } | undefined
  /** Set for a stranded key: the retry topic of its lock, and how far that was read. */
  readonly strandedIn?: { readonly part: number; readonly end: bigint }
}

/** Those that are held first, and of each state those that have waited longest. */
export const list = ({
  definition,
  broker,
  units
}: ListOptions): Effect.Effect<ReadonlyArray<KeyInGroup>, BrokerError> =>
  Effect.gen(function* () {
    const found = yield* Effect.forEach(Sources.of(definition), (source) =>
      Effect.map(LockReading.read(source, broker), (all) =>
        all.flatMap((locks) => ofPartition(source, locks, runningUnit(units(), source.topic, locks.partition)))
      )
    )
    return found.flat().sort(byUrgency)
  }).pipe(Effect.scoped)

const byUrgency = ({ key: a }: KeyInGroup, { key: b }: KeyInGroup): number =>
  states.indexOf(a.state) - states.indexOf(b.state) ||
  a.sinceMillis - b.sinceMillis ||
  a.partition - b.partition ||
  (a.offset === b.offset ? (a.topic < b.topic ? -1 : 1) : a.offset < b.offset ? -1 : 1)

const runningUnit = (units: ReadonlyArray<Unit>, topic: string, partition: number): Unit | undefined =>
  units.find(({ options: { main }, stopping }) => main.topic === topic && main.partition === partition && !stopping)

const ofPartition = (
  definition: BindingDefinition<unknown>,
  { partition, bond, found, stranded, ends }: LockReading.Locks,
  unit: Unit | undefined
): ReadonlyArray<KeyInGroup> => {
  const at = { topic: definition.topic, partition }
  if (unit === undefined) {
    const shown = (each: Found) => ({
      ...{ definition, bond, owned: undefined },
      key: { ...at, ...fromLock(each), ...told(definition, each), ...notOwned }
    })
    const ofStranded = (each: Found): KeyInGroup => {
      const { key, ...rest } = shown(each)
      return {
        ...rest,
        key: { ...key, state: "stranded", dueMillis: undefined },
        strandedIn: { part: each.part, end: ends.get(each.part)! }
      }
    }
    return [...stranded.map(ofStranded), ...Array.from(found.values(), shown)]
  }
  return Array.from(unit.table.values())
    .filter(({ isGone }) => !isGone)
    .map((entry) => {
      const lock = found.get(entry.key)
      const isCurrent = lock?.lock.offset === entry.offset && lock.lock.hop === entry.hop
      const known = lock !== undefined && isCurrent ? told(definition, lock) : nothingTold
      return { definition, bond, owned: { unit, entry }, key: { ...at, ...known, ...fromEntry(entry, known) } }
    })
}

const stateOf: Readonly<Record<OrderHeaders.LockKind, State>> = { retry: "waiting", next: "draining", held: "held" }

/** By what a lock says. */
const fromLock = ({ lock, record }: Found) => ({
  ...{ key: record.key!, state: stateOf[lock.kind], offset: lock.offset }
})

const notOwned = { followers: undefined, hasMoreFollowers: true, isOwnedHere: false } as const

type Told = Pick<ParkedKey, "dueMillis" | "retryTopic" | "tier" | "failure" | "sinceMillis">

const nothingTold: Told = {
  ...{ dueMillis: undefined, retryTopic: undefined, tier: undefined, failure: undefined },
  sinceMillis: Number.POSITIVE_INFINITY
}

/** Reads the headers of a lock: untrusted input, which never throws. */
const told = (definition: BindingDefinition<unknown>, { lock, record, part }: Found): Told => {
  const topic = definition.tiers.topics[part - 1]!
  const { tier, attempt, publishedMillis, firstFailureMillis } = RetryState.ofRetryTopic(record, topic, definition)
  const isWaiting = lock.kind === "retry"
  return {
    retryTopic: topic.topic,
    tier: isWaiting ? tier : undefined,
    dueMillis: isWaiting ? publishedMillis + definition.tiers.waitMillis(tier, attempt) : undefined,
    failure: failureOf(record, definition.tiers.count),
    sinceMillis: firstFailureMillis ?? record.timestamp
  }
}

/** That of a dead letter, which a held record carries. A copy in a retry topic has the class of the last tier that failed. */
const failureOf = ({ headers }: ConsumerRecord, tiers: number): ErrorSummary | undefined => {
  const textOf = (name: string) => HeaderValues.text(HeaderValues.last(headers, name))
  const className = textOf(Names.lastExceptionClass)
  if (className !== undefined) return { className, message: textOf(Names.lastExceptionMessage) ?? "" }
  for (let tier = tiers; tier >= 0; tier--) {
    const ofTier = textOf(Names.tierException(tier))
    if (ofTier !== undefined) return { className: ofTier, message: "" }
  }
  return undefined
}

/** By what its unit knows. */
const fromEntry = (entry: Entry, known: Told) => {
  const { followers, offset, doneTo } = entry
  const state = stateOfEntry(entry)
  // A held record that is decided about is the first of what follows it.
  const isAmongThem = followers.firstAt !== undefined && followers.firstAt.offset <= offset
  return {
    ...{ key: entry.keyBytes, state, offset: BigInts.max(doneTo, offset) },
    ...(state === "waiting" ? {} : { dueMillis: undefined, tier: undefined }),
    sinceMillis: Math.min(entry.sinceMillis, known.sinceMillis),
    followers: followers.length - (isAmongThem ? 1 : 0),
    hasMoreFollowers: entry.evictedFrom !== undefined,
    isOwnedHere: true
  }
}

const stateOfEntry = (entry: Entry): State => {
  if (entry.isHeld) return "held"
  return entry.kind === "retry" && !entry.isDraining && entry.doneTo <= entry.offset ? "waiting" : "draining"
}
