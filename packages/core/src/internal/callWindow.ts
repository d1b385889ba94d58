/**
 * The last calls of a circuit breaker, with running sums: adding one takes the same time however many there are.
 */

export interface Counts {
  readonly calls: number
  readonly failures: number
  readonly slow: number
}

export interface CallWindow {
  readonly add: (failed: boolean, slow: boolean, nowMillis: number) => void
  readonly counts: (nowMillis: number) => Counts
  readonly clear: () => void
}

const failedBit = 1
const slowBit = 2

/** The last `size` calls. */
export const ofCalls = (size: number): CallWindow => {
  const ring = new Uint8Array(size)
  let next = 0
  let calls = 0
  let failures = 0
  let slowCalls = 0
  return {
    add: (failed, slow) => {
      if (calls === size) {
        const evicted = ring[next]!
        failures -= evicted & failedBit
        slowCalls -= (evicted & slowBit) >> 1
      } else calls++
      ring[next] = (failed ? failedBit : 0) | (slow ? slowBit : 0)
      next = next + 1 === size ? 0 : next + 1
      if (failed) failures++
      if (slow) slowCalls++
    },
    counts: () => ({ calls, failures, slow: slowCalls }),
    clear: () => {
      next = 0
      calls = 0
      failures = 0
      slowCalls = 0
    }
  }
}

/** The calls of the last `seconds` seconds, the current one included, counted by second. A clock that is set back begins anew. */
export const ofSeconds = (seconds: number): CallWindow => {
  const buckets = Array.from({ length: seconds }, () => ({ calls: 0, failures: 0, slow: 0 }))
  const sums = { calls: 0, failures: 0, slow: 0 }
  let current = Number.NEGATIVE_INFINITY

  const empty = (bucket: (typeof buckets)[number]) => {
    sums.calls -= bucket.calls
    sums.failures -= bucket.failures
    sums.slow -= bucket.slow
    bucket.calls = bucket.failures = bucket.slow = 0
  }
  const clear = () => {
    for (const bucket of buckets) empty(bucket)
  }
  const moveTo = (second: number) => {
    if (second === current) return
    if (second < current || second - current >= seconds) clear()
    else for (let passed = current + 1; passed <= second; passed++) empty(buckets[passed % seconds]!)
    current = second
  }
  return {
    add: (failed, slow, nowMillis) => {
      const second = Math.max(0, Math.floor(nowMillis / 1_000))
      moveTo(second)
      for (const counts of [buckets[second % seconds]!, sums]) {
        counts.calls++
        if (failed) counts.failures++
        if (slow) counts.slow++
      }
    },
    counts: (nowMillis) => {
      moveTo(Math.max(0, Math.floor(nowMillis / 1_000)))
      return { ...sums }
    },
    clear
  }
}
