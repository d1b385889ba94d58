/**
 * Decides from the end of a request whether its answer is kept.
 */
import type { RequestJournal } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApiError from "effect/http-api/HttpApiError"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { ClusterFailed, IdempotentAnswerTooLarge, OutboxFailed } from "../../AdminError.ts"
import * as Errors from "../errorSchemas.ts"
import * as Failures from "../failures.ts"

/** An answer, as it is kept. */
export type Answer = RequestJournal.Answer

/** How the work of a request ended. Unknown: it was interrupted, at any point. */
export type Outcome = { readonly _tag: "Done"; readonly answer: Answer } | { readonly _tag: "Nothing" | "Unknown" }

/** Largest body that is kept, in characters. A record of the journal has 1 MiB by default. */
const longestBody = 262_144

/**
 * The answers of work that may have been done in part. All other errors of the API say that nothing was done, so their requests may be repeated with the same key.
 */
const ofPartialWork = [
  { schema: Errors.clusterFailed, status: 502, is: (error: unknown) => error instanceof ClusterFailed },
  { schema: Errors.outboxFailed, status: 502, is: (error: unknown) => error instanceof OutboxFailed },
  { schema: Errors.replayTakenOver, status: 409, is: (error: unknown) => Predicate.isTagged(error, "ReplayTakenOver") }
] as const

export const of = (exit: Exit.Exit<HttpServerResponse.HttpServerResponse, unknown>): Effect.Effect<Outcome> => {
  if (Exit.isSuccess(exit)) return Effect.succeed(ofResponse(exit.value))
  if (Cause.hasInterruptsOnly(exit.cause)) return Effect.succeed({ _tag: "Unknown" })
  if (Cause.hasDies(exit.cause)) return Effect.succeed(ofResponse(Failures.internalError()))
  const error = Cause.squash(exit.cause)
  // The work is over, and its answer is one that its schema refuses: RefusedParameters makes a defect of it.
  if (HttpApiError.HttpApiSchemaError.is(error) && error.kind === "Body")
    return Effect.succeed(ofResponse(Failures.internalError()))
  const partial = ofPartialWork.find(({ is }) => is(error))
  if (partial === undefined) return Effect.succeed({ _tag: "Nothing" })
  return Effect.map(Effect.orDie(Schema.encodeUnknownEffect(partial.schema)(error)), (body) =>
    ofResponse(HttpServerResponse.jsonUnsafe(body, { status: partial.status }))
  )
}

const ofResponse = ({ status, body }: HttpServerResponse.HttpServerResponse): Outcome => {
  const text = body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : ""
  return { _tag: "Done", answer: text.length <= longestBody ? { status, body: text } : tooLarge(status) }
}

const tooLarge = (status: number): Answer => {
  const { _tag, message } = new IdempotentAnswerTooLarge({ status })
  return { status: 409, body: JSON.stringify({ _tag, message, status }) }
}
