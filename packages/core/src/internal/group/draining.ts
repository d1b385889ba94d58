/** Drains partitions that are revoked, or that end with their consumer: what runs ends, copies are acknowledged, and what is finished is committed. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import { type ConsumerContext, report } from "../delivery/consumerContext.ts"
import type { Unit } from "../order/unit.ts"
import * as Running from "./runningPartitions.ts"
import type * as StopLimits from "./stopLimits.ts"

type DrainLimits = Pick<StopLimits.StopLimits, "drain" | "commit">

/** From now on no record starts, and the partition is not restarted. */
export const startDraining = (entry: Running.RunningPartition): void => {
  entry.isDraining = true
  entry.partition.stop()
}

export const drainEach = <R>(
  partitions: Running.RunningPartitions<R>,
  entries: ReadonlyArray<Running.RunningPartition>,
  limits: DrainLimits
): Effect.Effect<void> => {
  const { context, units } = partitions.options
  const whole = Array.from(Map.groupBy(entries, ({ partition }) => units?.of(partition)))
  return Effect.forEach(
    whole,
    ([unit, parts]) =>
      unit === undefined
        ? Effect.forEach(parts, (entry) => drain(context, entry, limits), { concurrency: "unbounded", discard: true })
        : drainUnit(context, unit, parts, limits),
    { concurrency: "unbounded", discard: true }
  )
}

/** The parts of a unit end together. Its locks move to what is done before the last commits. */
const drainUnit = Effect.fnUntraced(function* (
  context: ConsumerContext<unknown>,
  unit: Unit,
  entries: ReadonlyArray<Running.RunningPartition>,
  limits: DrainLimits
) {
  yield* Effect.forEach(entries, (entry) => untilEnded(context, entry, limits), {
    concurrency: "unbounded",
    discard: true
  })
  yield* awaitAtMost(unit.giveUp, limits.drain())
  for (const { partition } of entries) partition.endCopies()
  yield* Effect.forEach(
    entries,
    ({ partition }) => awaitAtMost(context.committer.commitLast(partition), limits.commit()),
    { concurrency: "unbounded", discard: true }
  )
})

/** The other parts of the units that these partitions are parts of. */
export const companionsOf = <R>(
  partitions: Running.RunningPartitions<R>,
  entries: ReadonlyArray<Running.RunningPartition>
): ReadonlyArray<Running.RunningPartition> => {
  const { units } = partitions.options
  if (units === undefined) return []
  const given = new Set(entries)
  const parts = new Set(entries.flatMap(({ partition }) => (units.of(partition) ? units.partsOf(partition) : [])))
  return Running.list(partitions).filter((entry) => parts.has(entry.partition) && !given.has(entry))
}

/** Waits until running handlers have ended and copies are acknowledged, then commits what is finished. */
const drain = Effect.fnUntraced(function* (
  context: ConsumerContext<unknown>,
  entry: Running.RunningPartition,
  limits: DrainLimits
) {
  yield* untilEnded(context, entry, limits)
  yield* awaitAtMost(context.committer.commitLast(entry.partition), limits.commit())
})

/** Waits until running handlers have ended and copies are acknowledged. */
const untilEnded = Effect.fnUntraced(function* (
  context: ConsumerContext<unknown>,
  entry: Running.RunningPartition,
  limits: DrainLimits
) {
  const { partition, fiber } = entry
  startDraining(entry)
  context.committer.release()
  const ended = yield* awaitAtMost(Fiber.await(fiber), limits.drain())
  if (Option.isSome(ended)) return
  // A copy that was acknowledged behind the last commit would stand beside its record, which the next owner handles again.
  partition.endCopies()
  report(context, partition, { _tag: "DrainTimedOut", unfinished: partition.tracker.inFlight() })
})
