/**
 * The routes about records that wait for the decision of an operator, as a declaration.
 */

import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as Answers from "../../Answers.ts"
import * as HeldAnswers from "../../HeldAnswers.ts"
import * as Errors from "../errorSchemas.ts"
import { IdempotencyKey } from "../idempotency/idempotencyKey.ts"
import { RequiredPermission } from "../middlewares.ts"
import * as Parameters from "../requests/parameters.ts"

const lookup = [Errors.bindingNotFound, Errors.ambiguousBinding] as const

/** The position is the precondition: a decision is about exactly this record. */
const decision = {
  params: { name: Parameters.name, position: Parameters.heldPosition },
  query: { reason: Parameters.reason, topic: Schema.optionalKey(Parameters.topic) },
  success: Answers.BindingSummary,
  error: [...lookup, Errors.invalidArgument, Errors.invalidRequest, Errors.recordNotHeld, Errors.notRunHere]
} as const

export const held = HttpApiGroup.make("held").add(
  HttpApiEndpoint.get("held", "/bindings/:name/held", {
    params: { name: Parameters.name },
    success: HeldAnswers.AllHeld,
    error: lookup
  })
    .annotate(RequiredPermission, ["view"])
    .annotate(OpenApi.Summary, "Everything that waits for the decision of an operator in this process"),
  // A record that is skipped is lost to the binding, as a dead letter that is given up.
  HttpApiEndpoint.post("skipHeld", "/bindings/:name/held/:position/skip", decision)
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, ["discard"])
    .annotate(OpenApi.Summary, "Drop a held record, so that its partition goes on"),
  HttpApiEndpoint.post("deadLetterHeld", "/bindings/:name/held/:position/dead-letter", decision)
    .middleware(IdempotencyKey)
    .annotate(RequiredPermission, ["operate"])
    .annotate(OpenApi.Summary, "Send a held record to the dead letter topic, so that its partition goes on")
)
