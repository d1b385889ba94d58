/**
 * The handlers of the routes about records that wait for the decision of an operator.
 */
import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type { AdminApi } from "../../AdminApi.ts"
import type { HeldCommand } from "../../AdminHeld.ts"
import { EventBusAdmin } from "../../EventBusAdmin.ts"
import { payloadView } from "../middlewares.ts"
import { positionOf } from "../requests/requests.ts"

interface Decision {
  readonly params: { readonly name: string; readonly position: string }
  readonly query: { readonly reason: string; readonly topic?: string }
}

const decided =
  (command: HeldCommand) =>
  ({ params, query: { reason, topic } }: Decision) =>
    Effect.flatMap(positionOf(params.position, "heldPosition"), (position) =>
      command(params.name, { ...position, ...(topic === undefined ? {} : { topic }) }, reason)
    )

export const layer = (api: AdminApi) =>
  HttpApiBuilder.group(
    api,
    "held",
    Effect.fnUntraced(function* (handlers) {
      const admin = yield* EventBusAdmin
      return handlers.handleAll({
        held: ({ params }) => Effect.flatMap(payloadView, (view) => admin.held(params.name, view)),
        skipHeld: decided(admin.skip),
        deadLetterHeld: decided(admin.deadLetter)
      })
    })
  )
