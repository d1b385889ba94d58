/**
 * The operations of an administrator on the transforms of a binding, its functions that repair dead letters. They are a part of `EventBusAdmin`, and publish nothing.
 *
 * ```ts
 * import { EventBusAdmin } from "@eventbus/admin"
 * import { Effect } from "effect"
 *
 * export const looked = Effect.gen(function* () {
 *   const admin = yield* EventBusAdmin.EventBusAdmin
 *   const { outcome, difference } = yield* admin.transformed("orders", { partition: 3, offset: 17n }, "add-currency", { payload: true })
 *   for (const { sign, text } of difference?.value ?? []) yield* Effect.log(`${sign} ${text}`)
 *   return outcome
 * })
 * ```
 */
import type { BrokerError, DeadLetterSelection, EventBusConnector, Replay, ReplayPlan } from "@eventbus/core"
import type * as Effect from "effect/Effect"
import type { DeadLetterNotFound } from "./AdminError.ts"
import type { RunsError, View } from "./AdminRuns.ts"
import type * as DeadLetterAnswers from "./DeadLetterAnswers.ts"
import type * as RunAnswers from "./RunAnswers.ts"

/** The size of an answer, and how much it may have. */
export interface SampleView extends View {
  /** Most letters, 1 or more; a sample has 20 at most. Default 5. */
  readonly count?: number
}

/** The operations. A name is that of a binding, or `{cluster}:{binding}`. */
export interface AdminTransforms {
  /** The names of the functions. */
  readonly transforms: (name: string) => Effect.Effect<ReadonlyArray<string>, EventBusConnector.BindingLookupError>
  /** Calls a function for one dead letter, and answers the copy that a run with it would publish. `payload`: with the lines in which the two differ. */
  readonly transformed: (
    name: string,
    position: DeadLetterSelection.Position,
    transform: string,
    view?: View
  ) => Effect.Effect<
    DeadLetterAnswers.Transformed,
    EventBusConnector.BindingLookupError | BrokerError.BrokerError | Replay.InvalidArgument | DeadLetterNotFound
  >
  /** The same for the first letters of a plan. Empty, with a note, for a plan without a transform, whose copies have the bytes of their letters. */
  readonly planSample: (
    name: string,
    id: string,
    view?: SampleView
  ) => Effect.Effect<RunAnswers.PlanSample, RunsError | ReplayPlan.UnknownPlan>
}
