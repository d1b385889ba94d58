/**
 * Decides about each request before anything of it is read, logs what operators change, and audits it.
 */
import { LogFormat, LogLine, UserFunction } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { AuthorizerFailed, CrossSiteRequest, LoopbackOnly, ReadOnly } from "../AdminError.ts"
import { type Authorizer, Forbidden, type Permission, type Principal, Unauthorized } from "../Authorizer.ts"
import { EventBusAdmin } from "../EventBusAdmin.ts"
import * as Auditing from "./audit/auditing.ts"
import { replayedHeader } from "./idempotency/idempotencyKey.ts"
import { Caller, Guard, PayloadAccess, RequiredPermission } from "./middlewares.ts"
import * as OwnFiber from "./ownFiber.ts"
import { isLocal, isOfOwnPage, PeerAddress } from "./peerAddress.ts"
import { permissions as allPermissions } from "./permissions.ts"

interface Options {
  readonly authorizer: Authorizer | undefined
  readonly readOnly: boolean
}

/** Longest time that an authorizer may take. */
const authorizerTimeout = "10 seconds"

export const layer = (options: Options): Layer.Layer<Guard, never, EventBusAdmin> =>
  Layer.effect(
    Guard,
    Effect.gen(function* () {
      const admin = yield* EventBusAdmin
      return Guard.of({
        bearer: (respond, { credential, endpoint }) =>
          Effect.gen(function* () {
            const permissions = Context.getUnsafe(endpoint.annotations, RequiredPermission)
            const binding = yield* bindingOf(admin, endpoint)
            const auditing = yield* Auditing.make(admin.auditLog, { endpoint, binding, permissions })
            const caller = yield* Effect.result(admit(options, permissions, binding, credential))
            if (Result.isFailure(caller)) {
              const { _tag } = caller.failure
              if (admin.auditLog !== undefined)
                yield* auditing.refused(yield* nameOf(_tag, options, binding, credential), _tag)
              return caller.failure._tag === "Unauthorized" ? unauthorized(caller.failure) : yield* caller.failure
            }
            const { name } = caller.success
            const payload = payloadAccess(options, binding, credential, auditing)
            const { id, eventId = id } = yield* HttpRouter.params
            const said: Said = { reason: undefined }
            const answer = respond.pipe(
              Effect.provideService(PayloadAccess, payload.access),
              Effect.provideService(Caller, callerOf(options, caller.success, binding, { credential, said, auditing }))
            )
            const noted = Effect.onExit(answer, (exit) =>
              isReading(permissions) && !payload.isSeen()
                ? Effect.void
                : note(caller.success, { endpoint, binding, id: eventId, said, payload: payload.isSeen() }, exit)
            )
            if (!isReading(permissions)) return yield* auditing.change(name, noted)
            const shown = yield* noted
            if (payload.isSeen()) yield* auditing.view(name)
            return shown
          })
      })
    })
  )

/** A route that asks for nothing but `transform` shows what a function would make of a record, and changes nothing. */
const isReading = (permissions: ReadonlyArray<Permission>): boolean =>
  permissions.every((each) => each === "view" || each === "transform")

const isViewing = (permissions: ReadonlyArray<Permission>): boolean => permissions.every((each) => each === "view")

/** The reason in the body of a request. */
interface Said {
  reason: string | undefined
}

/** Without an authorizer nobody comes to a handler that demands. */
const callerOf = (
  { authorizer, readOnly }: Options,
  { name }: Principal,
  binding: string | undefined,
  {
    credential,
    said,
    auditing
  }: { readonly credential: Redacted.Redacted<string>; readonly said: Said; readonly auditing: Auditing.Auditing }
): Caller["Service"] => ({
  name,
  tell: (detail) => Effect.sync(() => auditing.tell(detail)),
  because: (reason) => {
    said.reason = reason
    auditing.tell({ reason })
  },
  demand: (permission) => {
    if (authorizer === undefined) return Effect.fail(new AuthorizerFailed())
    return Effect.map(
      ask(() => authorizer(credential, permission, binding)),
      () => auditing.used(permission)
    )
  },
  permissions:
    authorizer === undefined
      ? Effect.succeed(["view"])
      : Effect.filter(
          allPermissions.filter((permission) => !readOnly || permission.startsWith("view")),
          (permission) => Effect.isSuccess(ask(() => authorizer(credential, permission, binding)))
        )
})

