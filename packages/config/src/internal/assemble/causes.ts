/**
 * What a rule over several keys has looked at: where one of them was refused, and so has its default or a placeholder, the rule says nothing.
 */
import { formatPath, type Path } from "../tree/node.ts"

/** What the names of retry and dead letter topics are made of, and who else may use them. */
const names = ["topic", "groupId", "cluster", "naming", "dlt.topic", "dlt.topicSuffix"]

/** A delay that is refused takes its list of tiers with it. */
const tiers = ["retry.tiers[].delayMs", "retry.tiers[].topicSuffix"]

/** Where a problem is told, to the keys that it comes from. The first that fits counts; without one, it is the key itself. */
const rules: ReadonlyArray<readonly [place: RegExp, causes: ReadonlyArray<string>]> = [
  [/^sessionTimeoutMs$/, ["sessionTimeoutMs", "heartbeatIntervalMs"]],
  [/^processingOrder$/, ["processingOrder", "listenerType"]],
  [/^onExhausted$/, ["onExhausted", "orderingMode"]],
  [/^circuitBreaker/, ["circuitBreaker"]],
  [/^retry\.tier0/, ["retry.tier0", "maxPollRecords", "maxPollIntervalMs", "listenerType"]],
  [/^retry\.tiers\[/, [...tiers, "retry.equalDelays"]],
  [/^retry\.(nonR|r)etryableExceptions/, ["retry.retryableExceptions", "retry.nonRetryableExceptions"]],
  [/^retry\.skipToTierMapping/, ["retry.skipToTierMapping", ...tiers, "orderingMode"]],
  [/^retry$/, [...tiers, "orderingMode"]],
  [/^(topic$|naming$|dlt|retry\.tiers$)/, names]
]

/** Whether a problem at this path, below the binding, may come from one of the `unknown`. */
export const areUnknown = (path: Path, unknown: ReadonlyArray<Path>): boolean => {
  if (unknown.length === 0) return false
  const place = formatPath(path)
  const causes = rules.find(([at]) => at.test(place))?.[1] ?? [place]
  return unknown.some((each) => causes.some(touches(each)))
}

/** Whether the binding's topics will have the names that they have here. */
export const knowsNames = (unknown: ReadonlyArray<Path>): boolean => !unknown.some((each) => names.some(touches(each)))

/** Whether its retry topics are these. */
export const knowsTiers = (unknown: ReadonlyArray<Path>): boolean => !unknown.some((each) => tiers.some(touches(each)))

/** One is the other, or a part of it. */
const touches = (path: Path) => {
  const key = formatPath(path).replaceAll(/\[\d+\]/g, "[]")
  return (cause: string): boolean => isWithin(key, cause) || isWithin(cause, key)
}

const isWithin = (inner: string, outer: string): boolean =>
  inner.startsWith(outer) && /^($|[.[])/.test(inner.slice(outer.length))
