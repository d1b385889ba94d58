/** Asks one after the other until one answers. One that is silent for a second is not given up: the next one is asked as well, and the first answer counts (ruling 82). */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Result from "effect/Result"
import { type ClientFailure, failure, Local } from "../../ClientFailure.ts"

/** How long one may be silent before the next one is asked. */
export const patienceMillis = 1_000

/** Failures after which another one is asked. All others, such as a wrong password, would be the same everywhere. */
const mayDiffer = new Set<string>([Local.connection, Local.timeout, Local.tls])

/** True when another address may answer, or the same one later. */
export const isWorthAnotherTry = ({ type }: ClientFailure): boolean => mayDiffer.has(type)

/** One failure of all: the details of each, and the type of the first that says more than that nothing answered. */
const together = (failures: ReadonlyArray<ClientFailure>): ClientFailure => {
  const first = failures.find(({ type }) => type === Local.tls) ?? failures.at(-1)
  return first === undefined
    ? failure(Local.connection, "no node is known")
    : { ...first, detail: [...new Set(failures.map(({ detail }) => detail))].join("; ") }
}

/** The first answer. Fails when every attempt has failed. The attempts that are still out are interrupted then. */
export const firstAnswer = <A>(
  attempts: ReadonlyArray<Effect.Effect<A, ClientFailure>>
): Effect.Effect<A, ClientFailure> =>
  Effect.suspend(() => {
    const failures: Array<ClientFailure> = []
    if (attempts.length === 0) return Effect.fail(together(failures))
    const turns = attempts.map((_, index) => Latch.makeUnsafe(index === 0))
    const inTurn = attempts.map((attempt, index) => {
      const startNext = Effect.sync(() => void turns[index + 1]?.openUnsafe())
      const noteFailure = (failed: ClientFailure) =>
        Effect.sync(() => {
          failures.push(failed)
          turns[index + 1]?.openUnsafe()
        })
      const outcome = Effect.result(attempt).pipe(
        Effect.flatMap((result) =>
          Result.isFailure(result) && isWorthAnotherTry(result.failure)
            ? Effect.andThen(noteFailure(result.failure), Effect.fail(result.failure))
            : Effect.succeed(result)
        )
      )
      const whenSilent = Effect.sleep(patienceMillis).pipe(Effect.andThen(startNext), Effect.andThen(Effect.never))
      return Effect.andThen(turns[index]!.await, Effect.raceFirst(outcome, whenSilent))
    })
    return Effect.raceAll(inTurn).pipe(
      Effect.mapError(() => together(failures)),
      Effect.flatMap((result) => Effect.fromResult(result))
    )
  })
