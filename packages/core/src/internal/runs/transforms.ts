/**
 * Calls the user's functions that repair dead letters. Nothing that such a function does ends a run: a letter that it skips, fails for, or answers something for that the
 * serde cannot encode, stays, and the reason is counted.
 */
import { Cause, Effect, Exit, Fiber, Option, Result } from "effect"
import type { Header } from "../../ConsumerRecord.ts"
import type { DeadLetterRecord } from "../../DeadLetterRecord.ts"
import { type LetterTransform, Skip } from "../../LetterTransform.ts"
import type * as Serde from "../../Serde.ts"
import * as UserFunction from "../../UserFunction.ts"
import { has, isObject, read } from "../base/properties.ts"
import * as Failures from "../failure/failure.ts"
import { failureText } from "../failure/failureText.ts"
import * as Names from "../record/headerNames.ts"

interface Options {
  /** The name of the function. */
  readonly name: string
  readonly transform: LetterTransform<unknown, unknown>
  readonly serdes: { readonly key: Serde.Any; readonly value: Serde.Any }
}

/** The longest time of one call. */
const timeoutMillis = 30_000

/** Most characters of a reason: many letters have one in common. */
const longestReason = 300

const encoder = new TextEncoder()

/** The letter with the content of its copy, or why it stays. */
export const prepare =
  (options: Options) =>
  (letter: DeadLetterRecord): Effect.Effect<DeadLetterRecord | string> =>
    Effect.map(call(options, letter), (answer) => {
      const prepared = Result.flatMap(answer, (value) => encoded(options, letter, value))
      return Result.isSuccess(prepared)
        ? prepared.success
        : `Transform '${options.name}' ${prepared.failure}`.slice(0, longestReason)
    })

/** Runs in a fiber of its own, so that a function that resists its interruption holds nothing up. */
const call = Effect.fnUntraced(function* (
  { name, transform }: Options,
  letter: DeadLetterRecord
): Effect.fn.Return<Result.Result<unknown, string>> {
  const calling = yield* Effect.forkDetach(
    Effect.interruptible(UserFunction.callIsolated(`transform '${name}'`, () => transform(letter))),
    { startImmediately: true }
  )
  const ended = yield* Effect.onInterrupt(Effect.timeoutOption(Fiber.await(calling), timeoutMillis), () =>
    Effect.sync(() => calling.interruptUnsafe())
  )
  if (Option.isNone(ended)) {
    calling.interruptUnsafe()
    return Result.fail(`did not end within ${timeoutMillis} ms.`)
  }
  return Exit.isSuccess(ended.value) ? Result.succeed(ended.value.value) : Result.fail(whyNot(ended.value.cause))
})

const whyNot = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof Skip ? `skips it: ${error.reason}` : `failed: ${failureText(Failures.fromUnknown(error))}`
}

type Prepared = Result.Result<DeadLetterRecord, string>

const encoded = ({ name, serdes }: Options, letter: DeadLetterRecord, answer: unknown): Prepared => {
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

/** A serde that throws, or that answers no Result, breaks its contract. */
const bytesOf = (serde: Serde.Any, value: unknown): Result.Result<Encoded, string> => {
  try {
    const bytes = UserFunction.plain("encode", serde.encode(value), "a Result")
    if (!Result.isResult(bytes))
      return Result.fail(`encode returned ${UserFunction.kindOf(bytes)}; a Result is expected`)
    if (Result.isFailure(bytes)) return Result.fail(bytes.failure.message)
    const headers = serde.headers === undefined ? [] : UserFunction.plain("headers", serde.headers(value), "a list")
    return Array.isArray(headers)
      ? Result.succeed({ bytes: bytes.success, headers })
      : Result.fail(`headers returned ${UserFunction.kindOf(headers)}; a list is expected`)
  } catch (thrown) {
    return Result.fail(failureText(Failures.fromUnknown(thrown)))
  }
}
