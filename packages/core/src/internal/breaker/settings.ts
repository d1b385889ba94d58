/**
 * Checks the settings of a breaker and applies the defaults.
 */
import { circuitBreaker as defaults } from "../../Defaults.ts"
import type { ConfigurationIssue } from "../../EventBusError.ts"
import * as Ranges from "../../Ranges.ts"
import { toMillis } from "../base/durations.ts"
import { shown } from "../base/shown.ts"
import type * as BreakerState from "./breakerState.ts"
import * as CallWindow from "./callWindow.ts"
import type { Options } from "./options.ts"

/** Every setting that is not allowed. */
export const problems = (options: Options<unknown>): ReadonlyArray<ConfigurationIssue> => {
  const size = options.slidingWindowSize ?? defaults.slidingWindowSize
  const minimum = options.minimumNumberOfCalls ?? defaults.minimumNumberOfCalls
  const wait = toMillis(options.waitDurationInOpenState ?? defaults.waitDurationInOpenStateMillis)
  const longest = options.openBackoff?.maxWaitDuration
  return [
    ...Ranges.problemsOfAll(options, Ranges.circuitBreaker),
    ...(["count", "time"].includes(options.slidingWindowType ?? defaults.slidingWindowType)
      ? []
      : [issue("slidingWindowType", options.slidingWindowType, '"count" or "time"')]),
    ...(options.slidingWindowType !== "time" && minimum > size
      ? [issue("minimumNumberOfCalls", minimum, `at most slidingWindowSize (${size})`)]
      : []),
    ...openBackoff(options.openBackoff),
    ...(longest !== undefined && toMillis(longest) >= 1 && toMillis(longest) < wait
      ? [issue("openBackoff.maxWaitDuration", longest, `at least waitDurationInOpenState (${wait} ms)`)]
      : [])
  ]
}

/** Both settings are required. */
const openBackoff = (given: Options<unknown>["openBackoff"]): ReadonlyArray<ConfigurationIssue> =>
  given === undefined
    ? []
    : Ranges.problemsOfAll(
        { multiplier: given.multiplier ?? null, maxWaitDuration: given.maxWaitDuration ?? null },
        Ranges.circuitBreaker.openBackoff,
        "openBackoff."
      )

const issue = (path: string, found: unknown, allowed: string): ConfigurationIssue => ({
  path,
  found: shown(found),
  allowed
})

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
