/**
 * The circuit breaker: the keys below `circuitBreaker` of a binding.
 */
import { Choices, Defaults, Ranges } from "@eventbus/core"
import * as Schema from "effect/Schema"
import { decimal, duration, flag, oneOf, section, whole, withDefault } from "./leaves.ts"

const { circuitBreaker: breaker } = Defaults
const { circuitBreaker: breakerRange } = Ranges

/** The circuit breaker of a binding. */
export const CircuitBreaker = section("Stops handling while a dependency is down.", {
  enabled: flag("Whether the binding has a circuit breaker.").pipe(withDefault(breaker.enabled)),
  failureRateThreshold: decimal(
    "Percent of failures at which it opens, inclusive.",
    breakerRange.failureRateThreshold
  ).pipe(withDefault(breaker.failureRateThreshold)),
  slowCallRateThreshold: decimal(
    "Percent of slow calls at which it opens, inclusive.",
    breakerRange.slowCallRateThreshold
  ).pipe(withDefault(breaker.slowCallRateThreshold)),
  slowCallDurationMs: duration("A delivery that takes longer is slow.", breakerRange.slowCallDuration).pipe(
    withDefault(breaker.slowCallDurationMillis)
  ),
  waitDurationInOpenStateMs: duration(
    "How long it stays open before it lets trial calls through.",
    breakerRange.waitDurationInOpenState
  ).pipe(withDefault(breaker.waitDurationInOpenStateMillis)),
  slidingWindowSize: whole(
    "Calls (or seconds, by slidingWindowType) that the rates are taken over.",
    breakerRange.slidingWindowSize
  ).pipe(withDefault(breaker.slidingWindowSize)),
  slidingWindowType: oneOf("What the window counts: calls, or seconds.", Choices.circuitBreaker.slidingWindowType).pipe(
    withDefault(breaker.slidingWindowType)
  ),
  minimumNumberOfCalls: whole("No rate is judged before so many calls.", breakerRange.minimumNumberOfCalls).pipe(
    withDefault(breaker.minimumNumberOfCalls)
  ),
  permittedNumberOfCallsInHalfOpenState: whole("Trial calls.", breakerRange.permittedNumberOfCallsInHalfOpenState).pipe(
    withDefault(breaker.permittedNumberOfCallsInHalfOpenState)
  ),
  automaticPauseOnOpen: flag("The binding shows PAUSED while it is open.").pipe(
    withDefault(breaker.automaticPauseOnOpen)
  ),
  openBackoff: Schema.optionalKey(
    section("Each reopening waits longer. Default: no.", {
      multiplier: decimal("Factor from one wait to the next.", breakerRange.openBackoff.multiplier),
      maxWaitDurationMs: duration("The longest wait.", breakerRange.openBackoff.maxWaitDuration)
    })
  ),
  probeTimeoutMs: duration("How long the handler's probe may take.", breakerRange.probeTimeout).pipe(
    withDefault(breaker.probeTimeoutMillis)
  ),
  giveUpAfterMs: Schema.optionalKey(
    duration(
      "How long the only record that a half-open breaker can try may fail before it takes its route. Default: for ever.",
      breakerRange.giveUpAfter
    )
  )
})
