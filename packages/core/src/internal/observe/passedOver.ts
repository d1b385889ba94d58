/**
 * Counts records of other groups that were passed over, and reports the numbers once a minute, and when the scope closes; nothing when there were none.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { keepRunning } from "../base/keepRunning.ts"

/** Records that were passed over since the last report. */
export interface PassedOver<Kind> {
  readonly topic: string
  readonly owner: string
  readonly kind: Kind
  readonly records: number
}

/** Counts one record. */
export type Count<Kind> = (topic: string, owner: string, kind: Kind) => void

const reportMillis = 60_000

/** Owners of one report. Further ones count as `other`, because headers are untrusted input. */
const mostCounts = 200

export const make = Effect.fnUntraced(function* <Kind extends string>(
  onReport: (passedOver: PassedOver<Kind>) => void
): Effect.fn.Return<Count<Kind>, never, Scope.Scope> {
  const counts = new Map<string, { topic: string; owner: string; kind: Kind; records: number }>()
  const report = Effect.sync(() => {
    const ready = Array.from(counts.values())
    counts.clear()
    ready.forEach(onReport)
  })
  yield* Effect.forkScoped(
    keepRunning("report of passed-over records", Effect.forever(Effect.andThen(Effect.sleep(reportMillis), report)))
  )
  yield* Effect.addFinalizer(() => report)

  const count: Count<Kind> = (topic, owner, kind) => {
    const key = `${kind}/${topic}/${owner}`
    const known = counts.get(key)
    if (known !== undefined) known.records++
    else if (counts.size < mostCounts || owner === "other") counts.set(key, { topic, owner, kind, records: 1 })
    else count(topic, "other", kind)
  }
  return count
})
