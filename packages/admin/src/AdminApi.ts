/**
 * The admin API as a declaration: its routes with their parameters, answers and errors. Effect's `HttpApiClient` makes a typed client of it.
 */
import { JsonSchema } from "@eventbus/config"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as Answers from "./Answers.ts"
import * as AuditAnswers from "./AuditAnswers.ts"
import * as DeadLetterAnswers from "./DeadLetterAnswers.ts"
import * as FleetAnswers from "./FleetAnswers.ts"
import * as Errors from "./internal/errorSchemas.ts"
import * as CommandBody from "./internal/fleet/commandBody.ts"
import { held } from "./internal/held/heldEndpoints.ts"
import * as Idempotency from "./internal/idempotency/idempotencyKey.ts"
import { Guard, RefusedParameters, RequiredPermission } from "./internal/middlewares.ts"
import { outbox } from "./internal/outbox/outboxEndpoints.ts"
import { parked } from "./internal/parked/parkedEndpoints.ts"
import * as Parameters from "./internal/requests/parameters.ts"
import { withBody } from "./internal/requests/requestBody.ts"
import * as SelectionBody from "./internal/requests/selectionBody.ts"
import { runs } from "./internal/runs/runEndpoints.ts"
import { version } from "./internal/version.ts"

const params = { name: Parameters.name }
const lookup = [Errors.bindingNotFound, Errors.ambiguousBinding] as const
const ofCommand = [...lookup, Errors.invalidContainerState, Errors.notRunHere] as const
/** The log says why, where the caller does. */
const reason = { reason: Schema.optionalKey(Parameters.reason) }
const ofFleet = [Errors.fleetNotConfigured, Errors.unfitTopic, Errors.clusterFailed] as const
/** A command on a binding answers with its state; one to the whole fleet with who has answered. */
const command = {
  ...{ params, query: reason, payload: Schema.Unknown },
  success: [Answers.BindingSummary, FleetAnswers.Commanded.pipe(HttpApiSchema.status(202))],
  error: [
    ...ofCommand,
    ...ofFleet,
    Errors.invalidRequest,
    Errors.invalidArgument,
    Errors.unreadableBody,
    Errors.unknownTier
  ]
} as const
/** One that may be about a single retry tier. */
const tierCommand = { ...command, query: { ...reason, tier: Schema.optionalKey(Parameters.tier) } } as const
/** A command on dead letters of a binding of several topics is one of a topic; lists without it are of all. */
const ofTopic = { topic: Schema.optionalKey(Parameters.topic) }
const ofLetters = [...lookup, Errors.invalidArgument, Errors.clusterFailed] as const

/** The binding schema of configuration files, and the name. */
const bindingBody = (operation: Record<string, unknown>): Record<string, unknown> => ({
  ...operation,
  requestBody: { required: true, content: { "application/json": { schema: JsonSchema.namedBinding } } }
})

