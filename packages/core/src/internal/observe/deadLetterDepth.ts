/**
 * Counts the records that wait in the dead letter topic of a binding: the cluster's last answer plus the dead letters that this process has stored since. The
 * cluster is asked only while an exporter reads the metric.
 */
import { Clock, Effect } from "effect"
import type { Admin, Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"

export interface DeadLetterDepth {
  readonly read: () => number
  /** This process stored a dead letter. */
  readonly stored: () => void
  /** The cluster answered. */
  readonly counted: (records: number) => void
  readonly isRead: (nowMillis: number) => boolean
}

/** An exporter that reads once a minute counts as reading. */
const readMillis = 120_000

export const make = (clock: Clock.Clock): DeadLetterDepth => {
  let depth = 0
  let lastReadMillis = Number.NEGATIVE_INFINITY
  return {
    read: () => {
      lastReadMillis = clock.currentTimeMillisUnsafe()
      return depth
    },
    stored: () => {
      depth++
    },
    counted: (records) => {
      depth = records
    },
    isRead: (nowMillis) => nowMillis - lastReadMillis < readMillis
  }
}

/** A binding whose dead letter topic is measured. */
export interface MeasuredBinding {
  readonly broker: Broker["Service"]
  readonly deadLetterDepth: DeadLetterDepth
  readonly deadLetters: { readonly countWaiting: (admin: Admin) => Effect.Effect<number, BrokerError> }
}

const roundMillis = 10_000

/** Asks in rounds until it is interrupted, with one connection for each cluster at a time. */
export const run = (bindings: () => ReadonlyArray<MeasuredBinding>): Effect.Effect<never> =>
  Effect.gen(function* () {
    const nowMillis = yield* Clock.currentTimeMillis
    const read = bindings().filter(({ deadLetterDepth }) => deadLetterDepth.isRead(nowMillis))
    yield* Effect.forEach(
      Map.groupBy(read, ({ broker }) => broker),
      ([broker, measured]) => awaitAtMost(Effect.ignore(refresh(broker, measured)), roundMillis),
      { concurrency: "unbounded", discard: true }
    )
    yield* Effect.sleep(roundMillis)
  }).pipe(Effect.forever)

/** A failed request leaves the last known depth. */
const refresh = (broker: Broker["Service"], measured: ReadonlyArray<MeasuredBinding>) =>
  Effect.scoped(
    Effect.flatMap(broker.admin, (admin) =>
      Effect.forEach(
        measured,
        ({ deadLetters, deadLetterDepth }) =>
          Effect.ignore(Effect.map(deadLetters.countWaiting(admin), (records) => deadLetterDepth.counted(records))),
        { discard: true }
      )
    )
  )
