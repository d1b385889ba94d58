/**
 * The handlers of the routes about dead letters, one by one and in groups. Each asks whether its caller may see payloads.
 */
import { DeadLetterGroup } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type { AdminApi } from "../AdminApi.ts"
import { InvalidRequest } from "../AdminError.ts"
import { EventBusAdmin } from "../EventBusAdmin.ts"
import { Caller, payloadView } from "./middlewares.ts"
import { bodyOf, onCluster, positionOf } from "./requests/requests.ts"
import * as SelectionBody from "./requests/selectionBody.ts"
import { targetOf } from "./runs/selectionTarget.ts"

export const layer = (api: AdminApi) =>
  HttpApiBuilder.group(
    api,
    "letters",
    Effect.fnUntraced(function* (handlers) {
      const admin = yield* EventBusAdmin
      return handlers
        .handleRaw("rehearse", ({ params, query, request }) =>
          Effect.gen(function* () {
            const { select, ...options } = yield* bodyOf(request, SelectionBody.readBody)
            const { demand, tell } = yield* Caller
            yield* tell({ target: { ...targetOf(select), ...options } })
            if (options.transform !== undefined) yield* demand("transform")
            return yield* Effect.tap(admin.ofTopic(query.topic).rehearse(params.name, select, options), ({ id }) =>
              tell({ run: id })
            )
          })
        )
        .handleAll({
          groups: ({ params, query: { state, topic } }) =>
            Effect.gen(function* () {
              const states = state?.filter(isGroupState)
              if (state !== undefined && states?.length !== state.length) return yield* wrongState(state)
              const options = states === undefined ? {} : { states }
              return yield* onCluster(admin.ofTopic(topic).groups(params.name, { ...options, ...(yield* payloadView) }))
            }),
          records: ({ params, query: { group, state, topic, ...rest } }) =>
            Effect.gen(function* () {
              const query = {
                ...rest,
                ...(group === undefined ? {} : { fingerprint: group }),
                ...(state === undefined ? {} : { states: state })
              }
              return yield* onCluster(admin.ofTopic(topic).letters(params.name, { ...query, ...(yield* payloadView) }))
            }),
          record: ({ params, query: { topic } }) =>
            Effect.gen(function* () {
              const position = yield* positionOf(params.position, "position")
              return yield* onCluster(admin.ofTopic(topic).letter(params.name, position, yield* payloadView))
            }),
          transformed: ({ params, query: { transform, topic } }) =>
            Effect.gen(function* () {
              const position = yield* positionOf(params.position, "position")
              return yield* onCluster(
                admin.ofTopic(topic).transformed(params.name, position, transform, yield* payloadView)
              )
            }),
          rehearsal: ({ params }) =>
            Effect.flatMap(payloadView, (options) => admin.rehearsal(params.name, params.id, options))
        })
    })
  )

const isGroupState = (state: string): state is DeadLetterGroup.GroupState =>
  DeadLetterGroup.states.some((each) => each === state)

const wrongState = (state: ReadonlyArray<string>) =>
  Effect.fail(
    new InvalidRequest({
      issues: [
        { path: "state", found: state.join(","), allowed: `one or more of ${DeadLetterGroup.states.join(", ")}` }
      ]
    })
  )
