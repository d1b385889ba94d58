/**
 * The sliding window over the last calls of a circuit breaker. It keeps running sums, so adding a call takes constant time.
 *
 * A call may say which record it was for. Only failures are remembered by their record: a call that succeeds is the last one of its record.
 */
import type { RecordPosition } from "../../ConsumerRecord.ts"
import { FailedRecords } from "./failedRecords.ts"

export interface Counts {
  readonly calls: number
  readonly failures: number
  readonly slow: number
}

export interface CallWindow {
  /** A failure of the same record that is in the window is replaced: the calls of one record count as one, the newest. */
  readonly add: (failed: boolean, slow: boolean, nowMillis: number, record?: RecordPosition) => void
  /** Whether a failure is remembered by its record. */
  readonly remembers: () => boolean
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
  const failed = new FailedRecords(size)
  let next = 0

  const remove = (slot: number) => {
    const bits = ring[slot]!
    sums.failures -= bits & failedBit
    sums.slow -= (bits & slowBit) >> 1
    failed.remove(slot)
  }
  const put = (slot: number, hasFailed: boolean, slow: boolean, record: RecordPosition | undefined) => {
    ring[slot] = (hasFailed ? failedBit : 0) | (slow ? slowBit : 0)
    if (slow) sums.slow++
    if (!hasFailed) return
    sums.failures++
    if (record !== undefined) failed.put(slot, record)
  }
  return {
    add: (hasFailed, slow, _nowMillis, record) => {
      const known = record === undefined ? -1 : failed.slotOf(record)
      if (known !== -1) {
        remove(known)
        return put(known, hasFailed, slow, record)
      }
      if (sums.calls === size) remove(next)
      else sums.calls++
      put(next, hasFailed, slow, record)
      next = next + 1 === size ? 0 : next + 1
    },
    remembers: () => failed.size > 0,
    counts: () => sums,
    clear: () => {
      next = 0
      sums.calls = sums.failures = sums.slow = 0
      failed.clear()
    }
  }
}

/** A failure of a record in a window of seconds. */
interface Remembered {
  readonly second: number
  readonly slow: boolean
}

/** So many failures are remembered by their record at most, those that came last. */
const mostRemembered = 10_000

/** A window over the last `seconds` seconds, the current one included, counted by second. A clock that is set back empties it. */
export const ofSeconds = (seconds: number): CallWindow => {
  const calls = new Uint32Array(seconds)
  const failures = new Uint32Array(seconds)
  const slowCalls = new Uint32Array(seconds)
  const sums = { calls: 0, failures: 0, slow: 0 }
  const remembered = new Map<string, Remembered>()
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
    remembered.clear()
  }
  const moveTo = (nowMillis: number) => {
    const second = Math.max(0, Math.floor(nowMillis / 1_000))
    if (second === current) return
    if (second < current || second - current >= seconds) clear()
    else for (let passed = current + 1; passed <= second; passed++) empty(passed % seconds)
    current = second
  }
  const count = (second: number, failed: boolean, slow: boolean, by: 1 | -1) => {
    const bucket = second % seconds
    calls[bucket]! += by
    sums.calls += by
    if (failed) {
      failures[bucket]! += by
      sums.failures += by
    }
    if (slow) {
      slowCalls[bucket]! += by
      sums.slow += by
    }
  }
  const forget = (record: string) => {
    const before = remembered.get(record)
    if (before === undefined) return
    remembered.delete(record)
    if (current - before.second < seconds) count(before.second, true, before.slow, -1)
  }
  const remember = (record: string, slow: boolean) => {
    remembered.set(record, { second: current, slow })
    if (remembered.size <= mostRemembered) return
    for (const oldest of remembered.keys()) {
      remembered.delete(oldest)
      return
    }
  }
  return {
    add: (failed, slow, nowMillis, record) => {
      moveTo(nowMillis)
      const name = record === undefined ? undefined : `${record.topic}-${record.partition}@${record.offset}`
      if (name !== undefined) forget(name)
      count(current, failed, slow, 1)
      if (failed && name !== undefined) remember(name, slow)
    },
    remembers: () => remembered.size > 0,
    counts: (nowMillis) => {
      moveTo(nowMillis)
      return sums
    },
    clear
  }
}
