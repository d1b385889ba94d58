/**
 * A key or a value as lines of text, in the form in which it can be compared with another one.
 */
import { createHash } from "node:crypto"
import * as Result from "effect/Result"
import type { DiffLine } from "../../DeadLetterAnswers.ts"
import { jsonTextOf } from "../payloadAnswers.ts"
import * as LineDiff from "./lineDiff.ts"
import { prettyJson } from "./prettyJson.ts"

/** Most bytes of a key or a value that are compared line by line. */
const mostBytes = 4 * 1024 * 1024

type Lines = ReadonlyArray<string>

/** A key or a value in all forms that it has. */
export interface Half {
  /** Its bytes, where they are JSON. */
  readonly json?: Lines
  /** The value that today's serde reads, as JSON. */
  readonly decoded?: Lines
  /** Its bytes as UTF-8 text. */
  readonly text?: Lines
  /** Its size and its hash, or that it is hidden. */
  readonly described: Lines
}

const forms = ["json", "decoded", "text"] as const

/** In the first form that both have: the bytes, which are what is published, as far as they can be read; else each in a form of its own. */
export const differenceOf = (before: Half, after: Half): ReadonlyArray<DiffLine> => {
  for (const form of forms) {
    const [was, is] = [before[form], after[form]]
    if (was !== undefined && is !== undefined) return LineDiff.of(was, is)
  }
  return LineDiff.of(ownForm(before), ownForm(after))
}

const ownForm = ({ json, decoded, text, described }: Half): Lines => json ?? decoded ?? text ?? described

/** Of bytes, and what the serde reads in them. */
export const ofBytes = (bytes: Uint8Array | null, decoded: Result.Result<unknown, unknown>): Half => {
  if (bytes === null) return { json: [], decoded: [], text: [], described: [] }
  const text = textOf(bytes)
  const json = text === undefined ? undefined : prettyJson(text)
  return {
    ...(json === undefined ? {} : { json: linesOf(json) }),
    ...(Result.isSuccess(decoded) ? ofValue(decoded.success) : {}),
    ...(text === undefined ? {} : { text: linesOf(text) }),
    described: [describedAs(bytes)]
  }
}

const hidden: Half = { described: ["hidden"] }

/** Of what the program's mask shows. Its answer may be a Proxy whose traps throw. */
export const ofMasked = (masked: unknown): Half => {
  try {
    if (masked instanceof Uint8Array) return ofBytes(masked, Result.fail("bytes"))
    return { ...hidden, ...ofValue(masked) }
  } catch {
    return hidden
  }
}

/** Nothing for a value that JSON cannot hold. */
const ofValue = (value: unknown): Pick<Half, "decoded"> => {
  const json = typeof value === "string" ? value : jsonTextOf(value, mostBytes)
  return json === undefined || json.length > mostBytes ? {} : { decoded: linesOf(prettyJson(json) ?? json) }
}

const textOf = (bytes: Uint8Array): string | undefined => {
  if (bytes.length > mostBytes) return undefined
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const describedAs = (bytes: Uint8Array): string => {
  const kind = bytes.length > mostBytes ? "too large to compare" : "binary"
  return `${kind}, ${bytes.length} bytes, SHA-256 ${createHash("sha256").update(bytes).digest("hex")}`
}

/** All line breaks that a page or a terminal knows: each line has a sign of its own. */
export const linesOf = (text: string): Lines => text.split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/)
