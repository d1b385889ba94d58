/**
 * Limits log lines about single records: 20 lines per binding and second, then one summary line with the number of suppressed lines.
 */
import type * as Clock from "effect/Clock"
import * as BindingKey from "../settings/bindingKey.ts"

/** The binding that a line is about, as its events name it. */
type Source = ReturnType<typeof BindingKey.onEvent>

/** Which log lines of a binding may still be written in this second. */
export interface LogRateLimit {
  /** Whether one more line may be written. Counts the line either way. */
  readonly allows: (source: Source) => boolean
  /** Writes the summaries that are still due. */
  readonly flush: () => void
}

/** The summary of the lines that were left out. */
export const leftOutText = (count: number): string =>
  `${count} more records were routed, dead-lettered or skipped within a second`

const linesPerSecond = 20

interface Second {
  readonly source: Source
  readonly beganMillis: number
  admitted: number
  suppressed: number
}

/** Calls `summary` with the number of suppressed lines when the second of a binding is over and its next line comes, or at the end. */
export const make = (summary: (source: Source, count: number) => void, clock: Clock.Clock): LogRateLimit => {
  const seconds = new Map<string, Second>()
  let last: Second | undefined
  const close = (key: string) => {
    const second = seconds.get(key)
    seconds.delete(key)
    if (second !== undefined && second.suppressed > 0) summary(second.source, second.suppressed)
  }
  const begin = ({ cluster, binding: name }: Source, nowMillis: number): Second => {
    const key = BindingKey.of({ cluster, name })
    close(key)
    const second = { source: { cluster, binding: name }, beganMillis: nowMillis, admitted: 0, suppressed: 0 }
    seconds.set(key, second)
    return second
  }
  return {
    allows: (source) => {
      const now = clock.currentTimeMillisUnsafe()
      // Successive records mostly belong to the same binding.
      if (last?.source.binding !== source.binding || last.source.cluster !== source.cluster) {
        last = seconds.get(BindingKey.of({ cluster: source.cluster, name: source.binding }))
      }
      if (last === undefined || now < last.beganMillis || now >= last.beganMillis + 1_000) last = begin(source, now)
      if (last.admitted < linesPerSecond) {
        last.admitted++
        return true
      }
      last.suppressed++
      return false
    },
    flush: () => {
      for (const key of Array.from(seconds.keys())) close(key)
    }
  }
}
