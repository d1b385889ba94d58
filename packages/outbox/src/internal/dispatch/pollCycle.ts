/** One cycle of the poller: reads due rows, hands them over in order, and decides when the next cycle should run. */
import { type Duration, Effect, Result } from "effect"
import type { MetricsExporter } from "../../MetricsExporter.ts"
import type { OutboxStoreError } from "../../OutboxError.ts"
import type { EventEnvelope } from "../base/envelope.ts"
import { type Fence, openFence, type PollCursor, type StoreShape } from "../store/contract.ts"
import type { PolledEvent } from "../store/rows.ts"
import type { ClaimLocking } from "./inFlightEvents.ts"

/** The receiver of polled events (outbox seed §10). */
export interface PollerHandler {
  /**
   * Takes one event. `attempts` counts its failed deliveries, `rowAddress` is that of its `PolledEvent`. False ends the cycle: the rest
   * stays in the database for the next one.
   */
  readonly handle: (event: EventEnvelope, attempts: number, rowAddress?: string) => boolean
  /** The number of events that may be handed over now. With 0 no query is made. Default: no limit. */
  readonly availableCapacity?: () => number
  /** Waits for capacity after there was none. Default: waits for the interval. */
  readonly awaitCapacity?: Effect.Effect<void>
  /** Wraps a cycle. An event that finishes during the cycle's query may be in its result, and must not be taken again. */
  readonly whilePolling?: <A, E, R>(poll: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** The number of events handed over, and when the next cycle should run. */
interface CycleResult {
  readonly handed: number
  readonly next: "now" | "later" | "when there is capacity"
}

interface CycleOptions {
  readonly store: StoreShape
  readonly metrics: MetricsExporter
  readonly handler: PollerHandler
  readonly claimLocking: ClaimLocking | undefined
  readonly skipRecent: Duration.Input
  readonly batchSize: number
  readonly maxBatchSize: number
}

/** A cycle with its cursor and its present batch size. Run one at a time. */
export const makePollCycle = (options: CycleOptions): Effect.Effect<CycleResult, OutboxStoreError> => {
  const { store, metrics, handler, claimLocking: claim, skipRecent, batchSize, maxBatchSize } = options
  const fence: Fence = claim === undefined ? openFence : { _tag: "Claim", owner: claim.owner }
  let cursor: PollCursor | undefined
  let size = batchSize

  const read = (limit: number) =>
    claim === undefined
      ? store.pollPending({ limit, skipRecent, ...(cursor === undefined ? {} : { after: cursor }) })
      : store.claimPending({ limit, skipRecent, ...claim })

  const markUndecodable = ({ eventId, envelope }: PolledEvent) => {
    if (Result.isSuccess(envelope)) return Effect.void
    const detail = envelope.failure.message
    return Effect.logFatal(`outbox: ${eventId} cannot be decoded and is DEAD: ${detail}`).pipe(
      Effect.andThen(store.markDead(eventId, detail, fence)),
      Effect.tap(() => Effect.sync(metrics.incrementDispatchDead))
    )
  }

  /** Hands rows over in order until the handler refuses one. */
  const handOver = Effect.fnUntraced(function* (polled: ReadonlyArray<PolledEvent>) {
    const undecodable = polled.filter(({ envelope }) => Result.isFailure(envelope))
    yield* Effect.forEach(undecodable, markUndecodable, { discard: true })
    const refusedAt = polled.findIndex(
      ({ envelope, attempts, rowAddress }) =>
        Result.isSuccess(envelope) && !handler.handle(envelope.success, attempts, rowAddress)
    )
    const refused = refusedAt < 0 ? [] : polled.slice(refusedAt).filter(({ envelope }) => Result.isSuccess(envelope))
    const ids = refused.map((event) => event.eventId)
    if (claim !== undefined) yield* store.releaseClaims(claim.owner, ids)
    return { handed: polled.length - undecodable.length - refused.length, refused: refused.length }
  })

  const readAndHandOver = Effect.fnUntraced(function* (limit: number) {
    const polled = yield* read(limit)
    if (polled.length > 0 && cursor === undefined) metrics.recordOldestLagMs(polled[0]!.ageMillis)
    else if (polled.length === 0) metrics.recordOldestLagMs(0)
    const { handed, refused } = yield* handOver(polled)
    const full = polled.length === limit && refused === 0
    // While batches are full, the next read starts behind the last row, so that rows in flight are not read again. Otherwise it starts
    // from the beginning, where rows of slow transactions appear.
    cursor = full && claim === undefined ? polled.at(-1) : undefined
    size = full ? Math.min(maxBatchSize, size * 2) : batchSize
    const next = refused > 0 ? "when there is capacity" : full ? "now" : "later"
    return { handed, next } as const
  })

  return Effect.suspend(() => {
    const capacity = handler.availableCapacity?.() ?? Number.MAX_SAFE_INTEGER
    const limit = Math.min(size, capacity)
    if (limit < 1) return Effect.succeed<CycleResult>({ handed: 0, next: "when there is capacity" })
    const work = readAndHandOver(limit)
    return handler.whilePolling === undefined ? work : handler.whilePolling(work)
  })
}
