/**
 * One shape for every reason that a handler failed: typed errors, defects, and any other value that JavaScript can throw (ruling 16).
 *
 * Nothing in this file throws, however hostile the value is: a getter that throws, a revoked Proxy, a null prototype, a cyclic cause.
 */
import * as Cause from "effect/Cause"
import type { ErrorSummary, Failure } from "../../Failure.ts"
import { fieldsText } from "./fieldsText.ts"
import { isWrapper } from "./wrapper.ts"

const maxCauses = 10
const maxClassNameLength = 256
/** Characters of one message or one stack trace in a log line. */
const maxTraceLength = 4_096

/** The failure in a cause: its first typed error, or else its first defect. Undefined when the cause holds interruptions only. */
export const fromCause = <E>(cause: Cause.Cause<E>): Failure | undefined => {
  const failed = cause.reasons.find(Cause.isFailReason)
  if (failed !== undefined) return fromUnknown(failed.error)
  const died = cause.reasons.find(Cause.isDieReason)
  if (died !== undefined) return fromUnknown(died.defect)
  return cause.reasons.length > 0 ? undefined : withoutReason
}

/** The failure that a thrown value stands for. */
export const fromUnknown = (error: unknown): Failure => new UnknownFailure(error)

/** Reads costly properties lazily, most of all the stack trace: the engine formats it on first access, and it is often never needed. */
class UnknownFailure implements Failure {
  readonly error: unknown
  readonly className: string
  readonly tag: string | undefined
  #message: string | undefined
  #stackTrace: string | undefined
  #causes: ReadonlyArray<ErrorSummary> | undefined

  constructor(error: unknown) {
    this.error = error
    this.tag = textProperty(error, "_tag")
    this.className = classNameOf(error, this.tag)
  }

  get message(): string {
    this.#message ??= messageOf(this.error)
    return this.#message
  }

  get stackTrace(): string {
    this.#stackTrace ??= textProperty(this.error, "stack") ?? ""
    return this.#stackTrace
  }

  get causes(): ReadonlyArray<ErrorSummary> {
    this.#causes ??= causesOf(this.error)
    return this.#causes
  }
}

const withoutReason: Failure = {
  className: "EmptyCause",
  message: "failed without a reason",
  stackTrace: "",
  tag: undefined,
  error: undefined,
  causes: []
}

const summarize = (error: unknown): ErrorSummary => ({
  className: classNameOf(error, textProperty(error, "_tag")),
  message: messageOf(error)
})

const classNameOf = (error: unknown, tag: string | undefined): string => {
  if (!isObject(error)) return error === null ? "null" : typeof error
  const name = tag ?? ownErrorName(error) ?? textProperty(property(error, "constructor"), "name") ?? "Object"
  return name.slice(0, maxClassNameLength)
}

/** The `name` of an error that sets one. "Error" does not count: a subclass inherits it when it sets no name. */
const ownErrorName = (error: object): string | undefined => {
  const name = textProperty(error, "stack") === undefined ? undefined : textProperty(error, "name")
  return name === "Error" ? undefined : name
}

const messageOf = (error: unknown): string => {
  if (!isObject(error)) return String(error)
  const message = textProperty(error, "message")
  if (message !== undefined) return message
  return fieldsText(error)
}

const causesOf = (error: unknown): ReadonlyArray<ErrorSummary> => {
  const causes: Array<ErrorSummary> = []
  const seen = new Set<unknown>([error])
  let cause = causeOf(error)
  while (cause !== undefined && cause !== null && !seen.has(cause) && causes.length < maxCauses) {
    seen.add(cause)
    causes.push(summarize(cause))
    cause = causeOf(cause)
  }
  return causes
}

/** The cause of an error. An error that stands for several, such as that of a connection to a host with two addresses, mostly says nothing itself: the first of them is its cause. */
const causeOf = (error: unknown): unknown => {
  const cause = property(error, "cause")
  return (cause === undefined || cause === null) && textProperty(error, "name") === "AggregateError"
    ? property(property(error, "errors"), "0")
    : cause
}

/** The error that tells where a failure comes from: the cause of what `Effect.try` and `Effect.tryPromise` wrapped, else the failure itself. */
export const subjectOf = (failure: Failure): Failure => {
  let subject = failure
  for (let depth = 0; depth < maxCauses && isWrapper(subject); depth++) {
    const cause = causeOf(subject.error)
    if (cause === undefined || cause === null) break
    subject = fromUnknown(cause)
  }
  return subject
}

/**
 * The stack traces of a failure and of its causes as a plain error, which a logger can print however hostile the original is. Undefined where nothing of them has a
 * stack trace.
 */
export const printable = ({ error }: Failure): Error | undefined => {
  const chain: Array<unknown> = []
  for (let each = error; isObject(each) && !chain.includes(each) && chain.length <= maxCauses; each = causeOf(each)) {
    chain.push(each)
  }
  if (!chain.some((each) => textProperty(each, "stack") !== undefined)) return undefined
  return chain.reduceRight<Error | undefined>((cause, each) => plainError(each, cause), undefined)
}

const plainError = (error: unknown, cause: Error | undefined): Error => {
  const { className, message: given } = summarize(error)
  // On one line: a message that looks like further lines of the log forges none.
  const message = given.slice(0, maxTraceLength).replace(controls, " ")
  const plain = new Error(message, cause === undefined ? {} : { cause })
  const frames = (textProperty(error, "stack") ?? "").split("\n").filter((line) => /^\s+at /.test(line))
  plain.name = className.replace(controls, " ")
  plain.stack = [`${plain.name}: ${message}`, ...frames].join("\n").slice(0, maxTraceLength)
  return plain
}

const controls = /[\p{Cc}\u2028\u2029]+/gu

const isObject = (value: unknown): value is object =>
  (typeof value === "object" && value !== null) || typeof value === "function"

const property = (value: unknown, key: string): unknown => {
  if (!isObject(value)) return undefined
  try {
    return Reflect.get(value, key)
  } catch {
    return undefined
  }
}

/** A property whose value is a text that is not blank. */
const textProperty = (value: unknown, key: string): string | undefined => {
  const text = property(value, key)
  return typeof text === "string" && text.trim() !== "" ? text : undefined
}
