/**
 * Audits one request of the admin API: what it changes before and after, the payloads that it shows before they are shown, and its refusal. Without an audit log it does nothing.
 */
import type { AuditView } from "@eventbus/core"
import { Audit } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as Predicate from "effect/Predicate"
import type { Permission } from "../../Authorizer.ts"
import { replayedHeader } from "../idempotency/idempotencyKey.ts"

type Log = Audit.Audit["Service"]

type Answer = Exit.Exit<HttpServerResponse.HttpServerResponse, unknown>

/** Parameters that name what a request is about. Others may quote a record, such as a text that is looked for. */
const named = [
  "tier",
  "count",
  "from",
  "to",
  "olderThan",
  "group",
  "state",
  "topic",
  "transform",
  "eventType",
  "aggregateType"
] as const

/** The header by which the console and the command line say who they are. */
const clientHeader = "x-eventbus-client"

const sourceOf = (client: string | undefined): AuditView.Source =>
  client === "console" || client === "command-line" ? client : "http"

export interface Auditing {
  /** A handler tells what it knows of its request, beside what the address says. */
  readonly tell: (detail: AuditView.Detail) => void
  /** The caller has a further permission, and makes use of it. */
  readonly used: (permission: Permission) => void
  /** Runs a change. */
  readonly change: <E, R>(
    by: string,
    run: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ) => Effect.Effect<HttpServerResponse.HttpServerResponse, E | AuditView.AuditUnavailable, R>
  /** A payload is about to be shown. */
  readonly view: (by: string) => Effect.Effect<void, AuditView.AuditUnavailable>
  /** The request is refused before its handler sees it. */
  readonly refused: (by: string | undefined, error: string) => Effect.Effect<void>
}

interface Request {
  readonly endpoint: HttpApiEndpoint.Top
  readonly binding: string | undefined
  readonly permissions: ReadonlyArray<Permission>
}

/** Reads what the address says. */
export const make = Effect.fnUntraced(function* (log: Log | undefined, { endpoint, binding, permissions }: Request) {
  const { url, headers } = yield* HttpServerRequest.HttpServerRequest
  const { id, position } = yield* HttpRouter.params
  const { searchParams } = new URL(url, "http://localhost")
  const reason = searchParams.get("reason") ?? undefined
  const parameters = named.flatMap((name) => {
    const value = searchParams.get(name)
    return value === null ? [] : [[name, value] as const]
  })
  let detail: AuditView.Detail = {
    ...(binding === undefined ? {} : { binding }),
    ...(reason === undefined ? {} : { reason }),
    ...(id === undefined ? {} : { run: id })
  }
  let target: AuditView.Target = { ...Object.fromEntries(parameters), ...(position === undefined ? {} : { position }) }
  /** A route that takes one of several permissions is asked for the right ones by its handler. */
  const used = new Set<string>(permissions.length === 1 ? permissions : [])

  const action = (by: string | undefined): AuditView.Action => ({
    ...(by === undefined ? {} : { by }),
    ...{
      from: sourceOf(headers[clientHeader]),
      permissions: used.size === 0 ? permissions : Array.from(used),
      action: endpoint.identifier
    },
    ...detail,
    ...(Object.keys(target).length === 0 ? {} : { target })
  })

  const auditing: Auditing = {
    tell: ({ target: more, ...others }) => {
      detail = { ...detail, ...others }
      target = { ...target, ...more }
    },
    used: (permission) => void used.add(permission),
    change: (by, run) =>
      log === undefined
        ? run
        : Effect.flatMap(log.begin(action(by)), (entry) =>
            Effect.onExit(run, (exit) => log.end(entry, action(by), endingOf(exit)))
          ),
    view: (by) => (log === undefined ? Effect.void : log.view(action(by))),
    refused: (by, error) => (log === undefined ? Effect.void : log.refused(action(by), error))
  }
  return auditing
})

/** How a request ended. A repeat with an idempotency key gets its first answer and does nothing. */
const endingOf = (exit: Answer): AuditView.Ending => {
  if (Exit.isSuccess(exit) && replayedHeader in exit.value.headers)
    return { outcome: "refused", error: "AnsweredAgain" }
  if (Exit.isSuccess(exit))
    return exit.value.status < 300 ? { outcome: "done" } : { outcome: "refused", error: `Status${exit.value.status}` }
  return Audit.endingOf(Exit.failCause(Cause.map(exit.cause, errorOf)))
}

/** Effect wraps an error of a handler on its way through a middleware of security. */
export const errorOf = (error: unknown): unknown =>
  Predicate.hasProperty(error, "error") && Predicate.isObject(error.error) ? error.error : error
