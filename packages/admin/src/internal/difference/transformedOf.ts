/**
 * Turns what a transform makes of a dead letter into an answer. Without `payload`, nothing in it quotes a record.
 */
import { type ConsumerRecord, DeadLetterSelection, type LetterTransform } from "@eventbus/core"
import * as Result from "effect/Result"
import type * as Answers from "../../DeadLetterAnswers.ts"
import type { Header, Masking, Payload } from "../../Mask.ts"
import { given } from "../answersOf.ts"
import { maskedOf, textOf } from "../masking.ts"
import { headersOf, unmasked } from "../payloadAnswers.ts"
import * as HalfText from "./halfText.ts"
import * as LineDiff from "./lineDiff.ts"

type Content = LetterTransform.TransformedLetter

/** A dead letter before and after a transform. `payload`: with the lines in which they differ, and the reason of one that stays. */
export const transformedOf = (
  preview: LetterTransform.Preview,
  transform: string,
  payload: Payload
): Answers.Transformed => {
  const { letter, state, key, value } = preview.before
  const told = { position: DeadLetterSelection.formatPosition(letter.record), transform, state }
  if (preview._tag === "Stays")
    return { ...told, outcome: "stays", changed: [], ...given("reason", textOf(payload, preview.reason)) }
  const { after } = preview
  const changed = parts.filter((part) => !isSame[part](letter, after.letter))
  // Of a letter that can be copied, both halves were read.
  const before = { letter, key: key!, value: value! }
  return {
    ...{ ...told, outcome: "copied", changed },
    decodable: Result.isSuccess(after.key) && Result.isSuccess(after.value),
    ...given("difference", payload === false ? undefined : differenceOf(before, after, changed, payload))
  }
}

const parts = ["key", "value", "headers"] as const

type Part = (typeof parts)[number]

const sameBytes = (one: Uint8Array | null, other: Uint8Array | null): boolean =>
  one === null || other === null ? one === other : Buffer.compare(one, other) === 0

const isSame: { readonly [P in Part]: (one: Content["letter"], other: Content["letter"]) => boolean } = {
  key: (one, other) => sameBytes(one.key, other.key),
  value: (one, other) => sameBytes(one.value, other.value),
  headers: ({ headers: one }, { headers: other }) =>
    one.length === other.length && one.every((header, index) => sameHeader(header, other[index]!))
}

const sameHeader = (one: ConsumerRecord.Header, other: ConsumerRecord.Header): boolean =>
  one.key === other.key && sameBytes(one.value, other.value)

const differenceOf = (
  before: Content,
  after: Content,
  changed: ReadonlyArray<Part>,
  payload: Exclude<Payload, false>
): Answers.Difference => {
  const [was, is] = [textsOf(before, payload), textsOf(after, payload)]
  const mask = payload === true ? undefined : was === undefined || is === undefined ? "failed" : "applied"
  const lines = (part: Part): ReadonlyArray<Answers.DiffLine> => {
    if (was === undefined || is === undefined || !changed.includes(part)) return []
    const found = part === "headers" ? LineDiff.of(was.headers, is.headers) : HalfText.differenceOf(was[part], is[part])
    return found.length > 0 ? found : [{ sign: "…", text: unseen(payload) }]
  }
  return { key: lines("key"), value: lines("value"), headers: lines("headers"), ...given("mask", mask) }
}

/** The bytes differ, and the texts do not. */
const unseen = (payload: Payload): string =>
  payload === true
    ? "The bytes differ, such as in white space, and the text is the same"
    : "The mask hides what differs"

interface Texts {
  readonly key: HalfText.Half
  readonly value: HalfText.Half
  readonly headers: ReadonlyArray<string>
}

/** Undefined where the mask of the program has failed. */
const textsOf = (content: Content, payload: true | Masking): Texts | undefined => {
  const { letter, key, value } = content
  const headers = headersOf(letter)
  if (payload === true) {
    const [keyText, valueText] = [HalfText.ofBytes(letter.key, key), HalfText.ofBytes(letter.value, value)]
    return { key: keyText, value: valueText, headers: headerLines(headers) }
  }
  const shown = maskedOf(payload, {
    topic: letter.originalTopic,
    ...{ key: unmasked(letter.key, key), value: unmasked(letter.value, value), headers }
  })
  if (shown === undefined) return undefined
  return {
    ...{ key: HalfText.ofMasked(shown.key), value: HalfText.ofMasked(shown.value) },
    headers: headerLines(shown.headers ?? [])
  }
}

const headerLines = (headers: ReadonlyArray<Header>): ReadonlyArray<string> =>
  headers.flatMap(({ name, value }) => HalfText.linesOf(value === undefined ? name : `${name}: ${value}`))
