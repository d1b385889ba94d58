/**
 * The operations of an administrator on the fleet that the program belongs to, which are a part of `EventBusAdmin`. The program has one when `Fleet.layer` is provided to its bindings
 * and to `EventBusAdmin.layer`.
 *
 * ```ts
 * import { EventBusAdmin } from "@eventbus/admin"
 * import { Effect } from "effect"
 *
 * export const held = Effect.gen(function* () {
 *   const admin = yield* EventBusAdmin.EventBusAdmin
 *   const { missing } = yield* admin.commandFleet("orders", "pause", { reason: "the bank is down", by: "ann" })
 *   yield* Effect.log(missing.length === 0 ? "every process holds" : "some process has not answered", missing)
 * })
 * ```
 */
import type { BrokerError, EventBusConnector, FleetView, Replay } from "@eventbus/core"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { FleetNotConfigured } from "./AdminError.ts"
import type * as FleetAnswers from "./FleetAnswers.ts"

/** A command to all processes. */
export interface FleetCommand {
  /** Why. Not empty. */
  readonly reason: string
  /** The one who commands, as text. Not empty. */
  readonly by: string
  /** The retry tier, from 1. For `pause` and `resume` only. Default: the whole binding. */
  readonly tier?: number
  /** When the hold of a `pause` ends by itself, epoch milliseconds by the cluster's clock. Default: it lasts until a `resume`. */
  readonly until?: number
  /** How long to wait for the answers of all live processes. 0 to 2^31 - 1 ms. Default 5 seconds. */
  readonly wait?: Duration.Input
}

/** The failures of a command to all processes. */
export type FleetError =
  | EventBusConnector.BindingLookupError
  | FleetNotConfigured
  | FleetView.UnfitTopic
  | BrokerError.BrokerError
  | Replay.InvalidArgument
  | Replay.UnknownTier

/** The operations. */
export interface AdminFleet {
  /** Whether the program belongs to a fleet. Without one the other operations fail with `FleetNotConfigured`. */
  readonly hasFleet: boolean
  /** All processes with their versions and bindings, the holds, and the last releases. */
  readonly fleet: Effect.Effect<FleetAnswers.View, FleetNotConfigured | BrokerError.BrokerError>
  /**
   * Commands all processes about a binding of this one. `pause` holds it, also in processes that start later; `resume` releases the hold; `start` and `stop` are for the
   * processes that live now.
   */
  readonly commandFleet: (
    name: string,
    verb: FleetView.Verb,
    command: FleetCommand
  ) => Effect.Effect<FleetAnswers.Commanded, FleetError>
}
