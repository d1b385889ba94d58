/**
 * The routes about plans over dead letters and their runs, as a declaration.
 */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as RunAnswers from "../../RunAnswers.ts"
import * as Errors from "../errorSchemas.ts"
import { IdempotencyKey } from "../idempotency/idempotencyKey.ts"
import { RequiredPermission } from "../middlewares.ts"
import * as Parameters from "../requests/parameters.ts"
import { withBody, withoutBody } from "../requests/requestBody.ts"
import * as PlanBody from "./planBody.ts"

const ofBinding = { name: Parameters.name }
/** A plan of a binding of several topics is one of a topic. The id of a plan or run finds it. */
const ofTopic = { topic: Schema.optionalKey(Parameters.topic) }
const params = { ...ofBinding, id: Parameters.runId }
const lookup = [Errors.bindingNotFound, Errors.ambiguousBinding, Errors.clusterFailed] as const
const body = [Errors.invalidArgument, Errors.invalidRequest, Errors.unreadableBody] as const
const ofRun = [...lookup, Errors.invalidArgument, Errors.unknownRun] as const
const ofCommand = [...lookup, ...body, Errors.unknownRun, Errors.runOver] as const
const ofWork = [Errors.replayRunning, Errors.replayTakenOver, Errors.planStale] as const
const command = { params, payload: Schema.Unknown, success: RunAnswers.Receipt, error: ofCommand }
const begun = RunAnswers.Receipt.pipe(HttpApiSchema.status(202))

/** A plan needs the one for its action. */
const worker = ["replay", "discard"] as const

export const runs = HttpApiGroup.make("runs").add(
  HttpApiEndpoint.post("makePlan", "/bindings/:name/dlt/plans", {
    params: ofBinding,
    query: ofTopic,
    payload: Schema.Unknown,
    success: RunAnswers.Plan.pipe(HttpApiSchema.status(201)),
    error: [...lookup, ...body, Errors.unknownTier]
  })
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, worker)
    .annotate(OpenApi.Summary, "Make a plan: what a run would do with dead letters, before it does it")
    .annotate(OpenApi.Transform, withBody(PlanBody.jsonSchema)),
  HttpApiEndpoint.get("plan", "/bindings/:name/dlt/plans/:id", {
    params,
    success: RunAnswers.Plan,
    error: [...lookup, Errors.invalidArgument, Errors.unknownPlan]
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "A plan"),
  HttpApiEndpoint.get("planSample", "/bindings/:name/dlt/plans/:id/sample", {
    params,
    query: { count: Schema.optionalKey(Parameters.count), ...ofTopic },
    success: RunAnswers.PlanSample,
    error: [...lookup, Errors.invalidArgument, Errors.invalidRequest, Errors.unknownPlan]
  })
    .annotate(RequiredPermission, ["transform"])
    .annotate(OpenApi.Summary, "What the transform of a plan makes of its first letters; nothing is published"),
  HttpApiEndpoint.post("applyPlan", "/bindings/:name/dlt/plans/:id/apply", {
    params,
    payload: Schema.Unknown,
    success: begun,
    error: [...lookup, ...body, ...ofWork, Errors.unknownPlan, Errors.planExpired, Errors.planApplied]
  })
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, worker)
    .annotate(OpenApi.Summary, "Apply a plan: its run begins, and goes on in this process")
    .annotate(OpenApi.Transform, withoutBody),
  HttpApiEndpoint.get("runs", "/bindings/:name/dlt/runs", {
    params: ofBinding,
    success: RunAnswers.Runs,
    error: [...lookup, Errors.invalidArgument]
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "All runs, the newest first"),
  HttpApiEndpoint.get("receipt", "/bindings/:name/dlt/runs/:id", { params, success: RunAnswers.Receipt, error: ofRun })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "A run, and the outcome of its copies by now"),
  HttpApiEndpoint.post("pauseRun", "/bindings/:name/dlt/runs/:id/pause", command)
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, ["operate", ...worker])
    .annotate(OpenApi.Summary, "Pause a run, whichever process works on it")
    .annotate(OpenApi.Transform, withBody(PlanBody.reasonSchema)),
  HttpApiEndpoint.post("cancelRun", "/bindings/:name/dlt/runs/:id/cancel", command)
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, ["operate", ...worker])
    .annotate(OpenApi.Summary, "End a run for good; copies that are published stay")
    .annotate(OpenApi.Transform, withBody(PlanBody.reasonSchema)),
  HttpApiEndpoint.post("resumeRun", "/bindings/:name/dlt/runs/:id/resume", {
    params,
    payload: Schema.Unknown,
    success: begun,
    error: [...ofCommand, ...ofWork, Errors.runAtWork]
  })
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, worker)
    .annotate(OpenApi.Summary, "Go on with a run, in this process")
    .annotate(OpenApi.Transform, withoutBody),
  HttpApiEndpoint.post("setRunRate", "/bindings/:name/dlt/runs/:id/rate", command)
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, worker)
    .annotate(OpenApi.Summary, "Set the rate of a run: most copies a second")
    .annotate(OpenApi.Transform, withBody(PlanBody.rateSchema))
)
