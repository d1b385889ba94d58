/**
 * Keeps a flood of alike log lines out: so many of a binding in a second, then only how many there were more.
 */
import type { Clock } from "effect"
import * as BindingKey from "./bindingKey.ts"

/** Whose lines they are, as its events say it. */
type Source = ReturnType<typeof BindingKey.onEvent>

export interface Flood {
  /** Whether one more line is to be written. */
  readonly admits: (source: Source) => boolean
  /** Says what is still to be said. */
  readonly end: () => void
}

const linesPerSecond = 20

interface Second {
  readonly source: Source
  readonly beganMillis: number
  admitted: number
  held: number
}

/** `summary` is told how many lines were held back, when the next one is admitted or at the end. */
export const make = (summary: (source: Source, count: number) => void, clock: Clock.Clock): Flood => {
  const seconds = new Map<string, Second>()
  const close = (key: string) => {
    const second = seconds.get(key)
    seconds.delete(key)
    if (second !== undefined && second.held > 0) summary(second.source, second.held)
  }
  return {
    admits: (source) => {
      const { cluster, binding: name } = source
      const key = BindingKey.of({ cluster, name })
      const now = clock.currentTimeMillisUnsafe()
      let second = seconds.get(key)
      if (second === undefined || now < second.beganMillis || now >= second.beganMillis + 1_000) {
        close(key)
        second = { source: { cluster, binding: name }, beganMillis: now, admitted: 0, held: 0 }
        seconds.set(key, second)
      }
      if (second.admitted < linesPerSecond) {
        second.admitted++
        return true
      }
      second.held++
      return false
    },
    end: () => {
      for (const key of Array.from(seconds.keys())) close(key)
    }
  }
}
