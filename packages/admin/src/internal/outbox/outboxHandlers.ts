/**
 * The handlers of the routes about dead events. Which permission a request about a plan needs depends on its action.
 */
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Predicate from "effect/Predicate"
import type { AdminApi } from "../../AdminApi.ts"
import { Forbidden, type Permission } from "../../Authorizer.ts"
import { EventBusAdmin } from "../../EventBusAdmin.ts"
import { Caller, payloadView } from "../middlewares.ts"
import { isReason } from "../requests/parameters.ts"
import { bodyOf } from "../requests/requests.ts"
import * as PlanBody from "../runs/planBody.ts"
import { targetOf } from "./deadEventAnswers.ts"
import * as EventPlanBody from "./eventPlanBody.ts"

type Outbox = EventBusAdmin["Service"]["outbox"]

const demand = (permission: Permission) => Effect.flatMap(Caller, (caller) => caller.demand(permission))

const tellEvent = (event: string) => Effect.flatMap(Caller, ({ tell }) => tell({ target: { event } }))

/** The id of an aggregate is a key: callers who may not see it may not find it out by asking for it. */
const listed = Effect.fnUntraced(function* (
  outbox: Outbox,
  { next, ...query }: Omit<NonNullable<Parameters<Outbox["list"]>[0]>, "after" | "payload"> & { readonly next?: string }
) {
  const view = yield* payloadView
  if (query.aggregateId !== undefined && !view.payload) return yield* new Forbidden({ permission: "view-payload" })
  return yield* outbox.list({ ...query, ...view, ...(next === undefined ? {} : { after: next }) })
})

/** The audit log has the action and the reason of every plan that somebody asks for, and the selection of one that is made. */
const planned = Effect.fnUntraced(function* (outbox: Outbox, request: HttpServerRequest.HttpServerRequest) {
  const body = yield* bodyOf(request, EventPlanBody.readPlan)
  const { name: by, tell } = yield* Caller
  const { action, reason } = body
  if (isReason(reason)) yield* tell({ reason })
  // The outbox refuses every other action.
  if (Predicate.isString(action) && (action === "replay" || action === "discard")) {
    yield* tell({ target: { action } })
    yield* demand(action)
  }
  return yield* Effect.tap(outbox.plan(body, by, yield* payloadView), ({ id, rate, canary, stopAbove }) =>
    tell({ run: id, target: { ...targetOf(body.select), rate, canary, stopAbove } })
  )
})

export const layer = (api: AdminApi) =>
  HttpApiBuilder.group(
    api,
    "outbox",
    Effect.fnUntraced(function* (handlers) {
      const { outbox } = yield* EventBusAdmin
      const demandOf = (id: string) => Effect.flatMap(outbox.getPlan(id), ({ action }) => demand(action))
      return handlers
        .handleRaw("outboxPlan", ({ request }) => planned(outbox, request))
        .handleRaw("outboxApply", ({ params: { id }, request }) =>
          Effect.gen(function* () {
            yield* bodyOf(request, PlanBody.readNothing, "{}")
            yield* demandOf(id)
            return yield* outbox.apply(id)
          })
        )
        .handleRaw("outboxCancel", ({ params: { id }, request }) =>
          Effect.gen(function* () {
            const reason = yield* bodyOf(request, PlanBody.readReason)
            yield* (yield* Caller).tell({ reason })
            yield* Effect.catchTag(demand("operate"), "Forbidden", (forbidden) =>
              Effect.catchTag(demandOf(id), "Forbidden", () => Effect.fail(forbidden))
            )
            return yield* outbox.cancel(id, reason)
          })
        )
        .handleAll({
          outboxPermissions: () =>
            Effect.gen(function* () {
              yield* outbox.available
              const { name: caller, permissions } = yield* Caller
              return { caller, permissions: yield* permissions }
            }),
          outboxGroups: () => Effect.flatMap(payloadView, outbox.groups),
          outboxList: ({ query }) => listed(outbox, query),
          outboxShow: ({ params: { eventId } }) =>
            Effect.gen(function* () {
              yield* tellEvent(eventId)
              return yield* outbox.show(eventId, yield* payloadView)
            }),
          outboxReplay: ({ params: { eventId }, query: { reason } }) =>
            Effect.andThen(tellEvent(eventId), outbox.replay(eventId, reason)),
          outboxDiscard: ({ params: { eventId }, query: { reason } }) =>
            Effect.andThen(tellEvent(eventId), outbox.discard(eventId, reason)),
          outboxGetPlan: ({ params: { id } }) => Effect.flatMap(payloadView, (view) => outbox.getPlan(id, view)),
          outboxReceipt: ({ params: { id } }) => outbox.receipt(id)
        })
    })
  )