/** Asks the authorizer when a handler asks. Without an authorizer nobody sees a payload, and neither where it gives no answer. */
const payloadAccess = (
  { authorizer }: Options,
  binding: string | undefined,
  credential: Redacted.Redacted<string>,
  { used }: Auditing.Auditing
): { readonly access: Effect.Effect<boolean>; readonly isSeen: () => boolean } => {
  let seen = false
  if (authorizer === undefined) return { access: Effect.succeed(false), isSeen: () => false }
  return {
    isSeen: () => seen,
    access: Effect.match(
      ask(() => authorizer(credential, "view-payload", binding)),
      {
        onSuccess: () => {
          seen = true
          used("view-payload")
          return true
        },
        onFailure: () => false
      }
    )
  }
}

/** The name of a caller that was refused: the authorizer says it where it lets the caller do something else. */
const nameOf = (
  refusal: Refusal["_tag"],
  { authorizer }: Options,
  binding: string | undefined,
  credential: Redacted.Redacted<string>
): Effect.Effect<string | undefined> => {
  if (authorizer === undefined) return Effect.succeed(refusal === "ReadOnly" ? thisMachine : undefined)
  if (refusal === "Unauthorized" || refusal === "AuthorizerFailed") return Effect.succeed(undefined)
  return Effect.match(
    firstOf(allPermissions, (permission) => ask(() => authorizer(credential, permission, binding))),
    { onSuccess: ({ name }) => name, onFailure: () => undefined }
  )
}

/** The principal of callers on this machine, where there is no authorizer. */
const thisMachine = "this machine"

/** The key, so that permission on one spelling of the name is permission on all. The audit log of one binding is about that one. */
const bindingOf = Effect.fnUntraced(function* (admin: EventBusAdmin["Service"], { identifier }: HttpApiEndpoint.Top) {
  const { searchParams } = new URL((yield* HttpServerRequest.HttpServerRequest).url, "http://localhost")
  const asked = identifier === "audit" ? (searchParams.get("binding") ?? undefined) : undefined
  const { name = asked } = yield* HttpRouter.params
  if (name === undefined) return undefined
  return yield* Effect.catch(admin.keyOf(name), () => Effect.succeed(name))
})

type Refusal = Unauthorized | Forbidden | LoopbackOnly | ReadOnly | CrossSiteRequest | AuthorizerFailed

const admit = Effect.fnUntraced(function* (
  { authorizer, readOnly }: Options,
  permissions: ReadonlyArray<Permission>,
  binding: string | undefined,
  credential: Redacted.Redacted<string>
): Effect.fn.Return<Principal, Refusal, HttpServerRequest.HttpServerRequest> {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (authorizer === undefined) {
    if (!isLocal(request, yield* PeerAddress)) return yield* new LoopbackOnly()
    if (!isViewing(permissions)) return yield* new ReadOnly({ authorizer: false })
    return { name: thisMachine }
  }
  const caller = yield* firstOf(permissions, (permission) => ask(() => authorizer(credential, permission, binding)))
  if (isViewing(permissions)) return caller
  if (readOnly) return yield* new ReadOnly({ authorizer: true })
  if (isReading(permissions)) return caller
  // Only the browser knows what let this caller through, and it would send that for a page of another site, too.
  if (Redacted.value(credential) === "" && !isOfOwnPage(request)) return yield* new CrossSiteRequest()
  return caller
})

/** The answer for the first permission that the caller has, else the refusal for the first one. */
const firstOf = (
  [first, ...others]: ReadonlyArray<Permission>,
  askFor: (permission: Permission) => Effect.Effect<Principal, Unauthorized | Forbidden | AuthorizerFailed>
): Effect.Effect<Principal, Unauthorized | Forbidden | AuthorizerFailed> =>
  Effect.catchTag(askFor(first!), "Forbidden", (forbidden) =>
    others.length === 0
      ? Effect.fail(forbidden)
      : Effect.catchTag(firstOf(others, askFor), "Forbidden", () => Effect.fail(forbidden))
  )

