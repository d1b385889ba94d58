/**
 * The declarations of what happens around every endpoint.
 */
import type { AuditView } from "@eventbus/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import type { AuthorizerFailed } from "../AdminError.ts"
import type { Forbidden, Permission, Unauthorized } from "../Authorizer.ts"
import * as Errors from "./errorSchemas.ts"

/** The permissions of an endpoint: a caller needs one of them. */
export class RequiredPermission extends Context.Service<RequiredPermission, ReadonlyArray<Permission>>()(
  "@eventbus/admin/RequiredPermission"
) {}

/** Answers whether the caller may see what quotes a record. */
export class PayloadAccess extends Context.Service<PayloadAccess, Effect.Effect<boolean>>()(
  "@eventbus/admin/PayloadAccess"
) {}

/** The view of the service that the caller may have. */
export const payloadView = Effect.map(Effect.flatten(PayloadAccess), (payload) => ({ payload }))

/** The caller of a request that was let through. */
export class Caller extends Context.Service<
  Caller,
  {
    /** The name that the authorizer gave it. */
    readonly name: string
    /** Fails unless the caller has this permission, too. */
    readonly demand: (permission: Permission) => Effect.Effect<void, Unauthorized | Forbidden | AuthorizerFailed>
    /** The line in the log about the request says why, as its body does. */
    readonly because: (reason: string) => void
    /** Everything that the caller may do, with the binding of the request or with all of them. */
    readonly permissions: Effect.Effect<ReadonlyArray<Permission>>
    /** Tells the audit log what the body of the request is about. Never a key, a value, a header or a credential. */
    readonly tell: (detail: AuditView.Detail) => Effect.Effect<void>
  }
>()("@eventbus/admin/Caller") {}

/** Lets a request through, or not, before anything of it is read. */
export class Guard extends HttpApiMiddleware.Service<Guard, { provides: PayloadAccess | Caller }>()(
  "@eventbus/admin/Guard",
  {
    error: [
      Errors.unauthorized,
      Errors.forbidden,
      Errors.loopbackOnly,
      Errors.readOnly,
      Errors.crossSiteRequest,
      Errors.authorizerFailed,
      Errors.auditUnavailable
    ],
    security: { bearer: HttpApiSecurity.bearer }
  }
) {}

/** Answers parameters that the schemas refuse, all at once. */
export class RefusedParameters extends HttpApiMiddleware.Service<RefusedParameters>()("@eventbus/admin/Parameters", {
  error: Errors.invalidRequest
}) {}
