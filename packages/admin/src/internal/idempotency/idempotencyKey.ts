/**
 * The declaration of the header `Idempotency-Key`, for the routes and for their document.
 */
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as Errors from "../errorSchemas.ts"
import type { Caller } from "../middlewares.ts"

/** The name of the header, as people write it. */
export const header = "Idempotency-Key"

/** Longest key, in characters. */
const longestKey = 255

/** The keys that are taken, in words. */
export const allowed = `one key of 1 to ${longestKey} characters without control characters; one with a comma stands in double quotes`

/** A string of a structured field (RFC 9651), which the draft of this header has for a key. */
const quoted = /^"(?:[^"\\]|\\["\\])*"$/

/** Whether a text can be a key. HTTP joins the values of two headers with a comma, and only quotes tell that comma from one of the key. */
export const isKey = (text: string): boolean =>
  text !== "" && text.length <= longestKey && !/\p{Cc}/u.test(text) && (!text.includes(",") || quoted.test(text))

/** Says of an answer that it is the first one again. */
export const replayedHeader = "idempotency-replayed"

/** Says for how far an answer is kept: `cluster` for all processes of the group, `process` for this one alone. */
export const keptHeader = "idempotency-kept"

/** Does the work of a POST that has a key once. */
export class IdempotencyKey extends HttpApiMiddleware.Service<IdempotencyKey, { requires: Caller }>()(
  "@eventbus/admin/IdempotencyKey",
  {
    error: [
      Errors.invalidRequest,
      Errors.unreadableBody,
      Errors.idempotencyKeyReused,
      Errors.idempotentRequestUnfinished,
      Errors.idempotentAnswerTooLarge,
      Errors.idempotencyUnavailable
    ]
  }
) {}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

interface Operation {
  readonly parameters?: ReadonlyArray<unknown>
}

const parameter = {
  name: header,
  in: "header",
  required: false,
  description:
    "The same key with the same request gets the first answer again, for 24 hours, and the work is done once.",
  schema: { type: "string", minLength: 1, maxLength: longestKey }
}

/** Describes the header at every POST of the document. */
export const describe = (document: Record<string, unknown>): Record<string, unknown> => {
  const { paths } = document as unknown as Document
  const described = Object.entries(paths).map(([path, { post, ...others }]): [string, object] => [
    path,
    post === undefined ? others : { ...others, post: { ...post, parameters: [...(post.parameters ?? []), parameter] } }
  ])
  return { ...document, paths: Object.fromEntries(described) }
}
