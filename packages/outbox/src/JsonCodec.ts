/** Codecs of headers: how headers become text in the table (outbox seed §3). */
import * as Result from "effect/Result"
import { InvalidEnvelope } from "./OutboxError.ts"

/** Encodes and decodes the headers of an event. Flat text maps only. */
export interface JsonCodec {
  /** The text of the headers; null for null and for an empty map. */
  readonly toJson: (headers: ReadonlyMap<string, string> | null) => string | null
  /** The headers of the text; an empty map for null, empty text and `null`. Fails for anything that is not a flat map of texts. */
  readonly parseObject: (json: string | null) => Result.Result<ReadonlyMap<string, string>, InvalidEnvelope>
}

const empty: ReadonlyMap<string, string> = new Map()

const malformed = (detail: string) => Result.fail(new InvalidEnvelope({ field: "headers", detail }))

const parse = (json: string): Result.Result<ReadonlyMap<string, string>, InvalidEnvelope> => {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    return malformed("is not JSON")
  }
  if (value === null) return Result.succeed(empty)
  if (typeof value !== "object" || Array.isArray(value)) return malformed("is not a JSON object")
  const headers = new Map<string, string>()
  for (const [key, entry] of Object.entries(value)) {
    if (typeof entry !== "string") return malformed(`has a value under '${key}' that is not text`)
    headers.set(key, entry)
  }
  return Result.succeed(headers)
}

/** The default codec of every store: one shared value without state. */
export const defaultCodec: JsonCodec = {
  toJson: (headers) => (headers === null || headers.size === 0 ? null : JSON.stringify(Object.fromEntries(headers))),
  parseObject: (json) => (json === null || json === "" || json === "null" ? Result.succeed(empty) : parse(json))
}
