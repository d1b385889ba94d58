/**
 * The operations on dead events, over the outbox of the program. Without one each of them says so.
 */
import { LogLine } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { DeadEventNotFound, DeadEventPlanStale, InvalidRequest, OutboxFailed, OutboxOff } from "../../AdminError.ts"
import type { AdminOutbox } from "../../AdminOutbox.ts"
import type * as DeadEventAnswers from "../../DeadEventAnswers.ts"
import {
  type Failed,
  OutboxPort,
  type Plan,
  type PlanStale,
  type Receipt,
  type Refused,
  type StoreFailed
} from "../../OutboxPort.ts"
import { given, isoOf } from "../answersOf.ts"
import type { Shown } from "../masking.ts"
import { longestQuote } from "../requests/selectionBody.ts"
import * as Answers from "./deadEventAnswers.ts"
import * as KeptPlans from "./keptPlans.ts"
import * as PlanWork from "./planWork.ts"

/** Closing the scope ends the work on plans. */
export const make: (shown: Shown) => Effect.Effect<AdminOutbox, never, Scope.Scope> = Effect.fnUntraced(function* (
  shown: Shown
) {
  const port = Option.getOrUndefined(yield* Effect.serviceOption(OutboxPort))
  return port === undefined ? off : over(port, shown, yield* Effect.scope)
})

const refused = () => Effect.fail(new OutboxOff())

const off: AdminOutbox = {
  available: refused(),
  ...{ groups: refused, list: refused, show: refused, replay: refused, discard: refused },
  ...{ plan: refused, getPlan: refused, apply: refused, receipt: refused, cancel: refused }
}

const over = (port: OutboxPort["Service"], shown: Shown, scope: Scope.Scope): AdminOutbox => {
  const plans = KeptPlans.make()
  /** The state is that from before the fates are read: a receipt that is closed has the last of them. */
  const receiptOf = (kept: KeptPlans.KeptPlan) =>
    Effect.suspend(() => {
      const before = { ...kept }
      return Effect.map(onOutbox(port.receipt(kept.plan)), (receipt) => withWork(before, receipt))
    })
  return {
    available: Effect.void,
    groups: ({ payload = false } = {}) =>
      Effect.map(onOutbox(port.groups), (report) => Answers.groupsOf(report, shown(payload))),
    list: ({ payload = false, ...query } = {}) =>
      Effect.map(onOutbox(port.list(query)), (page) => Answers.pageOf(page, shown(payload))),
    show: Effect.fnUntraced(function* (eventId, { payload = false } = {}) {
      const found = yield* onOutbox(port.show(eventId))
      return found === undefined ? yield* new DeadEventNotFound({ eventId }) : Answers.eventOf(found, shown(payload))
    }),
    plan: Effect.fnUntraced(function* (request, by, { payload = false } = {}) {
      const kept = yield* plans.keep(yield* onOutbox(port.plan(request)), by)
      return Answers.planOf(kept.plan, kept, shown(payload))
    }),
    getPlan: (id, { payload = false } = {}) =>
      Effect.map(plans.find(id), (kept) => Answers.planOf(kept.plan, kept, shown(payload))),
    apply: Effect.fnUntraced(function* (id) {
      const kept = yield* plans.find(id)
      yield* PlanWork.begin(kept, scope, (options) => onOutbox(port.apply(kept.plan, options)))
      return yield* receiptOf(kept)
    }),
    receipt: (id) => Effect.flatMap(plans.find(id), receiptOf),
    cancel: Effect.fnUntraced(function* (id, reason) {
      const kept = yield* plans.find(id)
      yield* PlanWork.cancel(kept, reason)
      return yield* receiptOf(kept)
    }),
    replay: Effect.fnUntraced(function* (eventId, reason) {
      const isReplayed = yield* onOutbox(port.replay(eventId, reason))
      return isReplayed ? { eventId, action: "replay" } : yield* new DeadEventNotFound({ eventId })
    }),
    discard: Effect.fnUntraced(function* (eventId, reason) {
      if ((yield* onOutbox(port.show(eventId))) === undefined) return yield* new DeadEventNotFound({ eventId })
      const plan = yield* onOutbox(port.plan({ action: "discard", select: { eventIds: [eventId] }, reason }))
      const isDiscarded = plan.count > 0 && (yield* discarded(port, plan))
      return isDiscarded ? { eventId, action: "discard" } : yield* new DeadEventNotFound({ eventId })
    })
  }
}

/** Whether this call has deleted the events of a plan. Of a stale plan it deletes none. */
const discarded = (port: OutboxPort["Service"], plan: Plan) =>
  Effect.flatMap(Deferred.make<void>(), (begun) => onOutbox(port.apply(plan, { begun }))).pipe(
    Effect.map(({ dealtWith }) => dealtWith === plan.count),
    Effect.catchTag("DeadEventPlanStale", () => Effect.succeed(false))
  )

const withWork = ({ plan, by, work }: KeptPlans.KeptPlan, receipt: Receipt): DeadEventAnswers.Receipt => {
  const { id, action, reason, count } = plan
  const { delivered, gone, deadAgain, waiting, retrying, untouched, closed } = receipt
  const { state = "planned", stateReason, startedMillis, endedMillis, dealtWith } = work ?? {}
  return {
    ...{ id, action, reason, by, count, state },
    ...given("stateReason", stateReason),
    ...given("started", startedMillis === undefined ? undefined : isoOf(startedMillis)),
    ...given("ended", endedMillis === undefined ? undefined : isoOf(endedMillis)),
    ...given("dealtWith", dealtWith),
    ...{ delivered, gone, deadAgain, waiting, retrying, untouched },
    closed: closed && state !== "running"
  }
}

/** A value that is refused is quoted up to the length that other issues have. */
const quoteOf = (found: string): string =>
  // With its two quotes.
  found.length <= longestQuote + 2 ? found : `a value of ${found.length} characters`

/** The answer for each failure of the port. */
type Answered<E> =
  | (E extends Refused ? InvalidRequest : never)
  | (E extends StoreFailed ? OutboxFailed : never)
  | (E extends PlanStale ? DeadEventPlanStale : never)

/** No answer quotes an error of the database: a driver's error may quote a row. The log has it. */
const onOutbox = <A, E extends Failed>(effect: Effect.Effect<A, E>): Effect.Effect<A, Answered<E>> =>
  Effect.catch(effect, (error) => answerOf(error) as Effect.Effect<never, Answered<E>>)

const answerOf = (error: Failed): Effect.Effect<never, InvalidRequest | OutboxFailed | DeadEventPlanStale> => {
  switch (error._tag) {
    case "InvalidOutboxConfig": {
      const issues = error.issues.map(({ path, found, allowed }) => ({ path, found: quoteOf(found), allowed }))
      return Effect.fail(new InvalidRequest({ issues }))
    }
    case "DeadEventPlanStale": {
      const { id, count, changed } = error
      return Effect.fail(new DeadEventPlanStale({ id, count, changed }))
    }
    default: {
      const { operation } = error
      return Effect.andThen(
        LogLine.error(`The outbox failed to ${operation} for the admin API`, Cause.fail(error)),
        Effect.fail(new OutboxFailed({ operation }))
      )
    }
  }
}
