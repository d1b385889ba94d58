/**
 * The logs of the topics at one moment, as a history tells them: which records there are, which were deleted, and what is committed.
 */
import type { LedgerRecord } from "./accounts.ts"
import type { Copy } from "./copies.ts"
import * as Copies from "./copies.ts"
import type { Entry, PartitionName } from "./History.ts"
import { deadLetterTopic } from "./retries.ts"
import type { BindingPlan, Scenario } from "./Scenario.ts"
import { beginMillis } from "./Timeline.ts"

export class Logs {
  readonly scenario: Scenario
  readonly records = new Map<PartitionName, Map<bigint, LedgerRecord>>()
  readonly logEnds = new Map<PartitionName, bigint>()
  /** Every record that there is of an id: the first one, and its copies in retry topics. */
  readonly copiesById = new Map<string, Array<LedgerRecord>>()
  readonly committed = new Map<PartitionName, bigint>()

  constructor(scenario: Scenario) {
    this.scenario = scenario
  }

  record(partition: PartitionName, offset: bigint): LedgerRecord | undefined {
    return this.records.get(partition)?.get(offset)
  }

  planOf(binding: string): BindingPlan {
    const plan = this.scenario.bindings.find((candidate) => candidate.name === binding)
    if (plan === undefined) throw new Error(`There is no binding '${binding}' in this scenario.`)
    return plan
  }

  publish(entry: Extract<Entry, { readonly _tag: "Published" }>): void {
    const { binding, partition } = entry
    for (const [index, plan] of entry.records.entries()) {
      const offset = entry.firstOffset + BigInt(index)
      const fresh = {
        tierAttempt: { tier: 0, attempt: 1 },
        totalAttempts: 0,
        firstFailureMillis: undefined,
        storedMillis: 0,
        dueMillis: 0
      }
      this.add({ ...fresh, plan, binding, partition, offset, state: "open", removed: "no", reportedGone: false })
    }
    this.logEnds.set(partition, entry.firstOffset + BigInt(entry.records.length))
  }

  /** The rules checked the copy's headers when it was sent. */
  store(partition: PartitionName, offset: bigint, copy: Copy, storedMillis: number): void {
    const [first] = this.copiesById.get(copy.id) ?? []
    const plan = first && this.planOf(first.binding)
    if (first === undefined || plan === undefined || copy.topic === deadLetterTopic(plan)) return
    const tier = Copies.numberOf(copy, "retry-tier")
    const delayMillis = plan.tiers[tier - 1]?.delayMillis ?? 0
    this.add({
      ...{ plan: first.plan, binding: first.binding, partition, offset },
      tierAttempt: { tier, attempt: Copies.numberOf(copy, "retry-attempt") },
      totalAttempts: Copies.numberOf(copy, "total-attempts"),
      firstFailureMillis: Copies.numberOf(copy, "first-failure-timestamp") - beginMillis,
      storedMillis,
      dueMillis: Copies.numberOf(copy, "retry-timestamp") - beginMillis + delayMillis,
      ...{ state: "open", removed: "no", reportedGone: false }
    })
    const end = this.logEnds.get(partition) ?? 0n
    if (offset >= end) this.logEnds.set(partition, offset + 1n)
  }

  private add(record: LedgerRecord): void {
    const log = this.records.get(record.partition) ?? new Map<bigint, LedgerRecord>()
    this.records.set(record.partition, log.set(record.offset, record))
    const copies = this.copiesById.get(record.plan.id)
    if (copies === undefined) this.copiesById.set(record.plan.id, [record])
    else copies.push(record)
  }

  remove(partition: PartitionName, offset: bigint, by: "retention" | "compaction"): void {
    const record = this.record(partition, offset)
    // Retention cannot delete a record that compaction has removed.
    if (record?.removed === "no") record.removed = by
  }

  truncate(partition: PartitionName, before: bigint): void {
    for (const offset of this.records.get(partition)?.keys() ?? []) {
      if (offset < before) this.remove(partition, offset, "retention")
    }
  }

  /**
   * A group without a committed offset begins at the first record that there is (`auto.offset.reset: earliest`). Nothing tells it what was there before.
   */
  markDeletedBeforeStart(partition: PartitionName, position: bigint): void {
    for (const record of this.records.get(partition)?.values() ?? []) {
      if (record.offset < position && record.removed !== "no") record.reportedGone = true
    }
  }

  /** The connector has reported that it jumped over these offsets. */
  markReportedGone(partition: PartitionName, from: bigint, to: bigint): void {
    for (const [offset, record] of this.records.get(partition) ?? []) {
      if (offset >= from && offset < to) record.reportedGone = true
    }
  }

  /** Records without a fate that a commit up to an offset is about. */
  openUpTo(partition: PartitionName, offset: bigint): ReadonlyArray<LedgerRecord> {
    const from = this.committed.get(partition) ?? 0n
    return [...(this.records.get(partition)?.values() ?? [])].filter(
      (record) => record.state === "open" && record.offset >= from && record.offset < offset
    )
  }

  /** Whether transactions write there: their markers take offsets. */
  hasMarkers(partition: PartitionName): boolean {
    const [record] = this.records.get(partition)?.values() ?? []
    return (
      record !== undefined && record.tierAttempt.tier > 0 && this.planOf(record.binding).listener === "transactional"
    )
  }
}
