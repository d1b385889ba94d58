/**
 * Checks the routes of a table of `onError`: what they say is known when the binding is made. The route that a function gives is known when a record fails.
 */
import type { ConfigurationIssue } from "../../EventBusError.ts"
import { isObject, namesOf, read } from "../base/properties.ts"
import { shown } from "../base/shown.ts"
import { allowedTiers } from "./exceptionLists.ts"

/** The problems of `onError` of a binding with this many retry tiers: of the whole, or of each rule. */
export const problems = (onError: unknown, tiers: number): ReadonlyArray<ConfigurationIssue> => {
  if (typeof onError === "function") return []
  const tags = isObject(onError) ? namesOf(onError) : undefined
  if (tags === undefined) {
    return [issue("onError", onError, "a function from the error to a Route, or an object with a rule for each tag")]
  }
  return tags.flatMap((tag) => ofRule(`onError.${tag}`, read(onError as object, tag), tiers))
}

const ofRule = (path: string, rule: unknown, tiers: number): ReadonlyArray<ConfigurationIssue> => {
  if (typeof rule === "function") return []
  const tag = isObject(rule) ? read(rule, "_tag") : undefined
  const value = (name: string) => read(rule as object, name)
  switch (tag) {
    case "Retry":
      return value("tier") === undefined ? [] : ofTier(path, value("tier"), tiers)
    case "Tier":
      return ofTier(path, value("tier"), tiers)
    case "After":
      return isDelay(value("delayMillis")) ? [] : [issue(path, value("delayMillis"), "a duration, 0 ms or more")]
    case "DeadLetter":
      return ["string", "undefined"].includes(typeof value("reason")) ? [] : [issue(path, value("reason"), "a text")]
    case "NextTier":
    case "Pause":
    case "Skip":
      return []
    default:
      return [issue(path, rule, "a Route, or a function from the error to one")]
  }
}

/** Whether a route may ask for this wait. Infinity asks for the last tier. */
export const isDelay = (millis: unknown): millis is number => typeof millis === "number" && millis >= 0

const ofTier = (path: string, tier: unknown, tiers: number) =>
  Number.isInteger(tier) && (tier as number) >= 1 && (tier as number) <= tiers
    ? []
    : [issue(path, tier, tiers === 0 ? "no route to a retry tier: the binding has none" : allowedTiers(tiers))]

const issue = (path: string, found: unknown, allowed: string): ConfigurationIssue => ({
  path,
  found: shown(found),
  allowed
})
