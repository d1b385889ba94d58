/**
 * Keeps a flood of alike log lines out: so many of a binding in a second, then only how many there were more.
 */
import type { Clock } from "effect"

export interface Flood {
  /** Whether one more line is to be written. */
  readonly admits: (binding: string) => boolean
  /** Says what is still to be said. */
  readonly end: () => void
}

const linesPerSecond = 20

interface Second {
  readonly beganMillis: number
  admitted: number
  held: number
}

/** `summary` is told how many lines were held back, when the next one is admitted or at the end. */
export const make = (summary: (binding: string, count: number) => void, clock: Clock.Clock): Flood => {
  const seconds = new Map<string, Second>()
  const close = (binding: string) => {
    const second = seconds.get(binding)
    seconds.delete(binding)
    if (second !== undefined && second.held > 0) summary(binding, second.held)
  }
  return {
    admits: (binding) => {
      const now = clock.currentTimeMillisUnsafe()
      let second = seconds.get(binding)
      if (second === undefined || now < second.beganMillis || now >= second.beganMillis + 1_000) {
        close(binding)
        second = { beganMillis: now, admitted: 0, held: 0 }
        seconds.set(binding, second)
      }
      if (second.admitted < linesPerSecond) {
        second.admitted++
        return true
      }
      second.held++
      return false
    },
    end: () => {
      for (const binding of Array.from(seconds.keys())) close(binding)
    }
  }
}
