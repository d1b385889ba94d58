/**
 * Records that an operator can decide about (ruling 88): those that hold their partition until somebody decides or resumes it, and the only candidate of a half-open
 * circuit breaker. The fiber of such a record waits here.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { ConsumerRecord, RecordPosition } from "../../ConsumerRecord.ts"
import type { Failure } from "../../Failure.ts"
import type { Decision, HeldRecord, OnlyCandidate } from "../../Snapshot.ts"
import type { Partition } from "./partition.ts"

/** Why a record waits, and for how long at most. */
export interface Hold {
  readonly partition: Partition
  readonly record: ConsumerRecord
  readonly failure: Failure
  /** The wait without a decision. */
  readonly until: Effect.Effect<void>
  /** Whether the circuit breaker keeps the record, after a failed trial. A decision is taken only about the record that the breaker names as its only candidate. */
  readonly isTrial: boolean
}

export interface HeldRecords {
  /** Waits for the decision of an operator; undefined when the wait is over first. */
  readonly hold: (hold: Hold) => Effect.Effect<Decision | undefined>
  /** Decides about a held record, and answers how it was held; undefined when there is no such record. */
  readonly decide: (at: RecordPosition, decision: Decision) => Pick<Hold, "partition" | "isTrial"> | undefined
  /** Whether the record is the breaker's only candidate, and makes its trial call at this moment. */
  readonly isBeingTried: (at: RecordPosition) => boolean
  /** The records that hold their partition. */
  readonly list: () => ReadonlyArray<HeldRecord>
  /** The records that an operator can decide about now. */
  readonly decidable: () => ReadonlyArray<RecordPosition>
}

/** The part of the breaker's permits that knows its only candidate. */
export interface Candidates {
  readonly trials: () => { readonly only: OnlyCandidate | undefined }
  /** A record that was decided about is not tried again. */
  readonly forget: (record: ConsumerRecord) => void
}

interface Entry extends Hold {
  readonly sinceMillis: number
  readonly decided: Deferred.Deferred<Decision>
}

/** `candidates`: undefined for a binding without a circuit breaker. */
export const make = (nowMillis: () => number, candidates: Candidates | undefined): HeldRecords => {
  const entries = new Map<string, Entry>()
  const onlyKey = () => {
    const only = candidates?.trials().only
    return only && keyOf(only)
  }
  const isDecidable = ([key, { isTrial }]: readonly [string, Entry]) => !isTrial || key === onlyKey()
  return {
    hold: (hold) =>
      Effect.suspend(() => {
        const entry = { ...hold, sinceMillis: nowMillis(), decided: Deferred.makeUnsafe<Decision>() }
        const key = keyOf(hold.record)
        entries.set(key, entry)
        return Effect.raceFirst(Deferred.await(entry.decided), Effect.as(hold.until, undefined)).pipe(
          Effect.ensuring(Effect.sync(() => entries.get(key) === entry && entries.delete(key)))
        )
      }),
    decide: (position, decision) => {
      const key = keyOf(position)
      const entry = entries.get(key)
      if (entry === undefined || !isDecidable([key, entry])) return undefined
      entries.delete(key)
      if (entry.isTrial) candidates?.forget(entry.record)
      Deferred.doneUnsafe(entry.decided, Effect.succeed(decision))
      return entry
    },
    isBeingTried: (position) => keyOf(position) === onlyKey() && !entries.has(keyOf(position)),
    list: () =>
      Array.from(entries.values())
        .filter(({ isTrial }) => !isTrial)
        .map(({ record: { topic, partition, offset }, failure, sinceMillis }) => ({
          ...{ topic, partition, offset, failure, sinceMillis }
        })),
    decidable: () =>
      Array.from(entries)
        .filter(isDecidable)
        .map(([, { record }]) => record)
  }
}

const keyOf = ({ topic, partition, offset }: RecordPosition): string => `${topic}/${partition}/${offset}`
