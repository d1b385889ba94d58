/**
 * Calls of an idempotency store. A store may be the user's: each call is bounded in time, and an answer that is none of those that the store may give is an error of the
 * store (`IdempotencyStoreError`). So the record fails, and does not wait for ever.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Claim, type IdempotencyStore, IdempotencyStoreError, type KeyState } from "../../IdempotencyStore.ts"
import * as UserFunction from "../../UserFunction.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import { isObject, read } from "../base/properties.ts"
import { shown } from "../base/shown.ts"

export type Store = IdempotencyStore["Service"]

/** The longest time of one call of the store, with its repetitions. */
const storeBound = Duration.seconds(5)

/** Calls the store, and checks its answer. */
export const ask = <A>(
  store: Store,
  operation: IdempotencyStoreError["operation"],
  isAnswer: (answer: unknown) => boolean,
  call: () => Effect.Effect<A, IdempotencyStoreError>,
  limit = storeBound
): Effect.Effect<A, IdempotencyStoreError> => {
  const failed = (retryable: boolean, cause: Error) =>
    new IdempotencyStoreError({ store: store.name, operation, retryable, cause })
  const called = Effect.catchDefect(
    UserFunction.callEffect(`'${operation}' of the idempotency store`, call),
    (defect) =>
      Effect.fail(failed(false, defect instanceof Error ? defect : new TypeError(`it ended with ${shown(defect)}`)))
  )
  return Effect.flatMap(
    awaitAtMost(called, limit),
    Option.match({
      onNone: () => Effect.fail(failed(true, new Cause.TimeoutError(`no answer within ${Duration.format(limit)}`))),
      onSome: (answer) =>
        isAnswer(answer)
          ? Effect.succeed(answer)
          : Effect.fail(failed(false, new TypeError(`it answered ${shown(answer)}`)))
    })
  )
}

/** Whether `begin` may answer this. */
export const isClaim = (answer: unknown): answer is Claim => {
  if (!isObject(answer)) return false
  if (read(answer, "_tag") !== "Started") return isTaken(answer)
  const token = read(answer, "token")
  return isObject(token) && typeof read(token, "key") === "string" && typeof read(token, "id") === "string"
}

/** Whether `lookUp` may answer this. */
export const isKeyState = (answer: unknown): answer is KeyState =>
  isObject(answer) && (read(answer, "_tag") === "Free" || isTaken(answer))

/** Whether `complete`, `abandon` and `renew` may answer this. */
export const isHeld = (answer: unknown): answer is boolean => typeof answer === "boolean"

const isTaken = (answer: object): boolean =>
  read(answer, "_tag") === "Done" ||
  (read(answer, "_tag") === "InProgress" && Number.isFinite(read(answer, "untilMillis")))
