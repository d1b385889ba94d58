/**
 * The key of the binding whose handler the current fiber runs in. A command that waits for handlers must not wait for the handler that gave it.
 */
import * as Context from "effect/Context"

export const CurrentHandler = Context.Reference<string | undefined>("@eventbus/core/internal/CurrentHandler", {
  defaultValue: () => undefined
})
