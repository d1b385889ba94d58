/**
 * The routes about the dead events of the program's outbox, as a declaration.
 */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as Answers from "../../DeadEventAnswers.ts"
import * as Errors from "../errorSchemas.ts"
import { IdempotencyKey } from "../idempotency/idempotencyKey.ts"
import { RequiredPermission } from "../middlewares.ts"
import * as Parameters from "../requests/parameters.ts"
import { withBody, withoutBody } from "../requests/requestBody.ts"
import * as PlanBody from "../runs/planBody.ts"
import * as EventPlanBody from "./eventPlanBody.ts"

const ofOutbox = [Errors.outboxOff, Errors.outboxFailed] as const
const ofBody = [Errors.invalidRequest, Errors.unreadableBody] as const
const ofEvent = { params: { eventId: Parameters.eventId } } as const
const ofPlan = { params: { id: Parameters.runId } } as const
const ofReceipt = [...ofOutbox, Errors.invalidRequest, Errors.deadEventPlanNotFound] as const

const decision = {
  ...ofEvent,
  query: { reason: Parameters.reason },
  success: Answers.Done,
  error: [...ofOutbox, Errors.invalidRequest, Errors.deadEventNotFound]
} as const

/** A plan needs the one for its action. */
const worker = ["replay", "discard"] as const

const events = HttpApiGroup.make("outbox").add(
  HttpApiEndpoint.get("outboxPermissions", "/outbox/permissions", {
    success: Answers.Permissions,
    error: Errors.outboxOff
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "The permissions of the caller on the outbox"),
  HttpApiEndpoint.get("outboxGroups", "/outbox/dead/groups", { success: Answers.Groups, error: ofOutbox })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "The dead events of the outbox by the reason of their failure"),
  HttpApiEndpoint.get("outboxList", "/outbox/dead/events", {
    query: {
      group: Schema.optionalKey(Parameters.group),
      eventType: Schema.optionalKey(Parameters.eventType),
      aggregateType: Schema.optionalKey(Parameters.aggregateType),
      aggregateId: Schema.optionalKey(Parameters.aggregateId),
      next: Schema.optionalKey(Parameters.next),
      limit: Schema.optionalKey(Parameters.limit)
    },
    success: Answers.Page,
    error: [...ofOutbox, Errors.invalidRequest]
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "Dead events, the oldest first"),
  HttpApiEndpoint.get("outboxShow", "/outbox/dead/events/:eventId", {
    ...ofEvent,
    success: Answers.Event,
    error: [...ofOutbox, Errors.deadEventNotFound]
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "One dead event; with its payload for callers who may see it"),
  HttpApiEndpoint.post("outboxReplay", "/outbox/dead/events/:eventId/replay", decision)
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, ["replay"])
    .annotate(OpenApi.Summary, "Replay one dead event: the outbox delivers it again"),
  HttpApiEndpoint.post("outboxDiscard", "/outbox/dead/events/:eventId/discard", decision)
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, ["discard"])
    .annotate(OpenApi.Summary, "Delete one dead event, for good")
)

/** The routes, with those about plans. */
export const outbox = events.add(
  HttpApiEndpoint.post("outboxPlan", "/outbox/dead/plans", {
    payload: Schema.Unknown,
    success: Answers.Plan.pipe(HttpApiSchema.status(201)),
    error: [...ofOutbox, ...ofBody]
  })
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, worker)
    .annotate(OpenApi.Summary, "Make a plan over dead events: which there are, and nothing changes")
    .annotate(OpenApi.Transform, withBody(EventPlanBody.jsonSchema)),
  HttpApiEndpoint.get("outboxGetPlan", "/outbox/dead/plans/:id", {
    ...ofPlan,
    success: Answers.Plan,
    error: [Errors.outboxOff, Errors.deadEventPlanNotFound]
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "A plan over dead events that this process has made"),
  HttpApiEndpoint.post("outboxApply", "/outbox/dead/plans/:id/apply", {
    ...ofPlan,
    payload: Schema.Unknown,
    success: Answers.Receipt.pipe(HttpApiSchema.status(202)),
    error: [...ofReceipt, Errors.unreadableBody, Errors.deadEventPlanApplied, Errors.deadEventPlanStale]
  })
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, worker)
    .annotate(OpenApi.Summary, "Apply a plan over dead events: its work begins, and goes on in this process")
    .annotate(OpenApi.Transform, withoutBody),
  HttpApiEndpoint.get("outboxReceipt", "/outbox/dead/runs/:id", {
    ...ofPlan,
    success: Answers.Receipt,
    error: ofReceipt
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "The work on a plan over dead events, and the fate of its events by now"),
  HttpApiEndpoint.post("outboxCancel", "/outbox/dead/runs/:id/cancel", {
    ...ofPlan,
    payload: Schema.Unknown,
    success: Answers.Receipt,
    error: [...ofReceipt, Errors.unreadableBody, Errors.deadEventPlanNotRunning]
  })
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, ["operate", ...worker])
    .annotate(OpenApi.Summary, "End the work on a plan over dead events; what is done stays")
    .annotate(OpenApi.Transform, withBody(PlanBody.reasonSchema))
)
