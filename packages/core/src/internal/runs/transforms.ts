/**
 * Calls the user's functions that repair dead letters. Nothing that such a function does ends a run: a letter that it skips, fails for, or answers something for that the
 * serde cannot encode, stays, and the reason is counted.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { Header } from "../../ConsumerRecord.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import { type LetterTransform, Skip } from "../../LetterTransform.ts"
import type * as Serde from "../../Serde.ts"
import * as UserFunction from "../../UserFunction.ts"
import { isBytesOrNull } from "../base/bytes.ts"
import { has, isObject, read } from "../base/properties.ts"
import * as Failures from "../failure/failure.ts"
import { failureText } from "../failure/failureText.ts"
import * as Names from "../record/headerNames.ts"
import * as SerdeAnswer from "../record/serdeAnswer.ts"

interface Options {
  /** The name of the function. */
  readonly name: string
  readonly transform: LetterTransform<unknown, unknown>
  readonly serdes: { readonly key: Serde.Any; readonly value: Serde.Any }
}

type Answer<A> = Result.Result<A, string>

/** The longest time of one call. */
const timeoutMillis = 30_000

/** Most characters of a reason: many letters have one in common. */
const longestReason = 300

const encoder = new TextEncoder()

/** The letter with the content of its copy, or why it stays. */
export const prepare =
  (options: Options) =>
  (letter: DeadLetterRecord): Effect.Effect<DeadLetterRecord | string> =>
    Effect.map(call(options, letter), (ended) => {
      const prepared = guarded(() => Result.flatMap(answerOf(ended), (value) => encoded(options, letter, value)))
      return Result.isSuccess(prepared)
        ? prepared.success
        : `Transform '${options.name}' ${prepared.failure}`.slice(0, longestReason)
    })

/** Runs in a fiber of its own, so that a function that resists its interruption holds nothing up. */
const call = Effect.fnUntraced(function* (
  { name, transform }: Options,
  letter: DeadLetterRecord
): Effect.fn.Return<Exit.Exit<unknown, unknown> | undefined> {
  const calling = yield* Effect.forkDetach(
    Effect.interruptible(UserFunction.callIsolated(`transform '${name}'`, () => transform(letter))),
    { startImmediately: true }
  )
  const ended = yield* Effect.onInterrupt(Effect.timeoutOption(Fiber.await(calling), timeoutMillis), () =>
    Effect.sync(() => calling.interruptUnsafe())
  )
  if (Option.isSome(ended)) return ended.value
  calling.interruptUnsafe()
  return undefined
})

/** The user's values are looked at in here alone: getters and Proxies among them throw. */
const guarded = <A>(look: () => Answer<A>): Answer<A> => {
  try {
    return look()
  } catch (thrown) {
    return Result.fail(`failed: ${failureText(Failures.fromUnknown(thrown))}`)
  }
}

const answerOf = (ended: Exit.Exit<unknown, unknown> | undefined): Answer<unknown> => {
  if (ended === undefined) return Result.fail(`did not end within ${timeoutMillis} ms.`)
  return Exit.isSuccess(ended) ? Result.succeed(ended.value) : Result.fail(whyNot(ended.cause))
}

const whyNot = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  if (error instanceof Skip && typeof error.reason === "string") return `skips it: ${error.reason}`
  return `failed: ${failureText(Failures.fromUnknown(error))}`
}

const encoded = ({ name, serdes }: Options, letter: DeadLetterRecord, answer: unknown): Answer<DeadLetterRecord> => {
  if (!isObject(answer) || !has(answer, "value"))
    return Result.fail(`answered ${UserFunction.kindOf(answer)}; an object with a value is expected.`)
  const value = bytesOf(serdes.value, read(answer, "value"))
  if (Result.isFailure(value)) return Result.fail(`made a value that cannot be encoded: ${value.failure}`)
  const key = has(answer, "key") ? bytesOf(serdes.key, read(answer, "key")) : undefined
  if (key !== undefined && Result.isFailure(key))
    return Result.fail(`made a key that cannot be encoded: ${key.failure}`)
  const headers = [...value.success.headers, ...(key?.success.headers ?? [])]
  const replaced = new Set(headers.map((header) => header.key))
  return Result.succeed({
    ...letter,
    key: key === undefined ? letter.key : key.success.bytes,
    value: value.success.bytes,
    headers: [
      ...letter.headers.filter((header) => !replaced.has(header.key)),
      ...headers,
      { key: Names.transformedBy, value: encoder.encode(name) }
    ]
  })
}

interface Encoded {
  readonly bytes: Uint8Array | null
  /** Without them, nobody can decode the bytes. */
  readonly headers: ReadonlyArray<Header>
}

/** A serde that throws, or that answers something else than its type says, breaks its contract. */
const bytesOf = (serde: Serde.Any, value: unknown): Answer<Encoded> =>
  guarded(() => {
    const answer = SerdeAnswer.resultOf("encode", serde.encode(value))
    if (Result.isFailure(answer)) return Result.fail(Failures.fromUnknown(answer.failure).message)
    const bytes: unknown = answer.success
    if (!isBytesOrNull(bytes))
      return Result.fail(`encode succeeded with ${UserFunction.kindOf(bytes)}; bytes or null are expected`)
    const headers = serde.headers === undefined ? [] : UserFunction.plain("headers", serde.headers(value), "a list")
    if (!Array.isArray(headers))
      return Result.fail(`headers returned ${UserFunction.kindOf(headers)}; a list is expected`)
    const read = Array.from(headers, headerOf)
    return read.every((header) => header !== undefined)
      ? Result.succeed({ bytes, headers: read })
      : Result.fail("headers returned an entry that is no header: a text as key, and bytes or null as value")
  })

/** Read once: a getter may answer differently the next time. */
const headerOf = (given: unknown): Header | undefined => {
  if (!isObject(given)) return undefined
  const [key, value] = [read(given, "key"), read(given, "value")]
  return typeof key === "string" && isBytesOrNull(value) ? { key, value } : undefined
}
