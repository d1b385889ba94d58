/**
 * The circuit breaker pauses its binding, and lifts its own pause when it closes.
 */
import * as Effect from "effect/Effect"
import type * as CircuitBreaker from "../../CircuitBreaker.ts"
import type { Consumer } from "../group/consumer.ts"
import type { EventHub } from "../observe/eventHub.ts"
import * as PauseReasons from "../partition/pauseReasons.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"

export interface BreakerPauseOptions {
  readonly definition: BindingDefinition<unknown>
  readonly hub: EventHub
  /** Runs an effect for each consumer that has a session, all at once. */
  readonly onConsumers: (each: (consumer: Consumer) => Effect.Effect<void>) => Effect.Effect<void>
  /** Publishes the state of the binding if it has changed. */
  readonly announce: Effect.Effect<void>
  /** Runs an effect in the background of the binding. */
  readonly fork: (effect: Effect.Effect<void>) => void
}

/** The reasons that pause the whole binding. */
export interface BindingReasons {
  reasons: PauseReasons.PauseReasons
  /** Whether a record, and no command, has paused the binding. */
  isPausedByRecord: boolean
}

/**
 * Pauses the binding at once when its breaker opens. When the breaker closes, the binding resumes after all listeners have seen the change, unless the breaker has
 * opened again by then.
 */
export const follow = (
  { definition, hub, onConsumers, announce, fork }: BreakerPauseOptions,
  breaker: CircuitBreaker.CircuitBreaker,
  binding: BindingReasons
): void => {
  const apply = Effect.suspend(() => {
    const isPaused = PauseReasons.has(binding.reasons, "breaker")
    const change = onConsumers((consumer) => (isPaused ? consumer.pause("breaker") : consumer.resume("breaker")))
    return Effect.andThen(change, announce)
  })
  breaker.onChange(({ from, to, snapshot }) => {
    hub.emit({ _tag: "BreakerChanged", ...BindingKey.onEvent(definition), from, to, snapshot })
    const wasPaused = PauseReasons.has(binding.reasons, "breaker")
    if (wasPaused === (reasonsOf(definition, breaker) !== PauseReasons.empty)) return
    binding.reasons = (wasPaused ? PauseReasons.remove : PauseReasons.add)(binding.reasons, "breaker")
    fork(wasPaused ? Effect.andThen(Effect.yieldNow, apply) : apply)
  })
}

/** An open breaker pauses the binding, unless `automaticPauseOnOpen: false` lets each record wait in front of its handler instead. */
export const reasonsOf = (
  definition: BindingDefinition<unknown>,
  breaker: CircuitBreaker.CircuitBreaker | undefined
): PauseReasons.PauseReasons => {
  const state = breaker?.stateUnsafe()
  const isOpen = state === "OPEN" || state === "FORCED_OPEN"
  return isOpen && definition.circuitBreaker?.automaticPauseOnOpen !== false
    ? PauseReasons.add(PauseReasons.empty, "breaker")
    : PauseReasons.empty
}
