/**
 * Finds the source record of a copy that is being published. Copies of one id may be published from several partitions at once.
 */

import { beginMillis } from "../scenario/Scenario.ts"
import type { Assignments } from "./Assignments.ts"
import type { Assignment, LedgerRecord } from "./accounts.ts"
import type { Copy } from "./copies.ts"
import * as Copies from "./copies.ts"

export interface Source {
  readonly record: LedgerRecord
  readonly assignment: Assignment
}

export class Sources {
  private readonly ways: ReadonlyMap<string, ReadonlyArray<LedgerRecord>>
  private readonly assignments: Assignments

  constructor(ways: ReadonlyMap<string, ReadonlyArray<LedgerRecord>>, assignments: Assignments) {
    this.ways = ways
    this.assignments = assignments
  }

  /** The source of a copy: the last delivery of this record that failed. */
  of(process: string, copy: Copy): Source | undefined {
    const sources = (this.ways.get(copy.id) ?? []).flatMap((record) =>
      this.assignments
        .ofPartition(process, record.partition)
        .filter(({ failedDeliveries }) => failedDeliveries.has(record.offset))
        .map((assignment): Source => ({ record, assignment }))
    )
    // The copy of a record that was given up before its partition was revoked is still published.
    const held = sources
      .filter(({ assignment: { state } }) => state === "active" || state === "revoked")
      .sort((a, b) => b.assignment.number - a.assignment.number)
    // A broker that duplicates a batch makes two records of one id.
    const next = held.filter(({ record, assignment }) => !assignment.sent.has(record.offset))
    const likely = next.filter((source) => isTold(source, copy)).sort((a, b) => givenUpAt(b) - givenUpAt(a))
    return likely[0] ?? next[0] ?? held[0] ?? sources.at(-1)
  }

  sent(process: string, copy: Copy, number: number): void {
    const source = this.of(process, copy)
    source?.assignment.sent.set(source.record.offset, number)
  }

  failed(process: string, failed: number): void {
    for (const { sent } of this.assignments.ofProcess(process)) {
      for (const [offset, number] of sent) if (number === failed) sent.delete(offset)
    }
  }

  /** Moves a copy from a duplicate with equally many calls to the record that its acknowledgement settles. */
  reassign(assignment: Assignment, record: LedgerRecord | undefined): void {
    if (record === undefined || assignment.sent.has(record.offset)) return
    const calls = callsOf({ record, assignment })
    for (const twin of this.ways.get(record.plan.id) ?? []) {
      for (const of of this.assignments.ofPartition(assignment.process, twin.partition)) {
        const number = of.sent.get(twin.offset)
        if (number === undefined || !of.failedDeliveries.has(twin.offset)) continue
        if (callsOf({ record: twin, assignment: of }) !== calls) continue
        of.sent.delete(twin.offset)
        assignment.sent.set(record.offset, number)
        return
      }
    }
  }
}

/** Handler calls of a failed delivery over all tiers; undefined for a record without one. */
const callsOf = ({ record, assignment }: Source): number | undefined => {
  const given = assignment.failedDeliveries.get(record.offset)
  return given === undefined ? undefined : record.totalAttempts + given.attempts
}

const givenUpAt = ({ record, assignment }: Source): number => assignment.failedDeliveries.get(record.offset)!.atMillis

/** Copies from several partitions may overtake each other. Their headers about attempts and times tell them apart. */
const isTold = (source: Source, copy: Copy): boolean => {
  const { record } = source
  const firstMillis = Copies.numberOf(copy, "first-failure-timestamp") - beginMillis
  return (
    (record.firstFailureMillis ?? firstMillis) === firstMillis &&
    callsOf(source) === Copies.numberOf(copy, "total-attempts") &&
    record.replays === Copies.replaysOf(copy) &&
    givenUpAt(source) <= Copies.publishedMillis(copy)
  )
}
