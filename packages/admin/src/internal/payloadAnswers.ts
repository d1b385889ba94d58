/**
 * Turns the content of a dead letter, or of a dead event, into the part of an answer that only callers with `view-payload` get.
 */
import { DeadLetterRecord, type Serde } from "@eventbus/core"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as Answers from "../DeadLetterAnswers.ts"
import type { Header, Masked, Payload } from "../Mask.ts"
import { given } from "./answersOf.ts"
import { maskedOf, textOf } from "./masking.ts"

/** Most bytes of a key, a value or a header that an answer has. */
const shownBytes = 65_536

/** The value that a serde reads, or the reason why it cannot. */
export type Decoded = Result.Result<unknown, Serde.DecodeFailure>

/** A key or a value, and the outcome of its decoding. */
interface Half {
  readonly bytes: Uint8Array | null
  readonly decoded: Decoded
}

/** Everything that quotes what somebody has published. */
export interface Parts {
  /** As masks get it. */
  readonly topic: string
  readonly key: Half
  readonly value: Half
  readonly headers: ReadonlyArray<Header>
  /** The causes of the last error. */
  readonly causes: ReadonlyArray<{ readonly className: string; readonly message: string }>
}

export const payloadOf = (parts: Parts, payload: Exclude<Payload, false>): Answers.Payload => {
  const { topic, key, value, headers } = parts
  const causes = parts.causes.map(({ className, message }) => ({
    exceptionClass: className,
    message: textOf(payload, message) ?? ""
  }))
  if (payload === true)
    return { key: contentOf(key), value: contentOf(value), ...{ headers: headers.map(headerOf), causes } }
  const shown = maskedOf(payload, {
    topic,
    ...{ key: unmasked(key.bytes, key.decoded), value: unmasked(value.bytes, value.decoded), headers }
  })
  const { key: maskedKey, value: maskedValue, headers: maskedHeaders = [] }: Masked = shown ?? {}
  return {
    mask: shown === undefined ? "failed" : "applied",
    key: maskedContentOf(key, maskedKey, payload),
    value: maskedContentOf(value, maskedValue, payload),
    ...{ headers: maskedHeaders.map(headerOf), causes }
  }
}

/** All headers, in order, as texts. */
export const headersOf = ({ headers }: DeadLetterRecord.DeadLetterRecord): ReadonlyArray<Header> =>
  headers.map((header) => {
    const { text, base64 } = bytesOf(header.value)
    return { name: header.key, value: DeadLetterRecord.springNumber(header) ?? text ?? base64 }
  })

const headerOf = ({ name, value }: { readonly name: string; readonly value: string | undefined }) => ({
  name,
  ...given("value", value)
})

/** As the program's mask gets it. */
export const unmasked = (bytes: Uint8Array | null, decoded: Decoded): unknown =>
  Result.isSuccess(decoded) ? decoded.success : bytes

const contentOf = ({ bytes, decoded }: Half): Answers.Content => ({
  ...given("bytes", bytes?.length),
  ...bytesOf(bytes),
  ...(Result.isSuccess(decoded)
    ? given("decoded", jsonOf(decoded.success))
    : { problem: `${decoded.failure.serde}: ${decoded.failure.detail}` })
})

/** The answer of a user's function may be a Proxy whose traps throw. */
const shownAs = (masked: unknown): Answers.Content => {
  try {
    return masked instanceof Uint8Array ? bytesOf(masked) : given("decoded", jsonOf(masked))
  } catch {
    return {}
  }
}

/** Nothing of the record but its size, and what the program's mask shows. */
const maskedContentOf = ({ bytes, decoded }: Half, masked: unknown, payload: Payload): Answers.Content => {
  const detail = Result.isFailure(decoded) ? (textOf(payload, decoded.failure.detail) ?? "the reason is hidden") : ""
  return {
    ...given("bytes", bytes?.length),
    ...shownAs(masked),
    ...given("problem", Result.isFailure(decoded) ? `${decoded.failure.serde}: ${detail}` : undefined)
  }
}

const bytesOf = (bytes: Uint8Array | null): { readonly text?: string; readonly base64?: string } => {
  if (bytes === null) return {}
  const shown = bytes.subarray(0, shownBytes)
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(shown, { stream: shown.length < bytes.length }) }
  } catch {
    return { base64: Buffer.from(shown).toString("base64") }
  }
}

/** Undefined for a value that JSON cannot hold, or that is bytes: those are shown beside it. */
const jsonOf = (value: unknown): Schema.Json | undefined => {
  const text = jsonTextOf(value, shownBytes)
  return text === undefined ? undefined : (JSON.parse(text) as Schema.Json)
}

/** The same as text, at most so long. */
export const jsonTextOf = (value: unknown, longest: number): string | undefined => {
  if (value instanceof Uint8Array) return undefined
  try {
    const text = JSON.stringify(value, (_, each: unknown) => (typeof each === "bigint" ? String(each) : each))
    return text === undefined || text.length > longest ? undefined : text
  } catch {
    return undefined
  }
}