/** A user's function: whatever happens in it, only an answer in time lets a request through (ruling 86). */
const ask = (
  authorize: () => ReturnType<Authorizer>
): Effect.Effect<Principal, Unauthorized | Forbidden | AuthorizerFailed> =>
  UserFunction.callEffect("the authorizer", authorize).pipe(
    Effect.flatMap(principalOf),
    OwnFiber.run,
    Effect.timeoutOrElse({
      duration: authorizerTimeout,
      orElse: () => Effect.die(new Error(`The authorizer gave no answer in ${authorizerTimeout}`))
    }),
    Effect.catchCause((cause): Effect.Effect<never, Unauthorized | Forbidden | AuthorizerFailed> => {
      const refusal = refusalOf(cause)
      if (refusal !== undefined) return Effect.fail(refusal)
      return Effect.andThen(
        LogLine.error("The authorizer of the admin API failed", cause),
        Effect.fail(new AuthorizerFailed())
      )
    })
  )

/** The authorizer's refusal, made anew: its error may be a Proxy, or have getters that throw. Undefined for anything else. */
const refusalOf = (cause: Cause.Cause<unknown>): Unauthorized | Forbidden | undefined => {
  try {
    const error = Cause.squash(cause)
    if (error instanceof Unauthorized) return new Unauthorized()
    if (!(error instanceof Forbidden)) return undefined
    const { permission, binding } = error
    return new Forbidden({ permission, ...(binding === undefined ? {} : { binding }) })
  } catch {
    return undefined
  }
}

/** Reads the name once: a getter could throw, or say something else, when the command is done. */
const principalOf = (answer: unknown): Effect.Effect<Principal> => {
  const name = Predicate.hasProperty(answer, "name") ? answer.name : undefined
  return typeof name === "string"
    ? Effect.succeed({ name })
    : Effect.die(new TypeError("The authorizer's answer is no principal"))
}

/** RFC 9110 asks for the header. */
const unauthorized = ({ _tag, message }: Unauthorized) =>
  HttpServerResponse.jsonUnsafe({ _tag, message }, { status: 401, headers: { "www-authenticate": "Bearer" } })

/** The request that a line is about. */
interface Asked {
  readonly endpoint: HttpApiEndpoint.Top
  readonly binding: string | undefined
  /** The id in its path. */
  readonly id: string | undefined
  readonly said: Said
  readonly payload: boolean
}

/** Why, of a command on a binding. */
const reasonOf = Effect.map(HttpServerRequest.HttpServerRequest, ({ url }) => {
  const { searchParams } = new URL(url, "http://localhost")
  return searchParams.get("reason")?.slice(0, longestReason)
})

/** A request is noted whatever it says, and its reason may be longer than one that is taken. */
const longestReason = 1_000

/** One line for each change that somebody asked for, or payload that somebody saw, and how it ended. */
const note = Effect.fnUntraced(function* (
  { name }: Principal,
  { endpoint: { identifier }, binding, id, said, payload }: Asked,
  exit: Exit.Exit<HttpServerResponse.HttpServerResponse, unknown>
) {
  const of = binding === undefined ? "" : ` of binding '${binding}'`
  const what = `${identifier}${id === undefined ? "" : ` '${id}'`}${of}${payload ? ", with payload," : ""}`
  const reason = said.reason ?? (yield* reasonOf)
  const why = reason === undefined ? "" : `, because: ${reason}`
  // A name or a reason with a line break must not look like another line.
  yield* LogLine.info(LogFormat.oneLine(`Admin API: ${what} by ${name}: ${outcomeOf(exit)}${why}`))
})

const outcomeOf = (exit: Exit.Exit<HttpServerResponse.HttpServerResponse, unknown>): string => {
  if (Exit.isSuccess(exit) && replayedHeader in exit.value.headers) return "answered again, and not done again"
  if (Exit.isSuccess(exit)) return exit.value.status < 300 ? "done" : `refused (${exit.value.status})`
  if (Cause.hasInterruptsOnly(exit.cause)) return "its caller left before the end"
  const error = Auditing.errorOf(Cause.squash(exit.cause))
  const isTyped = !Cause.hasDies(exit.cause) && Predicate.hasProperty(error, "_tag")
  return isTyped ? `refused (${error._tag})` : "failed"
}
