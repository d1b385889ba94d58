/**
 * Known to everything that runs inside a handler: which binding it belongs to (its key). A command that waits for handlers must not wait for its caller.
 */
import { Context } from "effect"

export const CurrentHandler = Context.Reference<string | undefined>("@eventbus/core/internal/CurrentHandler", {
  defaultValue: () => undefined
})
