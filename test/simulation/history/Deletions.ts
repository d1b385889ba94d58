/**
 * The records that retention or compaction has taken, and what the connector has said about them. A record that is gone may stay undone, but not without a word.
 */
import type { Entry, PartitionName } from "./History.ts"

interface Range {
  readonly from: bigint
  /** The offset behind the last one. */
  readonly to: bigint
}

export class Deletions {
  readonly #before = new Map<PartitionName, bigint>()
  readonly #compacted = new Map<PartitionName, Set<bigint>>()
  readonly #reported = new Map<PartitionName, Array<Range>>()

  /** `hasRead`: whether the group has committed in a partition. One that has not begins at the log's start, and misses nothing. */
  apply(entry: Entry, hasRead: (partition: PartitionName) => boolean): void {
    if (entry._tag === "Truncated") {
      const before = this.#before.get(entry.partition) ?? 0n
      if (entry.before > before) this.#before.set(entry.partition, entry.before)
      if (!hasRead(entry.partition)) this.#report(entry.partition, { from: 0n, to: entry.before })
    }
    if (entry._tag === "Compacted") {
      const known = this.#compacted.get(entry.partition) ?? []
      this.#compacted.set(entry.partition, new Set([...known, ...entry.offsets]))
    }
    if (entry._tag !== "Connector" || (entry.event._tag !== "RecordsGone" && entry.event._tag !== "LocksGone")) return
    const { topic, partition, from, to } = entry.event
    this.#report(`${topic}/${partition}`, { from, to })
  }

  #report(partition: PartitionName, range: Range): void {
    this.#reported.set(partition, [...(this.#reported.get(partition) ?? []), range])
  }

  /** Whether somebody may miss the record. */
  isGone(partition: PartitionName, offset: bigint): boolean {
    return offset < (this.#before.get(partition) ?? 0n) || this.isCompacted(partition, offset)
  }

  /** Nobody tells a hole that compaction has left from one that a transaction has left: it need not be reported. */
  isCompacted(partition: PartitionName, offset: bigint): boolean {
    return this.#compacted.get(partition)?.has(offset) === true
  }

  isReported(partition: PartitionName, offset: bigint): boolean {
    return this.#reported.get(partition)?.some(({ from, to }) => offset >= from && offset < to) === true
  }
}
