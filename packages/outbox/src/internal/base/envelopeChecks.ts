/** Checks of an envelope's fields: each returns the problem, or nothing. */
import { InvalidEnvelope } from "../../OutboxError.ts"

export const invalid = (field: string, detail: string): InvalidEnvelope => new InvalidEnvelope({ field, detail })

/** The last time that MySQL and JavaScript both can hold: the year 9999. */
const latestMillis = Date.UTC(9999, 11, 31)

export const checkTime = (millis: number): InvalidEnvelope | undefined =>
  millis >= 0 && millis <= latestMillis
    ? undefined
    : invalid("occurredAt", "is not a time between the years 1970 and 9999")

export const checkText = (
  field: string,
  text: string | undefined,
  maxLength: number,
  emptiness: "may be empty" | "not empty" = "not empty"
): InvalidEnvelope | undefined => {
  if (text === undefined) return undefined
  if (typeof text !== "string") return invalid(field, "is not text")
  if (text.length === 0 && emptiness === "not empty") return invalid(field, "is empty")
  if (text.length > maxLength) return invalid(field, `has ${text.length} characters; at most ${maxLength} are allowed`)
  if (text.includes("\0")) return invalid(field, "contains a NUL character, which no database text can hold")
  return text.isWellFormed() ? undefined : invalid(field, "contains a lone surrogate")
}

/** Whether every database stores this id and tells it from every other one. MySQL ignores spaces at the end of a key. */
export const isEventId = (text: string): boolean => text.length <= 36 && /^[!-~]([ -~]*[!-~])?$/.test(text)

export const checkId = (id: string | undefined): InvalidEnvelope | undefined =>
  checkText("eventId", id, 36) ??
  (id === undefined || isEventId(id)
    ? undefined
    : invalid(
        "eventId",
        `is ${JSON.stringify(id)}; only visible ASCII characters, and spaces between them, are allowed`
      ))

const headerText = (part: "key" | "value", key: string, text: string): InvalidEnvelope | undefined => {
  const issue = checkText("headers", text, Number.MAX_SAFE_INTEGER, "may be empty")
  return issue && invalid("headers", `has a ${part} under ${JSON.stringify(key)} that ${issue.detail}`)
}

/** Copies headers, so that later changes of the caller's map do not show in the envelope. */
export const copyHeaders = (
  input: ReadonlyMap<string, string> | Readonly<Record<string, string>> | undefined
): ReadonlyMap<string, string> | InvalidEnvelope => {
  const headers = new Map<string, string>()
  if (input === undefined) return headers
  if (typeof input !== "object" || input === null) return invalid("headers", "is neither a map nor an object")
  const entries: Iterable<readonly [unknown, unknown]> = input instanceof Map ? input : Object.entries(input)
  for (const [key, value] of entries) {
    if (typeof key !== "string") return invalid("headers", "has a key that is not text")
    if (typeof value !== "string") return invalid("headers", `has a value under '${key}' that is not text`)
    // Each by itself: two halves of a surrogate pair, one in the key and one in the value, are well formed only when joined.
    const issue = headerText("key", key, key) ?? headerText("value", key, value)
    if (issue !== undefined) return issue
    headers.set(key, value)
  }
  return headers
}
