/**
 * The handlers of the routes about plans and runs. Which permission a request needs depends on what its plan does.
 */
import type { ReplayPlan } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type { AdminApi } from "../../AdminApi.ts"
import { InvalidRequest } from "../../AdminError.ts"
import type { AdminLetters } from "../../AdminLetters.ts"
import type { Permission } from "../../Authorizer.ts"
import { EventBusAdmin } from "../../EventBusAdmin.ts"
import type * as RunAnswers from "../../RunAnswers.ts"
import { Caller, payloadView } from "../middlewares.ts"
import { bodyOf, onCluster } from "../requests/requests.ts"
import * as PlanBody from "./planBody.ts"
import { targetOf } from "./selectionTarget.ts"

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

const reasonOf = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
  const reason = yield* bodyOf(request, PlanBody.readReason)
  yield* (yield* Caller).tell({ reason })
  return reason
})

/** Letters in the sample of a plan. */
const mostOfSample = 20

const tooMany = (count: number) =>
  new InvalidRequest({
    issues: [{ path: "count", found: String(count), allowed: `a whole number, 1 to ${mostOfSample}` }]
  })

interface Of {
  readonly name: string
  readonly id: string
}

/** The audit log has the settings and the selection of the plan, and its id. */
const makePlan = Effect.fnUntraced(function* (
  admin: EventBusAdmin["Service"],
  { name, topic }: { readonly name: string; readonly topic: string | undefined },
  request: HttpServerRequest.HttpServerRequest
) {
  const body = yield* bodyOf(request, PlanBody.readPlan)
  const { name: by, tell } = yield* Caller
  const { select, reason, canaryWait: _, ...settings } = body
  yield* tell({ reason, target: { ...settings, ...targetOf(select) } })
  yield* demand(needed(body))
  const plan = onCluster(admin.ofTopic(topic).makePlan(name, { ...body, by }, yield* payloadView))
  return yield* Effect.tap(plan, ({ id }) => tell({ run: id }))
})

const sampleOf = Effect.fnUntraced(function* (
  letters: AdminLetters,
  { name, id }: Of,
  sample: { readonly count?: number }
) {
  const { count } = sample
  if (count !== undefined && count > mostOfSample) return yield* tooMany(count)
  return yield* onCluster(letters.planSample(name, id, { ...(yield* payloadView), ...sample }))
})

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
        .handleRaw("makePlan", ({ params, query, request }) =>
          makePlan(admin, { name: params.name, topic: query.topic }, request)
        )
        .handleRaw("pauseRun", ({ params, request }) =>
          Effect.gen(function* () {
            const reason = yield* reasonOf(request)
            yield* demandToEnd(params)
            return yield* onCluster(admin.pauseRun(params.name, params.id, reason))
          })
        )
        .handleRaw("cancelRun", ({ params, request }) =>
          Effect.gen(function* () {
            const reason = yield* reasonOf(request)
            yield* demandToEnd(params)
            return yield* onCluster(admin.cancelRun(params.name, params.id, reason))
          })
        )
        .handleRaw("setRunRate", ({ params, request }) =>
          Effect.gen(function* () {
            const rate = yield* bodyOf(request, PlanBody.readRate)
            yield* (yield* Caller).tell({ target: { rate } })
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
            Effect.flatMap(payloadView, (options) => onCluster(admin.getPlan(params.name, params.id, options))),
          planSample: ({ params, query: { topic, ...sample } }) => sampleOf(admin.ofTopic(topic), params, sample),
          runs: ({ params }) => Effect.flatMap(payloadView, (options) => onCluster(admin.runs(params.name, options))),
          receipt: ({ params }) =>
            Effect.flatMap(payloadView, (options) => onCluster(admin.receipt(params.name, params.id, options)))
        })
    })
  )
