/**
 * The errors that controllers threw. Nest's exception filters replace an error by a plain object before a transport sees it, and rules by class need the error itself.
 *
 * Nest has no public place that sees every error of guards, pipes, interceptors and handlers before the filters do. Therefore `handle` of its exceptions handler notes the
 * error, where the call is one of this transport's, and then does what it always did.
 */
import type { ArgumentsHost } from "@nestjs/common"
import { RpcExceptionsHandler } from "@nestjs/microservices/exceptions/rpc-exceptions-handler.js"
import { EventBusContext } from "../EventBusContext.ts"

/** By the context of the call. */
const errors = new WeakMap<object, { readonly error: unknown }>()

/** The error that was thrown in the call, whatever the filters made of it. */
export const of = (context: EventBusContext, afterFilters: unknown): unknown =>
  errors.has(context) ? errors.get(context)?.error : afterFilters

const patched = Symbol.for("@eventbus/nestjs originalErrors")

/** Once for each process. */
export const note = (): void => {
  const prototype = RpcExceptionsHandler.prototype as RpcExceptionsHandler & { [patched]?: true }
  if (prototype[patched]) return
  prototype[patched] = true
  const { handle } = prototype
  prototype.handle = function (this: RpcExceptionsHandler, error: never, host: ArgumentsHost) {
    const context: unknown = host.getArgByIndex(1)
    if (context instanceof EventBusContext) errors.set(context, { error })
    return handle.call(this, error, host)
  }
}
