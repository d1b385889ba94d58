/**
 * How often values occurred, in buckets: what a histogram metric shows. Counting is a few comparisons, since it happens per record.
 */
import type { Metric } from "effect"

export interface Histogram {
  readonly observe: (value: number) => void
  /** As Effect's exporters read it: per boundary how many values are at or below it. */
  readonly state: () => Metric.HistogramState
}

/** `boundaries` ascend. A value above the last counts only in the total. `scale` turns values and boundaries into the unit that is shown. */
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
