/** Commands to all processes, by the fleet of the program where it has one. */
import { type EventBusConnector, Fleet, Replay } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { FleetNotConfigured } from "../../AdminError.ts"
import type { AdminFleet } from "../../AdminFleet.ts"
import * as AnswersOf from "./fleetAnswersOf.ts"
import * as FleetCommand from "./fleetCommand.ts"

export const make = Effect.fnUntraced(function* (
  connector: Pick<EventBusConnector.EventBusConnector["Service"], "snapshot">
) {
  const found = Option.getOrUndefined(yield* Effect.serviceOption(Fleet.Fleet))
  const configured = Effect.suspend(() =>
    found === undefined ? Effect.fail(new FleetNotConfigured()) : Effect.succeed(found)
  )
  const operations: AdminFleet = {
    hasFleet: found !== undefined,
    fleet: Effect.flatMap(configured, ({ view }) => Effect.map(view, AnswersOf.viewOf)),
    commandFleet: Effect.fnUntraced(function* (name, verb, request) {
      const snapshot = yield* connector.snapshot(name)
      const fleet = yield* configured
      const { tier } = request
      const tiers = snapshot.containers.filter((container) => container.tier > 0).length
      if (tier !== undefined && tier > tiers) return yield* new Replay.UnknownTier({ tier, tiers })
      return yield* FleetCommand.run(fleet, verb, snapshot, request)
    })
  }
  return operations
})
