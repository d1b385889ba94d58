/**
 * The operations of an administrator on the dead events of the program's outbox, which are a part of `EventBusAdmin`.
 *
 * ```ts
 * import { EventBusAdmin } from "@eventbus/admin"
 * import { Effect } from "effect"
 *
 * export const replayed = Effect.gen(function* () {
 *   const { outbox } = yield* EventBusAdmin.EventBusAdmin
 *   const { id, count } = yield* outbox.plan({ action: "replay", select: { all: true }, reason: "the gateway is back" }, "on-call")
 *   if (count > 0) yield* outbox.apply(id)
 *   return yield* outbox.receipt(id)
 * })
 * ```
 */
import type * as Effect from "effect/Effect"
import type {
  DeadEventNotFound,
  DeadEventPlanApplied,
  DeadEventPlanNotFound,
  DeadEventPlanNotRunning,
  DeadEventPlanStale,
  InvalidRequest,
  OutboxFailed,
  OutboxOff
} from "./AdminError.ts"
import type { View } from "./AdminRuns.ts"
import type * as Answers from "./DeadEventAnswers.ts"
import type { ListQuery, PlanRequest } from "./OutboxPort.ts"

/** The failures that every operation has: the program has no outbox, or its database fails. */
export type OutboxError = OutboxOff | OutboxFailed

/** A decision about one dead event, with its reason. */
export type DeadEventCommand = (
  eventId: string,
  reason: string
) => Effect.Effect<Answers.Done, OutboxError | InvalidRequest | DeadEventNotFound>

/** The operations. This process keeps a plan for 24 hours, and 100 plans at most: the oldest that nobody works on goes first. */
export interface AdminOutbox {
  /** Fails where the program has no outbox. */
  readonly available: Effect.Effect<void, OutboxOff>
  /** All dead events by the reason of their failure. Reads every dead row once, without payloads. */
  readonly groups: (view?: View) => Effect.Effect<Answers.Groups, OutboxError>
  /** A page of dead events, the oldest first. */
  readonly list: (query?: ListQuery & View) => Effect.Effect<Answers.Page, OutboxError | InvalidRequest>
  /** One dead event. */
  readonly show: (eventId: string, view?: View) => Effect.Effect<Answers.Event, OutboxError | DeadEventNotFound>
  /** Makes a plan, and keeps it in this process. Nothing else changes. `by`: the one who asks for it. */
  readonly plan: (
    request: PlanRequest,
    by: string,
    view?: View
  ) => Effect.Effect<Answers.Plan, OutboxError | InvalidRequest>
  /** A plan of this process. */
  readonly getPlan: (id: string, view?: View) => Effect.Effect<Answers.Plan, OutboxOff | DeadEventPlanNotFound>
  /** Applies a plan: answers once its work has begun. The work goes on in this process, until the service closes at the latest; the rest then needs a new plan. */
  readonly apply: (
    id: string
  ) => Effect.Effect<
    Answers.Receipt,
    OutboxError | InvalidRequest | DeadEventPlanNotFound | DeadEventPlanApplied | DeadEventPlanStale
  >
  /** The work on a plan, and the fate of its events by now. */
  readonly receipt: (id: string) => Effect.Effect<Answers.Receipt, OutboxError | InvalidRequest | DeadEventPlanNotFound>
  /** Ends the work on a plan, and answers after its end. Events that are replayed or deleted stay so. */
  readonly cancel: (
    id: string,
    reason: string
  ) => Effect.Effect<Answers.Receipt, OutboxError | InvalidRequest | DeadEventPlanNotFound | DeadEventPlanNotRunning>
  /** Replays one dead event at once. */
  readonly replay: DeadEventCommand
  /** Deletes one dead event for good. */
  readonly discard: DeadEventCommand
}
