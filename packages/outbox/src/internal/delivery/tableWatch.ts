/**
 * Measures the table for the metrics, every five seconds, whatever nodes, claims and operators do with its rows. So a figure is right after a node died, after a purge
 * and after a replay, and it never stands still because nothing is delivered (ruling 75).
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TableFigures } from "../../MetricsExporter.ts"
import type { OutboxStoreError } from "../../OutboxError.ts"
import { logText } from "../base/failureText.ts"
import { logDebug } from "../base/log.ts"
import type { Figures, StoreShape } from "../store/contract.ts"
import type { DeliveryTools } from "./deliveryTools.ts"

/** The wait between two looks. */
const everyMillis = 5_000

/** Watches in the background until the scope closes. Does nothing when nobody exports metrics. */
export const watchTable = (store: StoreShape, tools: DeliveryTools): Effect.Effect<void, never, Scope.Scope> => {
  const { clock, metrics } = tools
  if (!metrics.isRead) return Effect.void
  let seen: (Figures & { readonly atNanos: bigint }) | undefined
  let end: (() => void) | undefined

  const read = (): TableFigures => {
    const { pending, dead, oldestMillis, atNanos } = seen!
    const sinceMillis = Number(clock.monotonicTimeNanosUnsafe() - atNanos) / 1e6
    return { pending, dead, oldestLagMs: pending === 0 ? 0 : oldestMillis + sinceMillis }
  }
  const look = Effect.map(figuresOf(store), (figures) => {
    seen = { ...figures, atNanos: clock.monotonicTimeNanosUnsafe() }
    end ??= metrics.observeTable(read)
    metrics.recordOldestLagMs(read().oldestLagMs)
  })
  /** Events may have come that nobody can count now. So a figure without events ends, and the others stay and grow older. */
  const missed = (detail: string) =>
    Effect.andThen(
      logDebug(`outbox: the table cannot be measured: ${detail}`),
      Effect.sync(() => {
        if (seen !== undefined && seen.pending > 0) return
        end?.()
        end = undefined
      })
    )
  const loop = Effect.forever(
    Effect.andThen(
      Effect.catchCause(look, (cause) => missed(logText(cause))),
      Effect.sleep(everyMillis)
    )
  )
  return Effect.andThen(
    Effect.forkScoped(tools.supervise("table watch", loop)),
    Effect.addFinalizer(() => Effect.sync(() => end?.()))
  )
}

/** A store of the user may lack the figures. Then the health's measure stands in, which leaves out what is not due. */
const figuresOf = (store: StoreShape): Effect.Effect<Figures, OutboxStoreError> => store.figures ?? store.lag
