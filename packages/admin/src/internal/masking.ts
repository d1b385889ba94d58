/**
 * Calls the program's functions that hide parts of records. They are functions of the user: whatever they do, nothing is shown that they did not answer.
 */
import { UserFunction } from "@eventbus/core"
import * as Predicate from "effect/Predicate"
import type { Header, Letter, Masked, Masking, Payload } from "../Mask.ts"

/** How much an answer has of records, for a caller with or without the permission to see them. */
export type Shown = (payload: boolean) => Payload

export const shownBy = ({ mask, maskText }: Partial<Masking>): Shown => {
  if (mask === undefined && maskText === undefined) return (payload) => payload
  const masking = { mask: mask ?? ((letter: Letter) => letter), ...(maskText === undefined ? {} : { maskText }) }
  return (payload) => payload && masking
}

/** The place of a text that the program's function has failed for. */
const hidden = "hidden: the mask of the program failed"

/** A text that may quote a record, as far as it is shown. */
export const textOf = (payload: Payload, text: string | undefined): string | undefined => {
  if (text === undefined || payload === false) return undefined
  if (payload === true) return text
  const { maskText } = payload
  if (maskText === undefined) return undefined
  try {
    const masked: unknown = UserFunction.plain("maskText", maskText(text), "a text")
    if (typeof masked === "string") return masked
    UserFunction.report("maskText", new TypeError(`it answered ${UserFunction.kindOf(masked)}; a text is expected`))
  } catch (error) {
    UserFunction.report("maskText", error)
  }
  return hidden
}

/** The parts of a letter that the program shows, or undefined when its function has failed. */
export const maskedOf = ({ mask }: Masking, letter: Letter): Masked | undefined => {
  try {
    const masked: unknown = UserFunction.plain("mask", mask(letter), "an object with key, value and headers")
    if (Predicate.isObject(masked)) {
      // Read once: a getter may answer differently the next time.
      const { key, value, headers } = masked as Masked
      if (headers === undefined) return { key, value }
      if (Array.isArray(headers)) return { key, value, headers: Array.from(headers, headerOf) }
    }
    UserFunction.report("mask", new TypeError("it answered no object whose headers are a list"))
  } catch (error) {
    UserFunction.report("mask", error)
  }
  return undefined
}

const headerOf = ({ name, value }: Header): Header => {
  if (typeof name !== "string" || (value !== undefined && typeof value !== "string"))
    throw new TypeError("it answered a header without a text as its name, or with a value that is no text")
  return { name, value }
}
