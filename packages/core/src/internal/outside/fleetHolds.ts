/** The holds of the program's fleet, where it has one, as operators see them. The program is no process of the fleet. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { Fleet } from "../../Fleet.ts"
import type { Hold } from "../../FleetView.ts"
import { keepRunning } from "../base/keepRunning.ts"

/** Between two looks. */
const interval = "2 seconds"

/** The holds that were read last. A look that fails leaves them as they are. */
export const follow: Effect.Effect<() => ReadonlyArray<Hold>, never, Scope.Scope> = Effect.gen(function* () {
  const fleet = Option.getOrUndefined(yield* Effect.serviceOption(Fleet))
  let holds: ReadonlyArray<Hold> = []
  if (fleet !== undefined) {
    const look = Effect.map(fleet.view, (view) => {
      holds = view.holds
    })
    const looks = Effect.forever(Effect.andThen(Effect.ignore(look), Effect.sleep(interval)))
    yield* Effect.forkScoped(keepRunning("holds of the fleet, from outside", looks))
  }
  return () => holds
})
