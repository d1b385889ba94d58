/** The claims of the events in flight: renewed while they are handled, released when the dispatcher closes. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { logText } from "../base/failureText.ts"
import { logError, logWarning } from "../base/log.ts"
import { releaseBounded } from "../base/supervisor.ts"
import type { DeliveryTools } from "../delivery/deliveryTools.ts"
import type { StoreShape } from "../store/contract.ts"
import type { ClaimLocking, InFlightEvent, InFlightEvents } from "./inFlightEvents.ts"

/** The most rows of one renewing statement. */
const renewBatch = 500

/** Renews the claims of all events in flight. A claim that could not be renewed expires by itself. */
export const renewClaims = (
  store: StoreShape,
  { clock }: DeliveryTools,
  inFlight: InFlightEvents,
  claim: ClaimLocking
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const now = clock.monotonicTimeNanosUnsafe()
    const events = inFlight.unfinished
    const chunks = Array.from({ length: Math.ceil(events.length / renewBatch) }, (_, i) =>
      events.slice(i * renewBatch, (i + 1) * renewBatch)
    )
    const renew = (chunk: ReadonlyArray<InFlightEvent>) => {
      const ids = chunk.map((event) => event.envelope.eventId)
      return Effect.map(store.renewClaims(claim.owner, ids), (renewed) => {
        const stillOurs = new Set(renewed)
        for (const event of chunk) if (stillOurs.has(event.envelope.eventId)) event.claimedAtNanos = now
      })
    }
    return Effect.forEach(chunks, renew, { discard: true })
  }).pipe(Effect.catchCause((cause) => logError(`outbox: renewing claims failed: ${logText(cause)}`)))

/**
 * Undefined while nobody else can take the event before its claim is renewed with those of all events in flight. A claim of half its time or more
 * was not renewed in time: its transaction was open for long, or the database was slow. Such a claim is renewed before its event is started. The
 * effect says whether this process still holds it; a claim that could not be renewed counts as lost.
 */
export const heldClaim = (
  store: StoreShape,
  { clock }: DeliveryTools,
  event: InFlightEvent,
  claim: ClaimLocking
): Effect.Effect<boolean> | undefined => {
  const lockNanos = Duration.toNanosUnsafe(Duration.fromInputUnsafe(claim.lockTimeout))
  if (2n * (clock.monotonicTimeNanosUnsafe() - event.claimedAtNanos) < lockNanos) return undefined
  return Effect.suspend(() => {
    const now = clock.monotonicTimeNanosUnsafe()
    return Effect.map(store.renewClaims(claim.owner, [event.envelope.eventId]), (renewed) => {
      if (renewed.length > 0) event.claimedAtNanos = now
      return renewed.length > 0
    })
  }).pipe(
    Effect.catchCause((cause) => Effect.as(logError(`outbox: renewing a claim failed: ${logText(cause)}`), false))
  )
}

/** Releases the claims of unfinished events at the very end. They stay pending, and another process may take them at once. */
export const releaseUnfinished = (
  store: StoreShape,
  inFlight: InFlightEvents,
  claim: ClaimLocking | undefined
): Effect.Effect<void> =>
  Effect.suspend(() => {
    const left = inFlight.unfinished.map((event) => event.envelope.eventId)
    if (left.length === 0) return Effect.void
    const log = logWarning(`outbox: closed with ${left.length} events unfinished; they stay pending`)
    const release = (owner: string) => releaseBounded("release of claims", () => store.releaseClaims(owner, left))
    return claim === undefined ? log : Effect.andThen(log, release(claim.owner))
  })
