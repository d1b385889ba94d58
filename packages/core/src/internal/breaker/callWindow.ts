/**
 * The sliding window over the last calls of a circuit breaker. It keeps running sums, so adding a call takes constant time.
 */

export interface Counts {
  readonly calls: number
  readonly failures: number
  readonly slow: number
}

export interface CallWindow {
  readonly add: (failed: boolean, slow: boolean, nowMillis: number) => void
  /** Answers the window's own mutable sums: read them before the next call of a method. */
  readonly counts: (nowMillis: number) => Counts
  readonly clear: () => void
}

const failedBit = 1
const slowBit = 2

/** A window over the last `size` calls. */
export const ofCalls = (size: number): CallWindow => {
  const ring = new Uint8Array(size)
  const sums = { calls: 0, failures: 0, slow: 0 }
  let next = 0
  return {
    add: (failed, slow) => {
      if (sums.calls === size) {
        const evicted = ring[next]!
        sums.failures -= evicted & failedBit
        sums.slow -= (evicted & slowBit) >> 1
      } else sums.calls++
      ring[next] = (failed ? failedBit : 0) | (slow ? slowBit : 0)
      next = next + 1 === size ? 0 : next + 1
      if (failed) sums.failures++
      if (slow) sums.slow++
    },
    counts: () => sums,
    clear: () => {
      next = 0
      sums.calls = sums.failures = sums.slow = 0
    }
  }
}

/** A window over the last `seconds` seconds, the current one included, counted by second. A clock that is set back empties it. */
export const ofSeconds = (seconds: number): CallWindow => {
  const calls = new Uint32Array(seconds)
  const failures = new Uint32Array(seconds)
  const slowCalls = new Uint32Array(seconds)
  const sums = { calls: 0, failures: 0, slow: 0 }
  let current = Number.NEGATIVE_INFINITY

  const empty = (bucket: number) => {
    sums.calls -= calls[bucket]!
    sums.failures -= failures[bucket]!
    sums.slow -= slowCalls[bucket]!
    calls[bucket] = failures[bucket] = slowCalls[bucket] = 0
  }
  const clear = () => {
    for (const buckets of [calls, failures, slowCalls]) buckets.fill(0)
    sums.calls = sums.failures = sums.slow = 0
  }
  const moveTo = (nowMillis: number) => {
    const second = Math.max(0, Math.floor(nowMillis / 1_000))
    if (second === current) return
    if (second < current || second - current >= seconds) clear()
    else for (let passed = current + 1; passed <= second; passed++) empty(passed % seconds)
    current = second
  }
  return {
    add: (failed, slow, nowMillis) => {
      moveTo(nowMillis)
      const bucket = current % seconds
      calls[bucket]!++
      sums.calls++
      if (failed) {
        failures[bucket]!++
        sums.failures++
      }
      if (slow) {
        slowCalls[bucket]!++
        sums.slow++
      }
    },
    counts: (nowMillis) => {
      moveTo(nowMillis)
      return sums
    },
    clear
  }
}
