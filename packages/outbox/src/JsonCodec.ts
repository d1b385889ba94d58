/** How headers become text in the table. Flat text maps only. */
import { Result } from "effect"
import { InvalidEnvelope } from "./OutboxError.ts"

export interface JsonCodec {
  /** Null for an empty map. */
  readonly toJson: (headers: ReadonlyMap<string, string> | null) => string | null
  /** An empty map for null, empty text and `null`; a failure for anything that is not a flat map of texts. */
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

/** The codec of every store that is given no other: one shared value without state. */
export const defaultCodec: JsonCodec = {
  toJson: (headers) => (headers === null || headers.size === 0 ? null : JSON.stringify(Object.fromEntries(headers))),
  parseObject: (json) => (json === null || json === "" || json === "null" ? Result.succeed(empty) : parse(json))
}
