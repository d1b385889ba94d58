/**
 * Counts the records that wait in the dead letter topic of a binding: the cluster's last answer plus the dead letters that this process has stored since. The
 * cluster is asked only while an exporter reads the metrics of the binding, and the gauge is there only while the cluster answers: it never shows a number that
 * nobody has counted (ruling 75).
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Admin, Broker } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"

export interface DeadLetterDepth {
  /** An exporter reads the metrics of the binding. */
  readonly metricsRead: () => void
  /** This process stored a dead letter. */
  readonly stored: () => void
  /** The binding starts: the gauge may be shown. */
  readonly begin: () => void
  /** The binding has stopped. */
  readonly end: () => void
  /** The request to the cluster begins. The answered function takes the answer. */
  readonly asking: () => (records: number) => void
  /** Whether to ask the cluster now. Ends a gauge without a fresh answer. */
  readonly isWanted: (nowMillis: number) => boolean
}

/** An exporter that reads once a minute counts as reading. */
const readMillis = 120_000

/** An answer is fresh for so long: three rounds. */
const freshMillis = 30_000

/** `show` registers the gauge and answers the function that removes it. */
export const make = (clock: Clock.Clock, show: (read: () => number) => () => void): DeadLetterDepth => {
  let counted = 0
  /** Dead letters that this process has stored in all, and when the request for `counted` began. */
  let stored = 0
  let storedBefore = 0
  let answeredMillis = Number.NEGATIVE_INFINITY
  let lastReadMillis = Number.NEGATIVE_INFINITY
  let running = false
  let hide: (() => void) | undefined
  const end = () => {
    hide?.()
    hide = undefined
  }
  return {
    metricsRead: () => {
      lastReadMillis = clock.currentTimeMillisUnsafe()
    },
    stored: () => {
      stored++
    },
    begin: () => {
      running = true
    },
    end: () => {
      running = false
      end()
    },
    asking: () => {
      const before = stored
      return (records) => {
        if (!running) return
        counted = records
        storedBefore = before
        answeredMillis = clock.currentTimeMillisUnsafe()
        hide ??= show(() => counted + stored - storedBefore)
      }
    },
    isWanted: (nowMillis) => {
      if (nowMillis - answeredMillis > freshMillis) end()
      return running && nowMillis - lastReadMillis < readMillis
    }
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
    const read = bindings().filter(({ deadLetterDepth }) => deadLetterDepth.isWanted(nowMillis))
    yield* Effect.forEach(
      Map.groupBy(read, ({ broker }) => broker),
      ([broker, measured]) => awaitAtMost(Effect.ignore(refresh(broker, measured)), roundMillis),
      { concurrency: "unbounded", discard: true }
    )
    yield* Effect.sleep(roundMillis)
  }).pipe(Effect.forever)

/** After a failed request the last answer stays, for as long as it is fresh. */
const refresh = (broker: Broker["Service"], measured: ReadonlyArray<MeasuredBinding>) =>
  Effect.scoped(
    Effect.flatMap(broker.admin, (admin) =>
      Effect.forEach(
        measured,
        ({ deadLetters, deadLetterDepth }) =>
          Effect.suspend(() => {
            const answered = deadLetterDepth.asking()
            return Effect.ignore(Effect.map(deadLetters.countWaiting(admin), answered))
          }),
        { discard: true }
      )
    )
  )
