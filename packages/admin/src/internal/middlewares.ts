/**
 * The declarations of what happens around every endpoint.
 */
import { Context, type Effect } from "effect"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import type { Permission } from "../Authorizer.ts"
import * as Errors from "./errorSchemas.ts"

/** The permission that an endpoint needs. */
export class RequiredPermission extends Context.Service<RequiredPermission, Permission>()(
  "@eventbus/admin/RequiredPermission"
) {}

/** Answers whether the caller may see what quotes a record. */
export class PayloadAccess extends Context.Service<PayloadAccess, Effect.Effect<boolean>>()(
  "@eventbus/admin/PayloadAccess"
) {}

/** Lets a request through, or not, before anything of it is read. */
export class Guard extends HttpApiMiddleware.Service<Guard, { provides: PayloadAccess }>()("@eventbus/admin/Guard", {
  error: [Errors.unauthorized, Errors.forbidden, Errors.loopbackOnly, Errors.readOnly, Errors.authorizerFailed],
  security: { bearer: HttpApiSecurity.bearer }
}) {}

/** Answers parameters that the schemas refuse, all at once. */
export class RefusedParameters extends HttpApiMiddleware.Service<RefusedParameters>()("@eventbus/admin/Parameters", {
  error: Errors.invalidRequest
}) {}
