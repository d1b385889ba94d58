/**
 * The causes of a failure as the text of one header: a JSON array of `{className, message}`, the outermost cause first, in 1 KiB at most.
 */
import type { ErrorSummary } from "../../Failure.ts"

const maxBytes = 1_024
const maxLinks = 10
/** Characters of one class name, where the causes have no room otherwise. */
const maxClassName = 48

const encoder = new TextEncoder()

/** Messages are cut alike until the text fits, so that the last cause keeps its class: it is what really happened. */
export const write = (causes: ReadonlyArray<ErrorSummary>): Uint8Array => {
  for (let length = maxBytes; length >= 1; length = Math.floor(length / 2)) {
    const bytes = encode(causes, (message) => cut(message, length))
    if (bytes.length <= maxBytes) return bytes
  }
  let kept = causes.map(({ className }) => ({ className: cut(className, maxClassName), message: "" }))
  while (encode(kept).length > maxBytes) kept = kept.slice(0, -1)
  return encode(kept)
}

const encode = (causes: ReadonlyArray<ErrorSummary>, cutMessage = (message: string) => message): Uint8Array =>
  encoder.encode(JSON.stringify(causes.map(({ className, message }) => ({ className, message: cutMessage(message) }))))

const cut = (text: string, length: number): string => (text.length > length ? text.slice(0, length) : text)

/** Reads the text of the header, and leaves out malformed entries. */
export const read = (text: string): ReadonlyArray<ErrorSummary> => {
  // Most dead letters have no causes, and an exception for each of them would cost more than all else that is read of it.
  if (text === "") return []
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return []
  }
  if (!Array.isArray(parsed)) return []
  return parsed
    .filter(isSummary)
    .slice(0, maxLinks)
    .map(({ className, message }) => ({ className, message }))
}

const isSummary = (value: unknown): value is ErrorSummary =>
  typeof value === "object" &&
  value !== null &&
  "className" in value &&
  typeof value.className === "string" &&
  "message" in value &&
  typeof value.message === "string"
