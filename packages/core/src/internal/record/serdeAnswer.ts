/**
 * The answer of a user's serde. It may be something else than its type says (ruling 86), so everything that calls `decode` or `encode` looks at it here, inside of a guard.
 */
import * as Result from "effect/Result"
import * as UserFunction from "../../UserFunction.ts"

/** Answers the Result that `what` returned. Throws a `TypeError` for any other value; the rejection of a Promise is logged when it comes. */
export const resultOf = <A, E>(what: "decode" | "encode", answer: Result.Result<A, E>): Result.Result<A, E> => {
  if (isResult(answer)) return answer
  UserFunction.settled(what, answer)
  throw new TypeError(`${what} returned ${UserFunction.kindOf(answer)}; a Result is expected`)
}

/**
 * `Result.isResult` in a form that V8 resolves while it compiles, so that it need not allocate the results: this runs for each half of each record. By Effect's own
 * name for the property; under another name, `Result.isResult` answers alone.
 */
const isResult = (answer: { readonly "~effect/Result"?: unknown } | null | undefined): boolean =>
  answer?.["~effect/Result"] !== undefined || Result.isResult(answer)
