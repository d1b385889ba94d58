/**
 * Partitions of retry topics beyond those of their source: somebody has made the retry topic wider, and copies of a time without order per key may be in them. No unit can begin there.
 */
import * as Effect from "effect/Effect"
import type { Broker } from "../../Broker.ts"
import { readAgain } from "../order/readAgain.ts"
import type { UnitParts } from "./unitParts.ts"

/** The assignment has this long to bring the source's partition. */
const patienceMillis = 5_000

/**
 * Returns when the parts of a unit that are here go on without order, since their source has no such partition. Never returns where a unit has committed in one of them: the source had the
 * partition once, and an operator decides about the keys that were parked.
 */
export const isFound = (broker: Broker["Service"], seat: UnitParts): Effect.Effect<void> => {
  const hasPartition = Effect.scoped(
    Effect.flatMap(broker.admin, (admin) =>
      Effect.map(admin.topicOffsets(seat.source), (logs) => logs.some(({ partition }) => partition === seat.partition))
    )
  )
  const isWhole = (): boolean => seat.hasBegun || seat.parts.has(seat.source)
  const isBeyond = Effect.suspend(() =>
    isWhole() || seat.hadUnit
      ? Effect.succeed(false)
      : Effect.map(Effect.orDie(Effect.retry(hasPartition, readAgain)), (isThere) => !isThere && !isWhole())
  )
  return Effect.asVoid(Effect.repeat(Effect.delay(isBeyond, patienceMillis), { until: (answer) => answer }))
}
