/**
 * The metrics of order per key (`orderingMode: "PER_KEY"`). Their values are computed when an exporter reads them.
 */
import type * as Clock from "effect/Clock"
import * as Metrics from "../../Metrics.ts"
import type { ParkedCounts } from "../../Snapshot.ts"
import * as Histogram from "./histogram.ts"
import type * as MetricSeries from "./metricSeries.ts"

/** The work of a binding's units so far. */
export interface UnitCounts {
  /** Locks, by kind. */
  readonly locks: { retry: number; next: number; held: number; claim: number }
  /** Followers that were read from the source again. */
  reread: number
  /** How long units took to begin, in milliseconds. */
  readonly begun: Histogram.Histogram
}

export const unitCounts = (): UnitCounts => ({
  locks: { retry: 0, next: 0, held: 0, claim: 0 },
  reread: 0,
  begun: Histogram.make(beginMillis, 1_000)
})

const beginMillis = [10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000]

export interface Sources {
  readonly parked: () => ParkedCounts
  readonly counts: UnitCounts
}

const states = ["waiting", "draining", "held"] as const
const kinds = ["retry", "next", "held", "claim"] as const

export const register = (
  series: MetricSeries.Series,
  labels: MetricSeries.Labels,
  { parked, counts }: Sources,
  clock: Clock.Clock
): void => {
  for (const state of states) {
    series.gauge(Metrics.definitions.parkedKeys, { ...labels, state }, () => parked()[state])
  }
  series.gauge(Metrics.definitions.parkedRecords, labels, () => parked().followers)
  series.gauge(Metrics.definitions.parkedOldest, labels, () => {
    const since = parked().oldestSinceMillis
    return since === undefined ? 0 : Math.max(0, clock.currentTimeMillisUnsafe() - since) / 1_000
  })
  for (const kind of kinds) {
    series.counter(Metrics.definitions.keyLocks, { ...labels, kind }, () => counts.locks[kind])
  }
  series.counter(Metrics.definitions.sourceReread, labels, () => counts.reread)
  series.histogram(Metrics.definitions.unitBegin, labels, counts.begun.state)
}
