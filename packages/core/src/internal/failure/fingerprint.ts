/**
 * The fingerprint of a dead letter: records that failed for the same reason have the same one, whichever process and release they failed in.
 *
 * It is made of the error's class, the place in the application that it comes from (else the path that could not be decoded, else its message with numbers and ids
 * masked), and the topic that the record was first in. The value names its algorithm: a release with another one writes another value, and groups of both stay
 * what they are.
 */
import type { ErrorSummary, FailureToGroup } from "../../Failure.ts"
import * as UserFunction from "../../UserFunction.ts"
import { firstApplicationFrame, masked } from "./applicationFrame.ts"

/** An error with its stack trace. */
export interface TracedError extends ErrorSummary {
  readonly stackTrace: string
}

/** The facts that decide about the group of a dead letter, from its failure or from its headers. */
export interface Fingerprinted
  extends Pick<FailureToGroup, "reason" | "exceptionClass" | "message" | "causes" | "originalTopic" | "decodePath"> {
  /** The error that tells where the failure comes from: the failure's own, or the one in a wrapper. */
  readonly subject: TracedError
}

/** A function of the user's. */
export type OwnFingerprint = (failure: FailureToGroup) => string | undefined

/** Longest fingerprint of a user's function, in characters. */
const longestOwn = 128

/** The fingerprint: that of the user's function, `own-…`, where there is one and it answers with a text, or `v1-…`. */
export const of = (given: Fingerprinted, own?: OwnFingerprint | undefined): string => {
  if (own !== undefined) {
    const { subject } = given
    const answer = answerOf(own, given, firstApplicationFrame(subject.stackTrace, subject.message))
    if (answer !== undefined) return `own-${answer}`
  }
  if (last !== undefined && isSame(last.given, given)) return last.fingerprint
  const fingerprint = make(given)
  last = { given, fingerprint }
  return fingerprint
}

/** The last one that was made: while something is down, successive dead letters mostly have it in common. */
let last: { readonly given: Fingerprinted; readonly fingerprint: string } | undefined

const isSame = (one: Fingerprinted, other: Fingerprinted): boolean =>
  one.subject.className === other.subject.className &&
  one.subject.message === other.subject.message &&
  one.subject.stackTrace === other.subject.stackTrace &&
  one.decodePath === other.decodePath &&
  one.originalTopic === other.originalTopic

/** The place that a failure comes from: the first frame of the application, else the path that could not be decoded. Undefined where neither is known. */
export const frameOrPath = ({ subject, decodePath }: Fingerprinted): string | undefined =>
  firstApplicationFrame(subject.stackTrace, subject.message) ?? decodePath

/** The fingerprint of an error of which name and message are all that is known. `origin` is where it was met, such as a topic. */
export const ofSummary = (error: ErrorSummary, origin: string): string =>
  make({ subject: { ...error, stackTrace: "" }, decodePath: undefined, originalTopic: origin })

const make = ({
  subject,
  decodePath,
  originalTopic
}: Pick<Fingerprinted, "subject" | "decodePath" | "originalTopic">): string => {
  const frame = firstApplicationFrame(subject.stackTrace, subject.message)
  const place =
    frame !== undefined
      ? `frame ${frame}`
      : decodePath !== undefined
        ? `path ${decodePath}`
        : `message ${masked(subject.message.slice(0, 1_000), 1, 1, 120)}`
  return `v1-${hash(`${subject.className}\n${place}\n${originalTopic}`)}`
}

/** A function that throws, or whose answer is no text of 1 to 128 characters, has no say. */
const answerOf = (own: OwnFingerprint, given: Fingerprinted, frame: string | undefined): string | undefined => {
  try {
    const { subject: _, ...failure } = given
    const answer: unknown = UserFunction.plain("fingerprint", own({ ...failure, frame }), "a text")
    return typeof answer === "string" && answer.trim() !== "" && answer.length <= longestOwn ? answer : undefined
  } catch (error) {
    UserFunction.report("fingerprint", error)
    return undefined
  }
}

/** Whether a value can be a fingerprint, of this release or of a newer one. */
export const isFingerprint = (text: unknown): text is string =>
  typeof text === "string" && /^(?:v\d{1,4}-\w{1,64}|own-.{1,128})$/s.test(text)

/** 64 bits in hexadecimal. Its answer may never change: dead letters of older releases carry it. */
const hash = (text: string): string => {
  let a = 0xdeadbeef
  let b = 0x41c6ce57
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    a = Math.imul(a ^ code, 2_654_435_761)
    b = Math.imul(b ^ code, 1_597_334_677)
  }
  const mixed = (one: number, other: number): number =>
    Math.imul(one ^ (one >>> 16), 2_246_822_507) ^ Math.imul(other ^ (other >>> 13), 3_266_489_909)
  const high = mixed(a, b)
  return hex(high) + hex(mixed(b, high))
}

const hex = (number: number): string => (number >>> 0).toString(16).padStart(8, "0")
