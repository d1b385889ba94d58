/**
 * The operations of an administrator on parked keys (`orderingMode: "PER_KEY"`), which are a part of `EventBusAdmin`.
 *
 * ```ts
 * import { EventBusAdmin } from "@eventbus/admin"
 * import { Effect } from "effect"
 *
 * export const retried = Effect.gen(function* () {
 *   const admin = yield* EventBusAdmin.EventBusAdmin
 *   const { counts } = yield* admin.parked("orders")
 *   if (counts.held > 0) yield* admin.retryParked("orders", { partition: 3, offset: 1_204n }, "INC-1204: the account is there now")
 * })
 * ```
 */
import type { BrokerError, EventBusConnector, ParkedKeys, Replay } from "@eventbus/core"
import type * as Effect from "effect/Effect"
import type { View } from "./AdminRuns.ts"
import type * as ParkedAnswers from "./ParkedAnswers.ts"

/** Which page of the parked keys. */
export interface ParkedQuery extends View {
  /** Most keys of the page, 1 to 500. Default 100. */
  readonly limit?: number
  /** `next` of the page before. Default: the first page. */
  readonly page?: string
}

type LookupError = EventBusConnector.BindingLookupError | ParkedKeys.NotOrderedPerKey

/**
 * A decision about the key that exactly this record holds, with its reason. Fails with `KeyNotHeld`, and does nothing, when it holds none: somebody has decided about it, or the key
 * has gone on.
 */
export type ParkedCommand = (
  name: string,
  record: ParkedKeys.HeldPosition,
  reason: string,
  view?: View
) => Effect.Effect<
  ParkedAnswers.ParkedDecision,
  LookupError | BrokerError.BrokerError | ParkedKeys.KeyNotHeld | Replay.InvalidArgument
>

/** The operations. A name is that of a binding, or `{cluster}:{binding}`. */
export interface AdminParked {
  /** The parked keys of the group, whichever process owns their partitions. Reads what the group has not committed of its retry topics. */
  readonly parked: (
    name: string,
    query?: ParkedQuery
  ) => Effect.Effect<ParkedAnswers.AllParked, LookupError | BrokerError.BrokerError | Replay.InvalidArgument>
  /** The held record is handled again, and what follows it, in order. */
  readonly retryParked: ParkedCommand
  /** The held record is dead-lettered for the reason that it has, and its key goes on behind it. */
  readonly skipParked: ParkedCommand
  /**
   * Accepts the loss of order of all stranded keys of the binding. Fails with `StrandedKeysChanged`, and does nothing, when their number is not `expected`.
   */
  readonly acceptParkedLoss: (
    name: string,
    expected: number,
    reason: string
  ) => Effect.Effect<
    ParkedAnswers.AcceptedLoss,
    LookupError | BrokerError.BrokerError | ParkedKeys.StrandedKeysChanged | Replay.InvalidArgument
  >
}
