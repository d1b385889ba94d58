/** Counts values in buckets: a few comparisons for each value. */
import type * as Metric from "effect/Metric"

export interface Buckets {
  readonly observe: (value: number) => void
  /** The state that exporters read: for each boundary the number of values at or below it. */
  readonly state: () => Metric.HistogramState
}

/** `boundaries` ascend. A value above the last one counts only in the total. */
export const make = (boundaries: ReadonlyArray<number>): Buckets => {
  const counts = new Float64Array(boundaries.length + 1)
  let [count, sum, min, max] = [0, 0, 0, 0]
  return {
    observe: (value) => {
      let index = 0
      while (index < boundaries.length && value > boundaries[index]!) index++
      counts[index]!++
      min = count === 0 ? value : Math.min(min, value)
      max = Math.max(max, value)
      count++
      sum += value
    },
    state: () => {
      let below = 0
      const buckets = boundaries.map((boundary, index): [number, number] => {
        below += counts[index]!
        return [boundary, below]
      })
      return { buckets, count, sum, min, max }
    }
  }
}
