/**
 * The handlers of the routes about parked keys.
 */
import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type { AdminApi } from "../../AdminApi.ts"
import type { ParkedCommand } from "../../AdminParked.ts"
import { EventBusAdmin } from "../../EventBusAdmin.ts"
import { payloadView } from "../middlewares.ts"
import { onCluster, positionOf } from "../requests/requests.ts"

interface Decision {
  readonly params: { readonly name: string; readonly position: string }
  readonly query: { readonly reason: string; readonly topic?: string }
}

const decided =
  (command: ParkedCommand) =>
  ({ params, query: { reason, topic } }: Decision) =>
    Effect.gen(function* () {
      const position = yield* positionOf(params.position, "parkedPosition")
      const record = { ...position, ...(topic === undefined ? {} : { topic }) }
      return yield* onCluster(command(params.name, record, reason))
    })

export const layer = (api: AdminApi) =>
  HttpApiBuilder.group(
    api,
    "parked",
    Effect.fnUntraced(function* (handlers) {
      const admin = yield* EventBusAdmin
      return handlers.handleAll({
        parked: ({ params, query }) =>
          Effect.flatMap(payloadView, (view) => onCluster(admin.parked(params.name, { ...query, ...view }))),
        retryParked: decided(admin.retryParked),
        skipParked: decided(admin.skipParked),
        acceptParkedLoss: ({ params, query }) =>
          onCluster(admin.acceptParkedLoss(params.name, query.keys, query.reason))
      })
    })
  )
