/** A request to the one node that has a role: it is given up when another node has taken the role over, so a silent node delays by seconds (ruling 82). */
import * as Effect from "effect/Effect"
import type { ClientFailure } from "../../ClientFailure.ts"
import { patienceMillis } from "./firstAnswer.ts"

/**
 * Runs a request. While it has no answer, looks every second whether the role has `moved`, and fails with that then. A look-up that fails says nothing:
 * the node may still answer.
 */
export const untilMoved = <A, E>(
  request: Effect.Effect<A, E | ClientFailure>,
  moved: Effect.Effect<ClientFailure | undefined, ClientFailure>
): Effect.Effect<A, E | ClientFailure> => {
  const look = Effect.sleep(patienceMillis).pipe(
    Effect.andThen(Effect.orElseSucceed(moved, () => undefined)),
    Effect.flatMap((failed) => (failed === undefined ? Effect.void : Effect.fail(failed)))
  )
  return Effect.raceFirst(request, Effect.forever(look))
}
