/** One cycle of the poller: reads due rows, hands them over in order, and decides when the next cycle should run. */
import { UserFunction } from "@eventbus/core"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { OutboxStoreError } from "../../OutboxError.ts"
import type { EventEnvelope } from "../base/envelope.ts"
import { logFatal } from "../base/log.ts"
import type { DeliveryTools } from "../delivery/deliveryTools.ts"
import { type Fence, openFence, type PollCursor, type StoreShape } from "../store/contract.ts"
import { type OutboxEvent, type PolledEvent, separateUndecodable, type UndecodableEvent } from "../store/rows.ts"
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
  readonly tools: DeliveryTools
  readonly handler: PollerHandler
  readonly claimLocking: ClaimLocking | undefined
  readonly skipRecent: Duration.Input
  readonly batchSize: number
  readonly maxBatchSize: number
}

/** A cycle with its cursor and its present batch size. Run one at a time. */
export const makePollCycle = (options: CycleOptions): Effect.Effect<CycleResult, OutboxStoreError> => {
  const { store, tools, handler, claimLocking: claim, skipRecent, batchSize, maxBatchSize } = options
  const { guard, metrics } = tools
  const fence: Fence = claim === undefined ? openFence : { _tag: "Claim", owner: claim.owner }
  let cursor: PollCursor | undefined
  let size = batchSize

  const read = (limit: number) =>
    claim === undefined
      ? store.pollPending({ limit, skipRecent, ...(cursor === undefined ? {} : { after: cursor }) })
      : store.claimPending({ limit, skipRecent, ...claim })

  const markUndecodable = ({ eventId, envelope }: UndecodableEvent) => {
    const detail = envelope.message
    return logFatal(`outbox: ${eventId} cannot be decoded and is DEAD: ${detail}`).pipe(
      Effect.andThen(store.markDead(eventId, detail, fence)),
      Effect.tap((changed) => (changed > 0 ? Effect.sync(metrics.incrementDispatchDead) : Effect.void))
    )
  }

  /** Hands rows over in order until the handler refuses one. An event on which the handler throws is not taken, and the next one follows. */
  const offerAll = (events: ReadonlyArray<OutboxEvent>) => {
    const left: Array<string> = []
    for (const [index, { envelope, attempts, rowAddress, eventId }] of events.entries()) {
      const answer = guard.call<boolean | "threw">(
        "poller handler",
        () => handler.handle(envelope, attempts, rowAddress),
        isBoolean,
        "threw"
      )
      if (answer === "threw") left.push(eventId)
      if (answer === false) {
        left.push(...events.slice(index).map((event) => event.eventId))
        return { left, refused: true }
      }
    }
    return { left, refused: false }
  }

  const handOver = Effect.fnUntraced(function* (polled: ReadonlyArray<PolledEvent>) {
    const { events, undecodable } = separateUndecodable(polled)
    yield* Effect.forEach(undecodable, markUndecodable, { discard: true })
    const { left, refused } = offerAll(events)
    if (claim !== undefined) yield* store.releaseClaims(claim.owner, left)
    return { handed: events.length - left.length, refused }
  })

  const readAndHandOver = Effect.fnUntraced(function* (limit: number) {
    const polled = yield* read(limit)
    const { handed, refused } = yield* handOver(polled)
    const full = polled.length === limit && !refused
    // While batches are full, the next read starts behind the last row, so that rows in flight are not read again. Otherwise it starts
    // from the beginning, where rows of slow transactions appear.
    cursor = full && claim === undefined ? polled.at(-1) : undefined
    size = full ? Math.min(maxBatchSize, size * 2) : batchSize
    const next = refused ? "when there is capacity" : full ? "now" : "later"
    return { handed, next } as const
  })

  return Effect.suspend(() => {
    const capacity = guard.call(
      "availableCapacity",
      () => handler.availableCapacity?.() ?? noLimit,
      isCapacity,
      noLimit
    )
    const limit = Math.min(size, capacity)
    if (limit < 1) return Effect.succeed<CycleResult>({ handed: 0, next: "when there is capacity" })
    const work = readAndHandOver(limit)
    const { whilePolling } = handler
    return whilePolling === undefined ? work : UserFunction.callIsolated("whilePolling", () => whilePolling(work))
  })
}

const noLimit = Number.MAX_SAFE_INTEGER
const isBoolean = (value: unknown): boolean => typeof value === "boolean"
const isCapacity = (value: unknown): boolean => typeof value === "number" && value >= 0
