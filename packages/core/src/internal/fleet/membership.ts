/** The fleet that the connectors of a program join, as `Fleet.layer` gives it. Undefined unless there is one: then a connector does nothing for it. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { FleetMember } from "./fleetMember.ts"
import type { FleetProcess } from "./fleetProcess.ts"

/** Joins with the bindings that the connector has now. */
export type Join = (members: () => ReadonlyArray<FleetMember>) => Effect.Effect<FleetProcess, never, Scope.Scope>

export const Membership = Context.Reference<Join | undefined>("@eventbus/core/Fleet/Membership", {
  defaultValue: () => undefined
})
