/**
 * Counts what is alike within a minute, so that a page that asks every three seconds, or a stranger who knocks, does not fill the audit log.
 */

const withinMillis = 60_000

/** Most kinds that are remembered. */
const mostKinds = 1_000

export interface Repeats {
  /** How many of the kind were not written since the last one that was; undefined when this one need not be written either. */
  readonly due: (kind: string, nowMillis: number) => number | undefined
  /** One of the kind was written. */
  readonly written: (kind: string, nowMillis: number) => void
}

export const make = (): Repeats => {
  const kinds = new Map<string, { readonly writtenMillis: number; count: number }>()
  return {
    due: (kind, nowMillis) => {
      const known = kinds.get(kind)
      if (known === undefined) return 0
      if (nowMillis - known.writtenMillis >= withinMillis) return known.count
      known.count++
      return undefined
    },
    written: (kind, nowMillis) => {
      kinds.delete(kind)
      kinds.set(kind, { writtenMillis: nowMillis, count: 0 })
      const [oldest] = kinds.keys()
      if (kinds.size > mostKinds && oldest !== undefined) kinds.delete(oldest)
    }
  }
}
