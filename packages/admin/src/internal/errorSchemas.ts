/**
 * The errors of the connector and of the admin API as answers: `{ _tag, message, ... }` with a status.
 */
import { AuditView, EventBusError, FleetView, ParkedKeys, Replay, ReplayPlan, ReplayRun } from "@eventbus/core"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as AdminError from "../AdminError.ts"
import * as Authorizer from "../Authorizer.ts"

interface ErrorClass<E, Fields extends Schema.Struct.Fields> {
  new (props: never): E
  readonly fields: Fields
}

/** An error class as a schema whose encoded form also has the message, which the class computes. */
const answer = <E extends { readonly _tag: string; readonly message: string }, Fields extends Schema.Struct.Fields>(
  errorClass: ErrorClass<E, Fields>,
  tag: E["_tag"],
  httpApiStatus: number
) => {
  const { _tag: _, ...fields } = errorClass.fields
  const instance = Schema.declare((value): value is E => value instanceof errorClass, { identifier: `${tag}Error` })
  return Schema.Struct({ _tag: Schema.Literal(tag), message: Schema.String, ...fields }).pipe(
    Schema.decodeTo(
      instance,
      SchemaTransformation.transform<E, Record<string, unknown>>({
        decode: ({ message: _message, ...props }) => new errorClass(props as never),
        encode: (error) => {
          const given = Object.keys(fields).filter((key) => Reflect.get(error, key) !== undefined)
          return {
            _tag: tag,
            message: error.message,
            ...Object.fromEntries(given.map((key) => [key, Reflect.get(error, key)]))
          }
        }
      }) as never
    ),
    Schema.annotate({ httpApiStatus, description: tag })
  )
}

export const bindingNotFound = answer(EventBusError.BindingNotFound, "BindingNotFound", 404)
export const ambiguousBinding = answer(EventBusError.AmbiguousBinding, "AmbiguousBinding", 409)
export const bindingAlreadyExists = answer(EventBusError.BindingAlreadyExists, "BindingAlreadyExists", 409)
export const invalidContainerState = answer(EventBusError.InvalidContainerState, "InvalidContainerState", 409)
export const notRunHere = answer(AdminError.NotRunHere, "NotRunHere", 409)
export const recordNotHeld = answer(EventBusError.RecordNotHeld, "RecordNotHeld", 409)
export const keyNotHeld = answer(ParkedKeys.KeyNotHeld, "KeyNotHeld", 409)
export const strandedKeysChanged = answer(ParkedKeys.StrandedKeysChanged, "StrandedKeysChanged", 409)
export const notOrderedPerKey = answer(ParkedKeys.NotOrderedPerKey, "NotOrderedPerKey", 409)
export const configurationValidation = answer(EventBusError.ConfigurationValidation, "ConfigurationValidation", 400)
export const unknownCluster = answer(EventBusError.UnknownCluster, "UnknownCluster", 400)
export const connectorClosed = answer(EventBusError.ConnectorClosed, "ConnectorClosed", 503)
export const unknownTier = answer(Replay.UnknownTier, "UnknownTier", 400)
export const invalidArgument = answer(Replay.InvalidArgument, "InvalidArgument", 400)
export const notPurgeable = answer(Replay.NotPurgeable, "NotPurgeable", 409)
export const replayRunning = answer(Replay.ReplayRunning, "ReplayRunning", 409)
export const replayTakenOver = answer(Replay.ReplayTakenOver, "ReplayTakenOver", 409)
export const foreignDeadLetters = answer(Replay.ForeignDeadLetters, "ForeignDeadLetters", 409)
export const deadLetterNotFound = answer(AdminError.DeadLetterNotFound, "DeadLetterNotFound", 404)
export const rehearsalNotFound = answer(AdminError.RehearsalNotFound, "RehearsalNotFound", 404)
export const rehearsalRunning = answer(AdminError.RehearsalRunning, "RehearsalRunning", 409)
export const unknownPlan = answer(ReplayPlan.UnknownPlan, "UnknownPlan", 404)
export const planExpired = answer(ReplayPlan.PlanExpired, "PlanExpired", 409)
export const planApplied = answer(ReplayPlan.PlanApplied, "PlanApplied", 409)
export const planStale = answer(ReplayPlan.PlanStale, "PlanStale", 409)
export const unknownRun = answer(ReplayRun.UnknownRun, "UnknownRun", 404)
export const runAtWork = answer(ReplayRun.RunAtWork, "RunAtWork", 409)
export const runOver = answer(ReplayRun.RunOver, "RunOver", 409)
export const invalidRequest = answer(AdminError.InvalidRequest, "InvalidRequest", 400)
export const unreadableBody = answer(AdminError.UnreadableBody, "UnreadableBody", 400)
export const fleetNotConfigured = answer(AdminError.FleetNotConfigured, "FleetNotConfigured", 409)
export const unfitTopic = answer(FleetView.UnfitTopic, "UnfitTopic", 409)
export const clusterFailed = answer(AdminError.ClusterFailed, "ClusterFailed", 502)
export const unauthorized = answer(Authorizer.Unauthorized, "Unauthorized", 401)
export const forbidden = answer(Authorizer.Forbidden, "Forbidden", 403)
export const loopbackOnly = answer(AdminError.LoopbackOnly, "LoopbackOnly", 403)
export const readOnly = answer(AdminError.ReadOnly, "ReadOnly", 403)
export const crossSiteRequest = answer(AdminError.CrossSiteRequest, "CrossSiteRequest", 403)
export const auditUnavailable = answer(AuditView.AuditUnavailable, "AuditUnavailable", 503)
export const auditOff = answer(AdminError.AuditOff, "AuditOff", 404)
export const authorizerFailed = answer(AdminError.AuthorizerFailed, "AuthorizerFailed", 503)
export const idempotencyKeyReused = answer(AdminError.IdempotencyKeyReused, "IdempotencyKeyReused", 422)
export const idempotentRequestUnfinished = answer(
  AdminError.IdempotentRequestUnfinished,
  "IdempotentRequestUnfinished",
  409
)
export const idempotentAnswerTooLarge = answer(AdminError.IdempotentAnswerTooLarge, "IdempotentAnswerTooLarge", 409)
export const idempotencyUnavailable = answer(AdminError.IdempotencyUnavailable, "IdempotencyUnavailable", 503)
export const outboxOff = answer(AdminError.OutboxOff, "OutboxOff", 404)
export const outboxFailed = answer(AdminError.OutboxFailed, "OutboxFailed", 502)
export const deadEventNotFound = answer(AdminError.DeadEventNotFound, "DeadEventNotFound", 404)
export const deadEventPlanNotFound = answer(AdminError.DeadEventPlanNotFound, "DeadEventPlanNotFound", 404)
export const deadEventPlanApplied = answer(AdminError.DeadEventPlanApplied, "DeadEventPlanApplied", 409)
export const deadEventPlanStale = answer(AdminError.DeadEventPlanStale, "DeadEventPlanStale", 409)
export const deadEventPlanNotRunning = answer(AdminError.DeadEventPlanNotRunning, "DeadEventPlanNotRunning", 409)
