/**
 * The operations of an administrator on records that hold their partition, which are a part of `EventBusAdmin`.
 *
 * ```ts
 * import { EventBusAdmin } from "@eventbus/admin"
 * import { Effect } from "effect"
 *
 * export const passed = Effect.gen(function* () {
 *   const admin = yield* EventBusAdmin.EventBusAdmin
 *   const { held } = yield* admin.held("orders")
 *   if (held.length > 0) yield* admin.deadLetter("orders", { partition: 3, offset: 1_204n }, "INC-1204: the order is broken")
 * })
 * ```
 */
import type { DeadLetterSelection, EventBusConnector, EventBusError, Replay } from "@eventbus/core"
import type * as Effect from "effect/Effect"
import type { NotRunHere } from "./AdminError.ts"
import type { View } from "./AdminRuns.ts"
import type * as Answers from "./Answers.ts"
import type * as HeldAnswers from "./HeldAnswers.ts"

/** The place of a held record. */
export interface HeldPosition extends DeadLetterSelection.Position {
  /** Its topic: a retry tier has one of its own. Default: the main topic of the binding. */
  readonly topic?: string
}

/**
 * A decision about a held record, with its reason. Answers the binding after it. Fails with `RecordNotHeld`, and does nothing, when exactly this record is not held in this
 * process: somebody has decided about it, its partition has moved on, or another process owns it. Fails with `NotRunHere` in a process that runs no bindings.
 */
export type HeldCommand = (
  name: string,
  record: HeldPosition,
  reason: string
) => Effect.Effect<
  Answers.BindingSummary,
  EventBusConnector.BindingLookupError | EventBusError.RecordNotHeld | Replay.InvalidArgument | NotRunHere
>

/** The operations. A name is that of a binding, or `{cluster}:{binding}`. */
export interface AdminHeld {
  /** Everything that waits for a decision in this process. Asks no broker. */
  readonly held: (name: string, view?: View) => Effect.Effect<HeldAnswers.AllHeld, EventBusConnector.BindingLookupError>
  /** Drops a held record, or passes a batch that cannot be read. */
  readonly skip: HeldCommand
  /** Sends a held record to the dead letter topic, with dlt reason `MANUAL`. */
  readonly deadLetter: HeldCommand
}