const bindings = HttpApiGroup.make("bindings").add(
  HttpApiEndpoint.get("list", "/bindings", {
    query: { messages: Schema.optionalKey(Parameters.messages) },
    success: Schema.Array(Answers.BindingSummary)
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "List all bindings with their states"),
  HttpApiEndpoint.post("register", "/bindings", {
    payload: Schema.Unknown,
    success: Answers.BindingSummary.pipe(HttpApiSchema.status(201)),
    error: [
      Errors.configurationValidation,
      Errors.unknownCluster,
      Errors.bindingAlreadyExists,
      Errors.connectorClosed,
      Errors.notRunHere,
      Errors.unreadableBody
    ]
  })
    .middleware(Idempotency.IdempotencyKey)
    .annotate(RequiredPermission, ["admin"])
    .annotate(OpenApi.Summary, "Register a binding")
    .annotate(OpenApi.Transform, bindingBody),
  HttpApiEndpoint.get("get", "/bindings/:name", { params, success: Answers.BindingDetail, error: lookup })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "One binding, with a summary of its metrics"),
  HttpApiEndpoint.delete("unregister", "/bindings/:name", { params, success: Answers.BindingDetail, error: ofCommand })
    .annotate(RequiredPermission, ["admin"])
    .annotate(OpenApi.Summary, "Stop a binding and remove it"),
  HttpApiEndpoint.post("start", "/bindings/:name/start", command)
    .middleware(Idempotency.IdempotencyKey)
    .annotate(RequiredPermission, ["operate"])
    .annotate(OpenApi.Transform, withBody(CommandBody.jsonSchema("start"), false)),
  HttpApiEndpoint.post("stop", "/bindings/:name/stop", command)
    .middleware(Idempotency.IdempotencyKey)
    .annotate(RequiredPermission, ["operate"])
    .annotate(OpenApi.Transform, withBody(CommandBody.jsonSchema("stop"), false)),
  HttpApiEndpoint.post("pause", "/bindings/:name/pause", tierCommand)
    .middleware(Idempotency.IdempotencyKey)
    .annotate(RequiredPermission, ["operate"])
    .annotate(OpenApi.Transform, withBody(CommandBody.jsonSchema("pause"), false)),
  HttpApiEndpoint.post("resume", "/bindings/:name/resume", tierCommand)
    .middleware(Idempotency.IdempotencyKey)
    .annotate(RequiredPermission, ["operate"])
    .annotate(OpenApi.Transform, withBody(CommandBody.jsonSchema("resume"), false)),
  HttpApiEndpoint.get("fleet", "/fleet", { success: FleetAnswers.View, error: ofFleet })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "All processes of the fleet, its holds, and the last releases"),
  HttpApiEndpoint.get("health", "/health", { success: Answers.HealthReport })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "The health of all bindings, and why it is not better"),
  HttpApiEndpoint.get("permissions", "/bindings/:name/permissions", {
    params,
    success: Answers.Permissions,
    error: lookup
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "The permissions of the caller on a binding"),
  HttpApiEndpoint.get("stream", "/stream", {
    headers: { "last-event-id": Schema.optionalKey(Parameters.lastEventId) },
    success: HttpApiSchema.StreamSse({ events: Answers.StreamEvent })
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "All bindings and their health, again whenever they change")
)

const audit = HttpApiGroup.make("audit").add(
  HttpApiEndpoint.get("audit", "/audit", {
    query: {
      after: Schema.optionalKey(Parameters.after),
      binding: Schema.optionalKey(Parameters.binding),
      before: Schema.optionalKey(Parameters.before),
      limit: Schema.optionalKey(Parameters.limit)
    },
    success: AuditAnswers.AuditPage,
    error: [Errors.auditOff, Errors.invalidArgument, Errors.clusterFailed]
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "The audit log, the newest entry first")
)

/** Another process replays. */
const ofReplays = [Errors.replayRunning, Errors.replayTakenOver] as const

const deadLetters = HttpApiGroup.make("deadLetters").add(
  HttpApiEndpoint.post("replay", "/bindings/:name/dlt/replay", {
    params,
    query: {
      count: Schema.optionalKey(Parameters.count),
      from: Schema.optionalKey(Parameters.from),
      to: Schema.optionalKey(Parameters.to),
      ...ofTopic
    },
    success: Answers.ReplayReport,
    error: [...ofLetters, ...ofReplays, Errors.invalidRequest]
  })
    .middleware(Idempotency.IdempotencyKey)
    .annotate(RequiredPermission, ["replay"])
    .annotate(OpenApi.Summary, "Replay the next dead letters by count, or those of a window of time [from, to)"),
  HttpApiEndpoint.post("replayToTier", "/bindings/:name/dlt/replay-to-tier", {
    params,
    query: { tier: Parameters.tier, count: Parameters.count, ...ofTopic },
    success: Answers.ReplayReport,
    error: [...ofLetters, ...ofReplays, Errors.unknownTier]
  })
    .middleware(Idempotency.IdempotencyKey)
    .annotate(RequiredPermission, ["replay"])
    .annotate(OpenApi.Summary, "Replay the next dead letters to a retry tier"),
  HttpApiEndpoint.get("stats", "/bindings/:name/dlt/stats", {
    params,
    query: ofTopic,
    success: Answers.DeadLetterStats,
    error: ofLetters
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "Count the dead letters that are not dealt with"),
  HttpApiEndpoint.delete("purge", "/bindings/:name/dlt", {
    params,
    query: { olderThan: Parameters.olderThan, ...ofTopic },
    success: Answers.PurgeReport,
    error: [...ofLetters, Errors.notPurgeable, Errors.foreignDeadLetters]
  })
    .annotate(RequiredPermission, ["discard"])
    .annotate(OpenApi.Summary, "Delete old dead letters")
)

/** The selection of a rehearsal, for the document. */
const selectionBody = (operation: Record<string, unknown>): Record<string, unknown> => ({
  ...operation,
  requestBody: { required: true, content: { "application/json": { schema: SelectionBody.jsonSchema } } }
})

const letters = HttpApiGroup.make("letters").add(
  HttpApiEndpoint.get("groups", "/bindings/:name/dlt/groups", {
    params,
    query: { state: Schema.optionalKey(Parameters.state), ...ofTopic },
    success: DeadLetterAnswers.Groups,
    error: [...ofLetters, Errors.invalidRequest]
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "The dead letters by the reason of their failure"),
  HttpApiEndpoint.get("records", "/bindings/:name/dlt/records", {
    params,
    query: {
      group: Schema.optionalKey(Parameters.group),
      state: Schema.optionalKey(Parameters.state),
      text: Schema.optionalKey(Parameters.text),
      before: Schema.optionalKey(Parameters.before),
      limit: Schema.optionalKey(Parameters.limit),
      ...ofTopic
    },
    success: DeadLetterAnswers.Page,
    error: ofLetters
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "Dead letters, the newest first over all partitions"),
  HttpApiEndpoint.get("record", "/bindings/:name/dlt/records/:position", {
    params: { name: Parameters.name, position: Parameters.position },
    query: ofTopic,
    success: DeadLetterAnswers.Letter,
    error: [...ofLetters, Errors.invalidRequest, Errors.deadLetterNotFound]
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "One dead letter; with its payload for callers who may see it"),
  HttpApiEndpoint.get("transformed", "/bindings/:name/dlt/records/:position/transformed", {
    params: { name: Parameters.name, position: Parameters.position },
    query: { transform: Parameters.transform, ...ofTopic },
    success: DeadLetterAnswers.Transformed,
    error: [...ofLetters, Errors.invalidRequest, Errors.deadLetterNotFound]
  })
    .annotate(RequiredPermission, ["transform"])
    .annotate(OpenApi.Summary, "What a transform makes of one dead letter, line by line; nothing is published"),
  HttpApiEndpoint.post("rehearse", "/bindings/:name/dlt/rehearsals", {
    params,
    query: ofTopic,
    payload: Schema.Unknown,
    success: DeadLetterAnswers.Rehearsal.pipe(HttpApiSchema.status(202)),
    error: [...lookup, Errors.invalidArgument, Errors.invalidRequest, Errors.unreadableBody, Errors.rehearsalRunning]
  })
    .middleware(Idempotency.IdempotencyKey)
    .annotate(RequiredPermission, ["replay"])
    .annotate(OpenApi.Summary, "Begin a rehearsal: what today's code would do with dead letters")
    .annotate(OpenApi.Transform, selectionBody),
  HttpApiEndpoint.get("rehearsal", "/bindings/:name/dlt/rehearsals/:id", {
    params: { name: Parameters.name, id: Parameters.id },
    success: DeadLetterAnswers.Rehearsal,
    error: [...lookup, Errors.rehearsalNotFound]
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "A rehearsal, and its result when it is done")
)

/** The API below a prefix. */
export const make = (prefix: `/${string}` = "/eventbus") =>
  HttpApi.make("EventBusAdmin")
    .add(bindings, held, parked, deadLetters, letters, runs, outbox, audit)
    .middleware(RefusedParameters)
    .middleware(Guard)
    .prefix(prefix)
    // Of requests alone: a request has headers that no schema names, and a client may be older than the answers that it gets.
    .annotate(HttpApi.QueryParseOptions, { errors: "all", onExcessProperty: "error" })
    .annotate(OpenApi.Transform, Idempotency.describe)
    .annotate(OpenApi.Title, "Event Bus Connector")
    .annotate(OpenApi.Version, version)
    .annotate(
      OpenApi.Description,
      "The bindings of one process, their dead letters, and the dead events of its outbox."
    )

/** The type of the API. */
export type AdminApi = ReturnType<typeof make>
