/**
 * Keeps a flood of alike log lines out: so many of a binding in a second, then only how many there were more.
 */
import type { Clock } from "effect"
import * as BindingKey from "../settings/bindingKey.ts"

/** Whose lines they are, as its events say it. */
type Source = ReturnType<typeof BindingKey.onEvent>

export interface LogRateLimit {
  /** Whether one more line is to be written. */
  readonly allows: (source: Source) => boolean
  /** Says what is still to be said. */
  readonly flush: () => void
}

const linesPerSecond = 20

interface Second {
  readonly source: Source
  readonly beganMillis: number
  admitted: number
  held: number
}

/** `summary` is told how many lines were held back, when the next one is admitted or at the end. */
export const make = (summary: (source: Source, count: number) => void, clock: Clock.Clock): LogRateLimit => {
  const seconds = new Map<string, Second>()
  let last: Second | undefined
  const close = (key: string) => {
    const second = seconds.get(key)
    seconds.delete(key)
    if (second !== undefined && second.held > 0) summary(second.source, second.held)
  }
  const begin = ({ cluster, binding: name }: Source, nowMillis: number): Second => {
    const key = BindingKey.of({ cluster, name })
    close(key)
    const second = { source: { cluster, binding: name }, beganMillis: nowMillis, admitted: 0, held: 0 }
    seconds.set(key, second)
    return second
  }
  return {
    allows: (source) => {
      const now = clock.currentTimeMillisUnsafe()
      // Mostly the record before is of the same binding.
      if (last?.source.binding !== source.binding || last.source.cluster !== source.cluster) {
        last = seconds.get(BindingKey.of({ cluster: source.cluster, name: source.binding }))
      }
      if (last === undefined || now < last.beganMillis || now >= last.beganMillis + 1_000) last = begin(source, now)
      if (last.admitted < linesPerSecond) {
        last.admitted++
        return true
      }
      last.held++
      return false
    },
    flush: () => {
      for (const key of Array.from(seconds.keys())) close(key)
    }
  }
}
