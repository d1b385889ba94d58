/**
 * Checks the settings of a breaker and applies the defaults.
 */
import { Duration } from "effect"
import { circuitBreaker as defaults } from "../../Defaults.ts"
import type { ConfigurationIssue } from "../../EventBusError.ts"
import { toMillis } from "../base/durations.ts"
import type * as BreakerState from "./breakerState.ts"
import * as CallWindow from "./callWindow.ts"
import type { Options } from "./options.ts"

/** Every setting that is not allowed. */
export const problems = (options: Options<unknown>): ReadonlyArray<ConfigurationIssue> => {
  const size = options.slidingWindowSize ?? defaults.slidingWindowSize
  const minimum = options.minimumNumberOfCalls ?? defaults.minimumNumberOfCalls
  const wait = options.waitDurationInOpenState ?? defaults.waitDurationInOpenStateMillis
  const waitMillis = toMillis(wait)
  const backoff = options.openBackoff
  return [
    ...whole("slidingWindowSize", size),
    ...(["count", "time"].includes(options.slidingWindowType ?? defaults.slidingWindowType)
      ? []
      : [issue("slidingWindowType", options.slidingWindowType, '"count" or "time"')]),
    ...whole("minimumNumberOfCalls", minimum),
    ...(options.slidingWindowType !== "time" && minimum > size
      ? [issue("minimumNumberOfCalls", minimum, `at most slidingWindowSize (${size})`)]
      : []),
    ...percent("failureRateThreshold", options.failureRateThreshold ?? defaults.failureRateThreshold),
    ...percent("slowCallRateThreshold", options.slowCallRateThreshold ?? defaults.slowCallRateThreshold),
    ...duration("slowCallDuration", options.slowCallDuration ?? defaults.slowCallDurationMillis, 0),
    ...duration("waitDurationInOpenState", wait, 1),
    ...whole(
      "permittedNumberOfCallsInHalfOpenState",
      options.permittedNumberOfCallsInHalfOpenState ?? defaults.permittedNumberOfCallsInHalfOpenState
    ),
    ...(backoff === undefined
      ? []
      : [
          ...(Number.isFinite(backoff.multiplier) && backoff.multiplier >= 1
            ? []
            : [issue("openBackoff.multiplier", backoff.multiplier, "a finite number, 1 or more")]),
          ...duration(
            "openBackoff.maxWaitDuration",
            backoff.maxWaitDuration,
            waitMillis >= 1 && waitMillis < Infinity ? waitMillis : 1
          )
        ]),
    ...duration("probeTimeout", options.probeTimeout ?? defaults.probeTimeoutMillis, 1)
  ]
}

const issue = (path: string, found: unknown, allowed: string): ConfigurationIssue => ({
  path,
  found: Duration.isDuration(found) ? `${Duration.toMillis(found)} ms` : String(found),
  allowed
})

const whole = (path: string, value: number) =>
  Number.isSafeInteger(value) && value >= 1 && value <= 1_000_000
    ? []
    : [issue(path, value, "a whole number from 1 to 1 000 000")]

const percent = (path: string, value: number) =>
  value > 0 && value <= 100 ? [] : [issue(path, value, "a percentage above 0, at most 100")]

const duration = (path: string, input: Duration.Input, leastMillis: number) => {
  const millis = toMillis(input)
  return millis >= leastMillis && millis <= Number.MAX_SAFE_INTEGER
    ? []
    : [issue(path, input, `a duration of ${leastMillis} ms or more, 2^53 - 1 ms at most`)]
}

/** The window that the rates are taken over. */
export const windowOf = ({
  slidingWindowSize: size = defaults.slidingWindowSize,
  slidingWindowType
}: Options<unknown>): CallWindow.CallWindow =>
  slidingWindowType === "time" ? CallWindow.ofSeconds(size) : CallWindow.ofCalls(size)

/** The settings of the state machine. */
export const ofState = (options: Options<unknown>): BreakerState.BreakerSettings => {
  const waitMillis = toMillis(options.waitDurationInOpenState ?? defaults.waitDurationInOpenStateMillis)
  return {
    minimumNumberOfCalls: options.minimumNumberOfCalls ?? defaults.minimumNumberOfCalls,
    failureRateThreshold: options.failureRateThreshold ?? defaults.failureRateThreshold,
    slowCallRateThreshold: options.slowCallRateThreshold ?? defaults.slowCallRateThreshold,
    permittedNumberOfCallsInHalfOpenState:
      options.permittedNumberOfCallsInHalfOpenState ?? defaults.permittedNumberOfCallsInHalfOpenState,
    waitMillis,
    waitMultiplier: options.openBackoff?.multiplier ?? 1,
    maxWaitMillis: options.openBackoff === undefined ? waitMillis : toMillis(options.openBackoff.maxWaitDuration)
  }
}
