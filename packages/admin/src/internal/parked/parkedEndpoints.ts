/**
 * The routes about parked keys, as a declaration.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as ParkedAnswers from "../../ParkedAnswers.ts"
import * as Errors from "../errorSchemas.ts"
import { IdempotencyKey } from "../idempotency/idempotencyKey.ts"
import { RequiredPermission } from "../middlewares.ts"
import * as Parameters from "../requests/parameters.ts"
import { isCursor } from "./parkedAnswers.ts"

const lookup = [Errors.bindingNotFound, Errors.ambiguousBinding, Errors.notOrderedPerKey] as const

const page = Schema.String.annotate({ description: Parameters.allowed.page }).check(Schema.makeFilter(isCursor))

/** The position is the precondition: a decision is about exactly this record. */
const decision = {
  params: { name: Parameters.name, position: Parameters.parkedPosition },
  query: { reason: Parameters.reason, topic: Schema.optionalKey(Parameters.topic) },
  success: ParkedAnswers.ParkedDecision,
  error: [...lookup, Errors.invalidArgument, Errors.invalidRequest, Errors.keyNotHeld, Errors.clusterFailed]
} as const

export const parked = HttpApiGroup.make("parked").add(
  HttpApiEndpoint.get("parked", "/bindings/:name/parked", {
    params: { name: Parameters.name },
    query: { limit: Schema.optionalKey(Parameters.limit), page: Schema.optionalKey(page) },
    success: ParkedAnswers.AllParked,
    error: [...lookup, Errors.invalidArgument, Errors.clusterFailed]
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "The parked keys of the group, those that are held first"),
  HttpApiEndpoint.post("retryParked", "/bindings/:name/parked/:position/retry", decision)
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, ["operate"])
    .annotate(OpenApi.Summary, "Handle the record that holds its key again, and what follows it, in order"),
  HttpApiEndpoint.post("skipParked", "/bindings/:name/parked/:position/skip", decision)
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, ["operate"])
    .annotate(OpenApi.Summary, "Dead-letter the record that holds its key, so that the key goes on behind it"),
  HttpApiEndpoint.post("acceptParkedLoss", "/bindings/:name/parked/accept-loss", {
    params: { name: Parameters.name },
    query: { keys: Parameters.strandedKeys, reason: Parameters.reason },
    success: ParkedAnswers.AcceptedLoss,
    error: [...lookup, Errors.invalidArgument, Errors.invalidRequest, Errors.strandedKeysChanged, Errors.clusterFailed]
  })
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, ["discard"])
    .annotate(OpenApi.Summary, "Dead-letter the records of all stranded keys, so that their partitions run")
)
