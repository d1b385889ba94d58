/**
 * The holds of the fleet on a binding, as pauses of its partitions with reason `fleet`. They outlive stops and starts of the binding, and only the fleet lifts them.
 */
import * as Effect from "effect/Effect"
import type { BindingHolds, Hold } from "../../FleetView.ts"
import { isoText } from "../base/isoText.ts"
import type { Consumer } from "../group/consumer.ts"
import type { Partition } from "../partition/partition.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

export interface FleetPauseOptions {
  readonly definition: BindingDefinition<unknown>
  /** Runs an effect for each consumer that has a session, all at once. */
  readonly onConsumers: (each: (consumer: Consumer) => Effect.Effect<void>) => Effect.Effect<void>
  /** Publishes the state of the binding if it has changed. */
  readonly announce: Effect.Effect<void>
}

export interface FleetPause {
  /** Applies these holds, and lifts those that are not among them. */
  readonly hold: (holds: BindingHolds) => Effect.Effect<void>
  /** Whether an operator holds the binding. */
  readonly holdsBinding: () => boolean
  /** Whether the process has not read the holds yet. Then every partition is paused, and no operator has done that. */
  readonly isReading: () => boolean
  /** Whether a hold pauses this partition. */
  readonly includes: (partition: Partition) => boolean
  /** The hold on the whole binding first, then those on tiers. */
  readonly list: () => ReadonlyArray<Hold>
  /** How the hold on the binding, or on a tier of it, is lifted, for the error of a command that cannot; undefined without a hold. */
  readonly remedy: (tier?: number) => string | undefined
}

export const make = ({ definition: { tiers }, onConsumers, announce }: FleetPauseOptions): FleetPause => {
  let holds: BindingHolds = { binding: undefined, isReading: false, tiers: new Map() }

  const includes = ({ tier }: Partition): boolean =>
    holds.binding !== undefined ||
    (tier !== undefined &&
      Array.from(holds.tiers.keys()).some((n) => n <= tiers.count && tiers.topicOf(n).first === tier.first))

  return {
    includes,
    hold: (next) =>
      Effect.suspend(() => {
        holds = next
        const onEach = (consumer: Consumer) =>
          Effect.andThen(
            consumer.pause("fleet", includes),
            consumer.resume("fleet", (partition) => !includes(partition))
          )
        return Effect.andThen(onConsumers(onEach), announce)
      }),
    holdsBinding: () => holds.binding !== undefined && !holds.isReading,
    isReading: () => holds.isReading,
    list: () => [...(holds.binding === undefined || holds.isReading ? [] : [holds.binding]), ...holds.tiers.values()],
    remedy: (tier) => {
      const hold = tier === undefined ? holds.binding : holds.tiers.get(tier)
      return hold === undefined ? undefined : remedyOf(hold)
    }
  }
}

const remedyOf = ({ by, reason, untilMillis, condition }: Hold): string => {
  if (condition !== undefined) return `${by} holds it: ${reason}. It goes on when the process has read that topic`
  const until = untilMillis === undefined ? "" : ` or at ${isoText(untilMillis)}`
  return `${by} holds it in the whole fleet: ${reason}. It goes on when an operator of the fleet releases the hold (Fleet.release)${until}`
}
