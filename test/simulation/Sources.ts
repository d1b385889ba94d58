/**
 * Finds the source record of a copy that is being published. Copies of one id may be published from several partitions at once.
 */

import type { Assignments } from "./Assignments.ts"
import type { Assignment, LedgerRecord } from "./accounts.ts"
import type { Copy } from "./copies.ts"
import * as Copies from "./copies.ts"
import { beginMillis } from "./Timeline.ts"

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

  /** The record that a process publishes a copy of: the last of its kind that a delivery gave up. */
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
    // A broker that wrote a copy twice makes twins of it.
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

  /** A copy that was taken for that of a twin, called as often, belongs to the record which its acknowledgement settles. */
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

/** Calls of the handler in all, once the record was given up; undefined for one that was not. */
const callsOf = ({ record, assignment }: Source): number | undefined => {
  const given = assignment.failedDeliveries.get(record.offset)
  return given === undefined ? undefined : record.totalAttempts + given.attempts
}

const givenUpAt = ({ record, assignment }: Source): number => assignment.failedDeliveries.get(record.offset)!.atMillis

/** Copies that leave several partitions at one time may overtake each other; what they say of their attempts and of their time tells them apart. */
const isTold = (source: Source, copy: Copy): boolean => {
  const { record } = source
  const firstMillis = Copies.numberOf(copy, "first-failure-timestamp") - beginMillis
  return (
    (record.firstFailureMillis ?? firstMillis) === firstMillis &&
    callsOf(source) === Copies.numberOf(copy, "total-attempts") &&
    givenUpAt(source) <= Copies.publishedMillis(copy)
  )
}
