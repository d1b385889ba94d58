/** A binding of a process, as the fleet commands it and tells of it. The lifecycle's container is one. */
import type * as Effect from "effect/Effect"
import type { InvalidContainerState } from "../../EventBusError.ts"
import type { BindingHolds } from "../../FleetView.ts"
import type { InvalidArgument, UnknownTier } from "../../Replay.ts"
import type { BindingSnapshot } from "../../Snapshot.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

type Command = Effect.Effect<void, InvalidContainerState>
export type TierCommand = (tier: number) => Effect.Effect<void, InvalidContainerState | InvalidArgument | UnknownTier>

export interface FleetMember {
  readonly definition: BindingDefinition<unknown>
  /** The current snapshot. Asks no broker. */
  readonly snapshot: Effect.Effect<BindingSnapshot>
  readonly start: Command
  readonly stop: Command
  readonly pause: Command
  readonly resume: Command
  /** Pauses or resumes one retry tier; the rest of the binding continues. */
  readonly pauseTier: TierCommand
  readonly resumeTier: TierCommand
  /** Applies the holds of the fleet on this binding, and lifts those that are not among them. */
  readonly hold: (holds: BindingHolds) => Effect.Effect<void>
}
