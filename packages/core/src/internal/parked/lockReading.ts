/**
 * Reads the locks of a source from outside of its units: from the group's committed offsets to the ends of the retry topics, by the rules by which a new owner reads them.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Admin, Broker, CommittedOffset, PartitionOffsets, Reader } from "../../Broker.ts"
import { type BrokerError, RequestTimedOut } from "../../BrokerError.ts"
import { partitionKey } from "../../ConsumerRecord.ts"
import * as BigInts from "../base/bigInts.ts"
import * as FormerPositions from "../order/formerPositions.ts"
import { type Found, highestOf, isAccepted, LockScan, type Stranded, strangersOf } from "../order/lockScan.ts"
import * as LostOffsets from "../order/lostOffsets.ts"
import * as CommitMetadata from "../partition/commitMetadata.ts"
import type * as OrderHeaders from "../record/orderHeaders.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import type { TierTopic } from "../retry/tiers.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

/** Partitions of retry topics that are read at the same time. */
const partitionsAtOnce = 4

/** Longest time that the reading of one partition may take. */
const readMillis = 60_000

/** The locks of one source partition, by key. */
export interface Locks {
  readonly partition: number
  readonly bond: OrderHeaders.Bond
  readonly found: ReadonlyMap<string, Found>
  /** Locks that lead this group nowhere, whose loss nobody has accepted. */
  readonly stranded: ReadonlyArray<Stranded>
  /** By part, from 1: how far the retry partition was read. */
  readonly ends: ReadonlyMap<number, bigint>
}

/** A part of a retry topic that the group has not passed. */
interface Stretch {
  readonly tier: TierTopic
  readonly part: number
  readonly log: PartitionOffsets
  readonly from: bigint
  readonly epoch: number
}

/** Fails with `UnknownTopic` where the source does not exist. A retry topic may be missing: then nothing waits in it. */
export const read = Effect.fnUntraced(function* (
  definition: BindingDefinition<unknown>,
  broker: Broker["Service"]
): Effect.fn.Return<ReadonlyArray<Locks>, BrokerError, Scope.Scope> {
  const admin = yield* broker.admin
  const reader = yield* broker.reader({ isolationLevel: "read_uncommitted" })
  const sources = yield* admin.topicOffsets(definition.topic)
  const stretches = yield* stretchesOf(definition, admin)
  const topicId = stretches.length === 0 ? undefined : yield* topicIdOf(definition.topic, sources, reader)
  const { clusterId } = admin
  const formerPosition = yield* FormerPositions.read(definition, broker)
  const bondOf = (partition: number): OrderHeaders.Bond => ({
    formerGroupIds: definition.adopts,
    ...{ topic: definition.topic, partition, clusterId, groupId: definition.groupId },
    topicId: clusterId === "" ? undefined : topicId
  })
  const scans = yield* Effect.forEach(
    stretches,
    ({ tier, part, log, from, epoch }) => {
      const at = { topic: tier.topic, partition: log.partition }
      const source = sources.find(({ partition }) => partition === log.partition)
      const scan = new LockScan({
        ...{ at, part, from, epoch, groups: definition, bond: bondOf(log.partition) },
        isLost: (lock) => LostOffsets.isBehind(source?.logEnd ?? 0n, lock),
        formerPosition: (groupId) => formerPosition(groupId, at)
      })
      return Effect.as(inTime(scan.readTo(reader, log.logEnd), at.topic), { partition: log.partition, scan })
    },
    { concurrency: partitionsAtOnce }
  )
  const positions = stretches.length === 0 ? new Map() : yield* positionsOf(definition, admin)
  return sources.map(({ partition }) => {
    const own = scans.flatMap((each) => (each.partition === partition ? each.scan : []))
    return {
      ...{ partition, bond: bondOf(partition), found: highestOf(own, positions.get(partition) ?? 0n) },
      stranded: strangersOf(own).filter((each) => !isAccepted(own, each)),
      ends: new Map(own.map(({ part, end }) => [part, end]))
    }
  })
})

const stretchesOf = Effect.fnUntraced(function* ({ tiers, groupId }: BindingDefinition<unknown>, admin: Admin) {
  const logs = yield* Effect.forEach(tiers.topics, (tier) =>
    Effect.map(ReplayProgress.logOffsetsOf(admin, tier.topic), (all) => ({ tier, all }))
  )
  const existing = logs.flatMap(({ tier, all }) => (all.length === 0 ? [] : tier.topic))
  const commits = new Map(
    (yield* admin.committedOffsets(groupId, existing)).map((commit) => [
      partitionKey(commit.topic, commit.partition),
      commit
    ])
  )
  return logs.flatMap(({ tier, all }, index) =>
    all
      .map((log) => stretchOf(tier, index + 1, log, commits.get(partitionKey(tier.topic, log.partition))))
      .filter(({ from, log }) => from < log.logEnd)
  )
})

/** The committed offsets of the source, by partition. */
const positionsOf = ({ topic, groupId }: BindingDefinition<unknown>, admin: Admin) =>
  Effect.map(
    admin.committedOffsets(groupId, [topic]),
    (commits) => new Map(commits.map(({ partition, offset }) => [partition, offset]))
  )

/** A group that has committed nothing yet reads a retry topic from its start. */
const stretchOf = (
  tier: TierTopic,
  part: number,
  log: PartitionOffsets,
  commit: CommittedOffset | undefined
): Stretch => {
  const committed = commit?.offset ?? log.logStart
  const epoch = CommitMetadata.parse(commit?.metadata ?? "").epoch ?? 0
  return { tier, part, log, epoch, from: BigInts.max(committed, log.logStart) }
}

/** The id of the source: a lock names the one that its offset belongs to. */
const topicIdOf = (topic: string, sources: ReadonlyArray<PartitionOffsets>, reader: Reader) => {
  const [first] = sources
  if (first === undefined) return Effect.succeed(undefined)
  const { partition, logStart } = sources.find((log) => log.logStart < log.logEnd) ?? first
  return Effect.map(reader.read({ topic, partition, offset: logStart }), (found) => found.topicId)
}

const inTime = (reading: Effect.Effect<void, BrokerError>, topic: string) =>
  Effect.timeoutOrElse(reading, {
    duration: readMillis,
    orElse: () => Effect.fail(new RequestTimedOut({ operation: `Reading topic '${topic}'`, millis: readMillis }))
  })
