/**
 * The handlers of the routes about plans and runs. Which permission a request needs depends on what its plan does.
 */
import type { ReplayPlan } from "@eventbus/core"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { AdminApi } from "../../AdminApi.ts"
import type { Permission } from "../../Authorizer.ts"
import { EventBusAdmin } from "../../EventBusAdmin.ts"
import type * as RunAnswers from "../../RunAnswers.ts"
import { Caller, PayloadAccess } from "../middlewares.ts"
import { bodyOf, onCluster } from "../requests.ts"
import * as PlanBody from "./planBody.ts"

/** Whether the caller may see payloads. */
const view = Effect.map(Effect.flatten(PayloadAccess), (payload) => ({ payload }))

/** The permissions that a plan needs, all of them. */
const needed = ({
  action,
  transform
}: Pick<ReplayPlan.PlanRequest, "action" | "transform">): ReadonlyArray<Permission> => [
  action === "discard" || action === "restore" ? "discard" : "replay",
  ...(transform === undefined ? [] : (["transform"] as const))
]

const demand = Effect.fnUntraced(function* (permissions: ReadonlyArray<Permission>) {
  const caller = yield* Caller
  for (const permission of permissions) yield* caller.demand(permission)
})

interface Of {
  readonly name: string
  readonly id: string
}

export const layer = (api: AdminApi) =>
  HttpApiBuilder.group(
    api,
    "runs",
    Effect.fnUntraced(function* (handlers) {
      const admin = yield* EventBusAdmin
      /** An id that has no plan has no run either, and the command says so. */
      const planOf = ({ name, id }: Of) =>
        Effect.catchTag(onCluster(admin.getPlan(name, id)), "UnknownPlan", () => Effect.succeed(undefined))
      const demandOf = (of: Of) =>
        Effect.flatMap(planOf(of), (plan: RunAnswers.Plan | undefined) =>
          plan === undefined ? Effect.void : demand(needed(plan))
        )
      /** Operators of the binding may end the work on a run, and so may those who may begin it. */
      const demandToEnd = (of: Of) =>
        Effect.catchTag(demand(["operate"]), "Forbidden", (forbidden) =>
          Effect.catchTag(demandOf(of), "Forbidden", () => Effect.fail(forbidden))
        )
      return handlers
        .handleRaw("makePlan", ({ params, request }) =>
          Effect.gen(function* () {
            const body = yield* bodyOf(request, PlanBody.readPlan)
            yield* demand(needed(body))
            const { name: by } = yield* Caller
            return yield* onCluster(admin.makePlan(params.name, { ...body, by }, yield* view))
          })
        )
        .handleRaw("pauseRun", ({ params, request }) =>
          Effect.gen(function* () {
            const reason = yield* bodyOf(request, PlanBody.readReason)
            yield* demandToEnd(params)
            return yield* onCluster(admin.pauseRun(params.name, params.id, reason))
          })
        )
        .handleRaw("cancelRun", ({ params, request }) =>
          Effect.gen(function* () {
            const reason = yield* bodyOf(request, PlanBody.readReason)
            yield* demandToEnd(params)
            return yield* onCluster(admin.cancelRun(params.name, params.id, reason))
          })
        )
        .handleRaw("setRunRate", ({ params, request }) =>
          Effect.gen(function* () {
            const rate = yield* bodyOf(request, PlanBody.readRate)
            yield* demandOf(params)
            return yield* onCluster(admin.setRunRate(params.name, params.id, rate))
          })
        )
        .handleRaw("resumeRun", ({ params, request }) =>
          Effect.gen(function* () {
            yield* bodyOf(request, PlanBody.readNothing, "{}")
            yield* demandOf(params)
            return yield* onCluster(admin.resumeRun(params.name, params.id))
          })
        )
        .handleRaw("applyPlan", ({ params, request }) =>
          Effect.gen(function* () {
            yield* bodyOf(request, PlanBody.readNothing, "{}")
            yield* demandOf(params)
            return yield* onCluster(admin.applyPlan(params.name, params.id))
          })
        )
        .handleAll({
          plan: ({ params }) =>
            Effect.flatMap(view, (options) => onCluster(admin.getPlan(params.name, params.id, options))),
          runs: ({ params }) => Effect.flatMap(view, (options) => onCluster(admin.runs(params.name, options))),
          receipt: ({ params }) =>
            Effect.flatMap(view, (options) => onCluster(admin.receipt(params.name, params.id, options)))
        })
    })
  )
