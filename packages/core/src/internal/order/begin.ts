/**
 * The beginning of a unit: nothing of it is handled before its table is whole.
 *
 * The new owner writes a claim into each retry topic and reads from the committed offset to the claim: whatever a former owner publishes behind it is void. The highest lock of
 * each key is the key's (`lockScan.ts`).
 */
import * as Effect from "effect/Effect"
import type { Reader } from "../../Broker.ts"
import { type BrokerError, UnexpectedBrokerError } from "../../BrokerError.ts"
import type { TopicPartition } from "../../ConsumerRecord.ts"
import * as BigInts from "../base/bigInts.ts"
import * as Clocks from "../base/clocks.ts"
import { pluralize } from "../base/pluralize.ts"
import type { Partition } from "../partition/partition.ts"
import type { Copy } from "../record/copy.ts"
import * as SourceRetention from "../retry/sourceRetention.ts"
import * as Claims from "./claims.ts"
import { Entry } from "./entry.ts"
import * as FormerPositions from "./formerPositions.ts"
import * as LockCopies from "./lockCopies.ts"
import { type Found, highestOf, isAccepted, LockScan, lastCopy, type Stranded, strangersOf } from "./lockScan.ts"
import * as LostOffsets from "./lostOffsets.ts"
import { readAgain } from "./readAgain.ts"
import { Unit } from "./unit.ts"
import type { UnitOptions } from "./unitOptions.ts"

interface LocksLost {
  /** The retry topics. */
  readonly topics: ReadonlyArray<string>
  readonly keys: number
  readonly from: bigint
}

export interface BeginOptions extends Omit<UnitOptions, "epoch" | "elapsedMillis" | "strangersTo"> {
  readonly generation: number
  /** The dead letter of a lock whose loss an operator has accepted, with the body that it has. */
  readonly letterOf: (at: Partition, lock: Stranded) => Copy
  /** Locks are gone that the last owner had: of so many keys at most, which waited from this offset of the source on. */
  readonly onLocksGone: (gone: LocksLost) => void
  /** The unit cannot begin yet, and why. It is tried again. */
  readonly onProblem: (problem: string) => unknown
}

/** Units that begin at about the same time share one look at the configuration of their source. */
const retentionMillis = 3_000

/** Begins a unit, however long that takes. */
export const begin = (options: BeginOptions): Effect.Effect<Unit> =>
  Effect.scoped(attempt(options)).pipe(
    Effect.tapError((error) => Effect.sync(() => options.onProblem(error.message))),
    Effect.retry(readAgain),
    Effect.orDie
  )

const attempt = Effect.fnUntraced(function* (options: BeginOptions) {
  const { broker, generation, tiers } = options
  if (options.parks) yield* keptForLongEnough(options)
  const reader = yield* broker.reader({ isolationLevel: "read_uncommitted" })
  const positions = yield* FormerPositions.read(options.definition, broker)
  const scans = tiers.map((partition, index) => scanOf(options, partition, index + 1, positions))
  yield* Effect.forEach(scans, (scan, index) => scan.readTo(reader, tiers[index]!.log.end), {
    concurrency: "unbounded"
  })
  yield* readAcceptances(options, scans, reader)
  // Before the claims: an operator may take days, and each attempt would write them anew.
  yield* withoutStrangers(options, scans)
  const epoch = Claims.epochAfter(Math.max(0, ...scans.map((scan) => scan.highest)), generation)
  const elapsedMillis = Clocks.stopwatch(options.clock)
  const unitOptions: UnitOptions = { ...options, epoch, elapsedMillis, strangersTo: [] }
  yield* Effect.forEach(
    scans,
    (scan) => Effect.flatMap(claim(unitOptions, scan), (at) => scan.readTo(reader, at + 1n)),
    { concurrency: "unbounded" }
  )
  yield* withoutStrangers(options, scans)
  yield* deadLetterStrangers(options, unitOptions, strangersOf(scans))
  const unit = tableOf({ ...unitOptions, strangersTo: scans.map(({ end }) => end) }, scans)
  reportLost(options, unit)
  return unit
})

/** Nobody has read a retry topic meanwhile, and locks in front of its position are gone with what they kept back. The group's last commit of the source says how many keys were parked. */
const reportLost = ({ main, tiers, onLocksGone }: BeginOptions, { table }: Unit): void => {
  const topics = tiers.filter((tier) => formerOrder(tier).isCutOff).map(({ topic }) => topic)
  const { parked } = formerOrder(main)
  const keys = (parked?.keys ?? 0) - table.size
  if (parked !== undefined && topics.length > 0 && keys > 0) onLocksGone({ topics, keys, from: parked.from })
}

/** The fetches of a partition that waits do not see what operators write behind it. */
const readAcceptances = Effect.fnUntraced(function* (
  { broker, tiers }: BeginOptions,
  scans: ReadonlyArray<LockScan>,
  reader: Reader
) {
  if (scans.every(({ strangers }) => strangers.size === 0)) return
  const admin = yield* broker.admin
  yield* Effect.forEach(scans, (scan, index) => {
    const { topic, partition } = tiers[index]!
    return Effect.flatMap(admin.topicOffsets(topic), (logs) =>
      scan.readTo(reader, logs.find((log) => log.partition === partition)?.logEnd ?? 0n)
    )
  })
})

