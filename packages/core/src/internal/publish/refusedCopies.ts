/**
 * Publishes copies again that were refused: with growing waits, for as long as it takes, and through the drain of a partition that is given up (ruling 83). Owns which
 * copies are refused now.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type { BrokerError } from "../../BrokerError.ts"
import type { ProducerRecord, RecordMetadata } from "../../ConsumerRecord.ts"
import type { Unpublished } from "../../Snapshot.ts"
import type { Copy } from "../record/copy.ts"
import * as TrimmedHeaders from "../record/trimmedHeaders.ts"
import type { CopyAddress } from "./copyAddress.ts"
import * as StillOwned from "./stillOwned.ts"

export type Send = (record: ProducerRecord) => Effect.Effect<RecordMetadata, BrokerError>

/** Waits between attempts of a publish: 100 ms doubling up to 10 s. */
const waits = Schedule.min([Schedule.exponential("100 millis", 2), Schedule.spaced("10 seconds")])

export interface RefusedCopies {
  /** Publishes a copy after its first refusal: true when it is acknowledged, false when the drain of its partition, or the assignment, ended first. */
  readonly publishAgain: (send: Send, copy: Copy, first: BrokerError) => Effect.Effect<boolean>
  /** The copies that cannot be published at the moment; undefined when there are none. */
  readonly unpublished: () => Unpublished | undefined
}

/** The copy after so many refusals as too large, compressed. With its last headers it goes as its source did, too: gzip makes incompressible bytes a little longer. */
const smaller = (copy: Copy, times: number): Copy => {
  const trimmed = { ...copy, headers: TrimmedHeaders.trim(copy.headers, times) }
  return times > 3 ? trimmed : { ...trimmed, compression: "gzip" }
}

export const make = (
  clock: Clock.Clock,
  address: CopyAddress,
  onStored: (copy: Copy, metadata: RecordMetadata) => void
): RefusedCopies => {
  let refusals: Omit<Unpublished, "copies"> | undefined
  let refusedCopies = 0

  const insist = (send: Send, copy: Copy, first: BrokerError) =>
    Effect.gen(function* () {
      const { partition, topic } = copy
      let nextWait = yield* Schedule.toStep(waits)
      let isDraining = false
      let sent = copy
      let tooLarge = 0
      let error = first
      for (let attempt = 1; partition.mayPublish(); attempt++) {
        const isHealed = (yield* address.heal(error, topic)) && attempt === 1
        // Every client reads gzip. A copy loses headers only when it is too large compressed as well (ruling 78).
        const isPacked = error._tag === "RecordTooLarge" && sent.compression === undefined
        if (isPacked) sent = { ...sent, compression: "gzip" }
        if (!isHealed && !isPacked) {
          error = yield* address.withLimit(error)
          const sinceMillis = refusals?.sinceMillis ?? clock.currentTimeMillisUnsafe()
          refusals = { topic, error, sinceMillis }
          copy.onRefused(error, attempt)
          if (error._tag === "RecordTooLarge") sent = smaller(copy, ++tooLarge)
          // A drain is short: the waits grow anew, also when it began while an attempt was on its way.
          if (partition.stopping && !isDraining) nextWait = yield* Schedule.toStep(waits)
          isDraining = partition.stopping
          const [, wait] = yield* Effect.orDie(nextWait(clock.currentTimeMillisUnsafe(), undefined))
          // The beginning of a drain ends the wait, so that the drain begins with an attempt.
          yield* isDraining ? partition.whileCopiesGoOn(Effect.sleep(wait)) : partition.until(Effect.sleep(wait))
          if (!(yield* StillOwned.confirmed(partition))) return false
        }
        const result = yield* Effect.result(send(yield* address.recordOf(sent)))
        if (Result.isSuccess(result)) {
          onStored(sent, result.success)
          return true
        }
        error = result.failure
      }
      return false
    })

  return {
    publishAgain: (send, copy, first) =>
      Effect.acquireUseRelease(
        Effect.sync(() => refusedCopies++),
        () => insist(send, copy, first),
        () =>
          Effect.sync(() => {
            if (--refusedCopies === 0) refusals = undefined
          })
      ),
    unpublished: () => (refusals === undefined ? undefined : { ...refusals, copies: refusedCopies })
  }
}
