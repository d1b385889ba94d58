/**
 * A histogram: it counts values in buckets. Counting takes a few comparisons, because it happens per record.
 */
import type * as Metric from "effect/Metric"

/** Counts values in buckets. */
export interface Histogram {
  /** Counts a value. */
  readonly observe: (value: number) => void
  /** The state that Effect's exporters read: for each boundary the number of values at or below it. */
  readonly state: () => Metric.HistogramState
}

/** `boundaries` ascend. A value above the last boundary counts only in the total. Values and boundaries are divided by `scale` for the exporter. */
export const make = (boundaries: ReadonlyArray<number>, scale = 1): Histogram => {
  const counts = new Float64Array(boundaries.length + 1)
  let count = 0
  let sum = 0
  let min = Number.POSITIVE_INFINITY
  let max = 0
  return {
    observe: (value) => {
      let index = 0
      while (index < boundaries.length && value > boundaries[index]!) index++
      counts[index]!++
      count++
      sum += value
      if (value < min) min = value
      if (value > max) max = value
    },
    state: () => {
      let below = 0
      const buckets = boundaries.map((boundary, index): [number, number] => {
        below += counts[index]!
        return [boundary / scale, below]
      })
      return { buckets, count, sum: sum / scale, min: count === 0 ? 0 : min / scale, max: max / scale }
    }
  }
}
