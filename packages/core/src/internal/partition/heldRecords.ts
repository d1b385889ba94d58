/**
 * Records that hold their partition until somebody decides about them or resumes the partition (ruling 88): the fiber of such a record waits here.
 */
import { Deferred, Effect } from "effect"
import type { ConsumerRecord, RecordPosition } from "../../ConsumerRecord.ts"
import type { Failure } from "../../Failure.ts"
import type { Decision, HeldRecord } from "../../Snapshot.ts"
import type { Partition } from "./partition.ts"

export interface HeldRecords {
  /** Waits for the decision of an operator; undefined when the partition is resumed or stops first. */
  readonly hold: (partition: Partition, record: ConsumerRecord, failure: Failure) => Effect.Effect<Decision | undefined>
  /** Decides about a held record, and answers its partition; undefined when there is no such record. */
  readonly decide: (at: RecordPosition, decision: Decision) => Partition | undefined
  readonly list: () => ReadonlyArray<HeldRecord>
}

interface Entry extends HeldRecord {
  readonly at: Partition
  readonly decided: Deferred.Deferred<Decision>
}

export const make = (nowMillis: () => number): HeldRecords => {
  const entries = new Map<string, Entry>()
  return {
    hold: (partition, { topic, partition: number, offset }, failure) =>
      Effect.suspend(() => {
        const decided = Deferred.makeUnsafe<Decision>()
        const entry = {
          ...{ topic, partition: number, offset, failure, sinceMillis: nowMillis() },
          ...{ at: partition, decided }
        }
        const key = keyOf(entry)
        entries.set(key, entry)
        return Effect.raceFirst(Deferred.await(decided), Effect.as(partition.runnable, undefined)).pipe(
          Effect.ensuring(Effect.sync(() => entries.get(key) === entry && entries.delete(key)))
        )
      }),
    decide: (position, decision) => {
      const entry = entries.get(keyOf(position))
      if (entry === undefined) return undefined
      entries.delete(keyOf(position))
      Deferred.doneUnsafe(entry.decided, Effect.succeed(decision))
      return entry.at
    },
    list: () =>
      Array.from(entries.values(), ({ topic, partition, offset, failure, sinceMillis }) => ({
        ...{ topic, partition, offset, failure, sinceMillis }
      }))
  }
}

const keyOf = ({ topic, partition, offset }: RecordPosition): string => `${topic}/${partition}/${offset}`
