/**
 * Checks the settings of a breaker and applies the defaults.
 */
import * as Choices from "../../Choices.ts"
import { circuitBreaker as defaults } from "../../Defaults.ts"
import type { ConfigurationIssue } from "../../EventBusError.ts"
import * as Kinds from "../../Kinds.ts"
import * as Ranges from "../../Ranges.ts"
import { toMillis } from "../base/durations.ts"
import { isObject, read } from "../base/properties.ts"
import { shown } from "../base/shown.ts"
import type * as BreakerState from "./breakerState.ts"
import * as CallWindow from "./callWindow.ts"
import type { Options } from "./options.ts"

const kinds = {
  ...Ranges.circuitBreaker,
  name: Kinds.string,
  slidingWindowType: Kinds.oneOf(Choices.circuitBreaker.slidingWindowType),
  automaticPauseOnOpen: Kinds.flag,
  // Both settings are required.
  openBackoff: Kinds.struct({}, Ranges.circuitBreaker.openBackoff),
  probe: Kinds.effect
}

/** Every setting that is not allowed. Never throws, whatever it is given. */
export const problems = (options: unknown): ReadonlyArray<ConfigurationIssue> => {
  const issues = Ranges.problemsOfAll(options, kinds)
  if (!isObject(options)) return issues
  const number = (name: "slidingWindowSize" | "minimumNumberOfCalls"): number => {
    const found = read(options, name) ?? defaults[name]
    // A value that is no number has a problem of its own.
    return typeof found === "number" ? found : Number.NaN
  }
  const [size, minimum] = [number("slidingWindowSize"), number("minimumNumberOfCalls")]
  const wait = toMillis(read(options, "waitDurationInOpenState") ?? defaults.waitDurationInOpenStateMillis)
  const openBackoff = read(options, "openBackoff")
  const longest = isObject(openBackoff) ? read(openBackoff, "maxWaitDuration") : undefined
  return [
    ...issues,
    ...(read(options, "slidingWindowType") !== "time" && minimum > size
      ? [issue("minimumNumberOfCalls", minimum, `at most slidingWindowSize (${size})`)]
      : []),
    ...(toMillis(longest) >= 1 && toMillis(longest) < wait
      ? [issue("openBackoff.maxWaitDuration", longest, `at least waitDurationInOpenState (${wait} ms)`)]
      : [])
  ]
}

/** The settings of a breaker, as a setting of a binding. */
export const kind: Kinds.Kind = (path, found) =>
  isObject(found)
    ? problems(found).map((each) => ({ ...each, path: `${path}.${each.path}` }))
    : [issue(path, found, "an object of settings")]

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
