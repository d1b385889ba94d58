/** The failures of error codes, and what they mean to this client. */
import * as Effect from "effect/Effect"
import { type ClientFailure, failure, fromThrown, Local } from "../../ClientFailure.ts"
import { errorName } from "../protocol/errorNames.ts"

/** The failure of a broker's error code; undefined for 0, which is success. */
export const failureOfCode = (code: number, detail?: string | null): ClientFailure | undefined =>
  code === 0 ? undefined : failure(errorName(code), detail ?? `the broker answered error ${code}`)

/** Fails with the first of the codes that is an error. */
export const check = (...codes: ReadonlyArray<number | undefined>): Effect.Effect<void, ClientFailure> => {
  const first = codes.find((code) => code !== undefined && code !== 0)
  return first === undefined ? Effect.void : Effect.fail(failureOfCode(first)!)
}

/** A defect as a failure, for fibers that live long: one that died of it in silence would leave its session, or its records, waiting for ever. */
export const defectAsFailure = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | ClientFailure, R> =>
  Effect.catchDefect(effect, (defect) => Effect.fail(fromThrown(defect)))

const coordinatorTypes = new Set<string>([
  Local.connection,
  "NOT_COORDINATOR",
  "COORDINATOR_NOT_AVAILABLE",
  "COORDINATOR_LOAD_IN_PROGRESS",
  "CONCURRENT_TRANSACTIONS",
  "UNSTABLE_OFFSET_COMMIT"
])

/** True when the coordinator must be looked up again. */
export const isCoordinatorFailure = (type: string): boolean => coordinatorTypes.has(type)

/** True when a newer producer owns the transactional id. */
export const isFenced = (type: string): boolean => type === "PRODUCER_FENCED" || type === "INVALID_PRODUCER_EPOCH"
