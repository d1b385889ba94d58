/**
 * The records of all partitions with their states: records of main topics, and copies in retry topics.
 */

import { deadLetterTopics, mainTopics, waitMillis } from "../scenario/retries.ts"
import { beginMillis, planOf, type Scenario } from "../scenario/Scenario.ts"
import type { LedgerRecord } from "./accounts.ts"
import * as Copies from "./copies.ts"
import type { Entry, PartitionName, StoredCopy } from "./History.ts"
import { Letters } from "./Letters.ts"

export class RecordLogs {
  readonly byPartition = new Map<PartitionName, Map<bigint, LedgerRecord>>()
  /** Every record with an id: the first one, and its copies in retry topics. */
  readonly copiesById = new Map<string, Array<LedgerRecord>>()
  /** Log ends by partition. */
  readonly ends = new Map<PartitionName, bigint>()
  /** The owners of records that belong to other groups, by partition and offset. */
  private readonly foreign = new Map<PartitionName, Map<bigint, string>>()
  readonly letters = new Letters()
  /** Partitions that transactions of replays have written to, committed or not. */
  private readonly marked = new Set<PartitionName>()
  private readonly scenario: Scenario
  private readonly groups: ReadonlySet<string>

  constructor(scenario: Scenario) {
    this.scenario = scenario
    this.groups = new Set(scenario.bindings.map(({ groupId }) => groupId))
  }

  /** The group that owns a record when that is none of the service. */
  ownerOfForeign(partition: PartitionName, offset: bigint): string | undefined {
    return this.foreign.get(partition)?.get(offset)
  }

  /** The other service's group that an owner is; undefined for a group of this service, and for nobody. */
  foreignGroup(owner: string | undefined): string | undefined {
    return owner === undefined || this.groups.has(owner) ? undefined : owner
  }

  record(partition: PartitionName, offset: bigint): LedgerRecord | undefined {
    return this.byPartition.get(partition)?.get(offset)
  }

  publish(entry: Extract<Entry, { readonly _tag: "Published" }>): void {
    const { binding, partition } = entry
    for (const [index, plan] of entry.records.entries()) {
      const offset = entry.firstOffset + BigInt(index)
      const fresh = {
        tierAttempt: { tier: 0, attempt: 1 },
        replays: 0,
        totalAttempts: 0,
        firstFailureMillis: undefined,
        storedMillis: 0,
        dueMillis: 0
      }
      this.add({ ...fresh, plan, binding, partition, offset, state: "open", removed: "no", reportedGone: false })
    }
    this.ends.set(partition, entry.firstOffset + BigInt(entry.records.length))
  }

  /** The rules checked its headers when it was sent. */
  store(partition: PartitionName, { offset, copy, isReadable, isReplay }: StoredCopy, storedMillis: number): void {
    // The records of an aborted transaction take offsets, too, whichever group wrote them.
    if (isReplay || !isReadable) this.marked.add(partition)
    if (!isReadable) return
    const group = isReplay ? copy.headers.get("replay-group") : Copies.ownerOf(copy)
    const owner = this.foreignGroup(group)
    if (owner !== undefined) {
      const owners = this.foreign.get(partition) ?? new Map<bigint, string>()
      this.foreign.set(partition, owners.set(offset, owner))
      return
    }
    const [first] = this.copiesById.get(copy.id) ?? []
    const plan = first && planOf(this.scenario, first.binding)
    if (first === undefined || plan === undefined) return
    if (deadLetterTopics(plan).includes(copy.topic)) {
      this.letters.store(copy)
      return
    }
    if (isReplay) this.letters.replay(plan.name, copy)
    const tier = mainTopics(plan).includes(copy.topic) ? 0 : Copies.numberOf(copy, "retry-tier")
    const attempt = tier === 0 ? 1 : Copies.numberOf(copy, "retry-attempt")
    const delayMillis = tier === 0 ? 0 : waitMillis(plan.tiers[tier - 1]!, attempt)
    this.add({
      ...{ plan: first.plan, binding: first.binding, partition, offset },
      tierAttempt: { tier, attempt },
      replays: Copies.replaysOf(copy),
      totalAttempts: tier === 0 ? 0 : Copies.numberOf(copy, "total-attempts"),
      firstFailureMillis: Copies.numberOf(copy, "first-failure-timestamp") - beginMillis,
      storedMillis,
      dueMillis: tier === 0 ? 0 : Copies.numberOf(copy, "retry-timestamp") - beginMillis + delayMillis,
      ...{ state: "open", removed: "no", reportedGone: false }
    })
    const end = this.ends.get(partition) ?? 0n
    if (offset >= end) this.ends.set(partition, offset + 1n)
  }

  remove(partition: PartitionName, offset: bigint, by: "retention" | "compaction"): void {
    const record = this.record(partition, offset)
    // Retention cannot delete records that compaction had removed.
    if (record?.removed === "no") record.removed = by
  }

  /** A group without a committed offset begins at the log start (`auto.offset.reset: earliest`) and cannot know of records that were deleted before. */
  markDeletedBeforeStart(partition: PartitionName, position: bigint): void {
    for (const record of this.byPartition.get(partition)?.values() ?? []) {
      if (record.offset < position && record.removed !== "no") record.reportedGone = true
    }
  }

  /** Whether transactions may write to the partition: their markers take offsets. Another group's transactions are not known. */
  hasMarkers(partition: PartitionName): boolean {
    if (this.foreign.has(partition) || this.marked.has(partition)) return true
    const [record] = this.byPartition.get(partition)?.values() ?? []
    return (
      record !== undefined &&
      record.tierAttempt.tier > 0 &&
      planOf(this.scenario, record.binding).listener === "transactional"
    )
  }

  private add(record: LedgerRecord): void {
    const log = this.byPartition.get(record.partition) ?? new Map<bigint, LedgerRecord>()
    this.byPartition.set(record.partition, log.set(record.offset, record))
    const copies = this.copiesById.get(record.plan.id)
    if (copies === undefined) this.copiesById.set(record.plan.id, [record])
    else copies.push(record)
  }
}