const withoutStrangers = ({ main }: BeginOptions, scans: ReadonlyArray<LockScan>) => {
  const strangers = strangersOf(scans).filter((each) => !isAccepted(scans, each))
  return strangers.length === 0 ? Effect.void : Effect.fail(ofStrangers(main, strangers))
}

/** Before any of their slots is finished: a crash repeats the letters, and loses none. A lock without a body has no letter. */
const deadLetterStrangers = (options: BeginOptions, unit: UnitOptions, strangers: ReadonlyArray<Stranded>) =>
  Effect.forEach(
    strangers.filter(({ lock }) => lock.kind !== "next"),
    (stranger) => {
      const copy = options.letterOf(options.tiers[stranger.part - 1]!, stranger)
      return Effect.flatMap(LockCopies.publish(unit, copy), (isStored) =>
        isStored ? Effect.void : Effect.fail(notAcknowledged(`Dead-lettering a lock of ${copy.topic}`))
      )
    },
    { discard: true }
  )

const scanOf = (
  { definition, bond, main }: BeginOptions,
  partition: Partition,
  part: number,
  positions: FormerPositions.FormerPositions
): LockScan =>
  new LockScan({
    formerPosition: (groupId) => positions(groupId, partition),
    ...{ at: partition, part, from: partition.position(), epoch: committedEpoch(partition) },
    ...{ groups: definition, bond },
    isLost: (lock) => LostOffsets.isBehind(main.log.end, lock)
  })

/** The source keeps a record at least twice as long as a key can wait. Where its configuration cannot be read, nobody knows, and the unit begins. */
const keptForLongEnough = Effect.fnUntraced(function* ({ main, retention, askRetention, delaysMillis }: BeginOptions) {
  yield* askRetention(retentionMillis)
  const found = retention()
  const refusal = found && SourceRetention.refusal(main.topic, found, delaysMillis)
  if (refusal === undefined) return
  return yield* new UnexpectedBrokerError({
    operation: `Keeping the order of each key of ${main.topic}-${main.partition}`,
    code: "SHORT_RETENTION",
    detail: `${refusal}. The partition is read once the topic keeps its records for longer`,
    retryable: true
  })
})

/** Answers the offset of the claim. */
const claim = Effect.fnUntraced(function* (options: UnitOptions, { part }: LockScan) {
  let at: bigint | undefined
  const copy = LockCopies.claim(options, part, options.epoch, (offset) => {
    at = offset
  })
  const isStored = yield* LockCopies.publish(options, copy)
  if (!isStored || at === undefined) {
    return yield* notAcknowledged(`Claiming ${copy.topic}-${options.main.partition}`)
  }
  options.counts.locks.claim++
  return at
})

const notAcknowledged = (operation: string): UnexpectedBrokerError =>
  new UnexpectedBrokerError({
    ...{ operation, code: "NOT_ACKNOWLEDGED", detail: "the partition is being given up", retryable: true }
  })

/** The offsets of these locks say nothing to this group: it is another topic, another cluster, or the position of a former name. */
const ofStrangers = (main: TopicPartition, strangers: ReadonlyArray<Stranded>): BrokerError =>
  new UnexpectedBrokerError({
    operation: `Taking over the parked keys of ${main.topic}-${main.partition}`,
    code: "OTHER_INCARNATION",
    detail: `${pluralize(strangers.length, "parked key")} of another incarnation of the topic, of another cluster, or of a former name of the group (${strangers[0]!.bond}). Their locks do not lead this group to the records that they keep back. Let the former group finish them, or accept the loss ('eventbus parked accept-loss')`,
    retryable: true
  })

const formerOrder = (partition: Partition) => partition.commitText.ofOrder(partition.position(), undefined)

/** The epoch in force at the committed offset. */
const committedEpoch = (partition: Partition): number => formerOrder(partition).epoch ?? 0

const tableOf = (options: UnitOptions, scans: ReadonlyArray<LockScan>): Unit => {
  const unit = new Unit(
    options,
    options.tiers.map(committedEpoch),
    scans.map((scan) => scan.lost)
  )
  for (const { part, claims } of scans) for (const { at, epoch } of claims) unit.claims[part - 1]!.add(at, epoch)
  for (const [key, found] of highestOf(scans, options.main.position()))
    unit.table.add(entryOf(options, unit, key, found, scans))
  return unit
}

const entryOf = (
  { main }: UnitOptions,
  unit: Unit,
  key: string,
  { lock, record, part }: Found,
  scans: ReadonlyArray<LockScan>
): Entry => {
  const entry = new Entry(key, record.key!, lock.offset, lock.epoch, unit.parts.length, record.timestamp)
  entry.hop = lock.hop
  entry.kind = lock.kind
  entry.part = part
  entry.from = lock.kind === "next" ? lock.offset : lock.offset + 1n
  for (const scan of scans) entry.copies[scan.part] = lastCopy(scan, key)
  // Nothing of the key lies between its lock and where the lock says that its first follower can be.
  const first = BigInts.max(entry.from, lock.next)
  if (first < main.position()) unit.table.evict(entry, first)
  return entry
}
