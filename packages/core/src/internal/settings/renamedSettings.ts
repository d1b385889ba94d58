/**
 * Settings that once had another name. The old name is refused with a hint, because a setting that is silently ignored is worse than an error.
 */
import type { ConfigurationIssue } from "../../EventBusError.ts"
import { has, isObject } from "../base/properties.ts"

/** The former names in some options, to the new ones. */
export type Renamed = Readonly<Record<string, string>>

/** Former names of a binding's settings. */
export const ofBinding: Renamed = {
  exceptions: "retryableExceptions, nonRetryableExceptions and skipToTierMapping of `retry`",
  isolation: "isolationLevel",
  maxBytesPerPartition: "maxPartitionFetchBytes",
  maxWait: "fetchMaxWait",
  membership: "staticMembership"
}

/** Former names of the settings of alerts about dead letters. */
export const ofAlerts: Renamed = { timeout: "alertTimeout" }

/** Former names of the settings of attempts in place. */
export const ofBlocking: Renamed = { initialInterval: "initialBackoff", maxInterval: "maxBackoff" }

/** One issue for each former name that the options use. `prefix` stands before its path. */
export const issues = (options: unknown, renamed: Renamed, prefix = ""): ReadonlyArray<ConfigurationIssue> =>
  Object.entries(renamed).flatMap(([name, now]) =>
    isObject(options) && has(options, name)
      ? { path: `${prefix}${name}`, found: "a setting that was renamed", allowed: `${now}, its new name` }
      : []
  )
