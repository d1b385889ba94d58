/** The handlers of start, stop, pause and resume: in this process by the connector, or in all processes by the fleet. */
import type { FleetView } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { EventBusAdmin } from "../../EventBusAdmin.ts"
import { Caller } from "../middlewares.ts"
import { bodyOf, onCluster } from "../requests/requests.ts"
import * as CommandBody from "./commandBody.ts"

interface Asked {
  readonly params: { readonly name: string }
  readonly query: CommandBody.Query
  readonly request: HttpServerRequest.HttpServerRequest
}

export const make = (admin: EventBusAdmin["Service"], verb: FleetView.Verb) =>
  Effect.fnUntraced(function* ({ params: { name }, query, request }: Asked) {
    const { scope, reason, tier, until } = yield* bodyOf(request, CommandBody.reader(verb, query), "{}")
    const caller = yield* Caller
    if (reason !== undefined) caller.because(reason)
    const ofTier = tier === undefined ? {} : { tier }
    if (scope === "fleet")
      yield* caller.tell({ target: { scope, ...ofTier, ...(until === undefined ? {} : { until }) } })
    if (scope === "process")
      return yield* verb === "start" || verb === "stop" ? admin[verb](name) : admin[verb](name, ofTier)
    // A body of this scope has a reason.
    const command = { reason: reason!, by: caller.name, ...ofTier }
    const commanded = yield* onCluster(
      admin.commandFleet(name, verb, { ...command, ...(until === undefined ? {} : { until }) })
    )
    return HttpServerResponse.jsonUnsafe(commanded, { status: 202 })
  })
