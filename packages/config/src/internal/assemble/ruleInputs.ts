/**
 * The keys that each rule over several keys reads. Where the schema refused one of them, the rule would judge a default or a placeholder, so it is skipped.
 */
import { formatPath, type Path } from "../tree/node.ts"

/** The keys that make up the names of retry and dead letter topics, and the keys of other bindings' names. */
const names = ["topic", "groupId", "cluster", "naming", "deadLetter.topic", "deadLetter.topicSuffix"]

/** A refused wait removes its whole list of tiers. */
const tiers = ["delayMs", "multiplier", "maxDelayMs", "topicSuffix"].map((key) => `retry.tiers[].${key}`)

/** The path of a problem, and the keys that it depends on. The first matching row counts; without a row, the problem depends on its own key. */
const rules: ReadonlyArray<readonly [place: RegExp, causes: ReadonlyArray<string>]> = [
  [/^sessionTimeoutMs$/, ["sessionTimeoutMs", "heartbeatIntervalMs", "groupProtocol"]],
  [/^heartbeatIntervalMs$/, ["heartbeatIntervalMs", "groupProtocol"]],
  [/^groupProtocol$/, ["groupProtocol", "orderingMode"]],
  [/^processingOrder$/, ["processingOrder", "listenerType", "orderingMode"]],
  [/^listenerType$/, ["listenerType", "orderingMode"]],
  [/^partitionAssignmentStrategy$/, ["partitionAssignmentStrategy", "orderingMode", "groupProtocol"]],
  [/^onExhausted$/, ["onExhausted", "orderingMode"]],
  [/^perKey$/, ["perKey", "orderingMode"]],
  [/^adopts/, ["adopts", "groupId"]],
  [/^circuitBreaker/, ["circuitBreaker"]],
  [/^retry\.blocking/, ["retry.blocking", "maxPollRecords", "maxPollIntervalMs", "listenerType"]],
  [/^retry\.consumer$/, ["retry.consumer", "partitionAssignmentStrategy", ...tiers, "orderingMode"]],
  [/^retry\.tiers\[/, [...tiers, "retry.equalDelays", "orderingMode"]],
  [/^retry\.maxElapsedTime/, [...tiers, "retry.maxElapsedTimeMs"]],
  [/^retry\.(nonR|r)etryableExceptions/, ["retry.retryableExceptions", "retry.nonRetryableExceptions"]],
  [/^retry\.skipToTierMapping/, ["retry.skipToTierMapping", ...tiers, "orderingMode"]],
  [/^retry$/, [...tiers, "orderingMode"]],
  [/^(topic$|topic\[|naming$|deadLetter|retry\.tiers$)/, names]
]

/** Whether a problem at this path, below the binding, may come from a refused key. */
export const dependsOnRefused = (path: Path, refused: ReadonlyArray<Path>): boolean => {
  if (refused.length === 0) return false
  const location = formatPath(path)
  const causes = rules.find(([at]) => at.test(location))?.[1] ?? [location]
  return refused.some((each) => causes.some(touches(each)))
}

/** Whether the names of the binding's topics do not depend on a refused key. */
export const knowsNames = (refused: ReadonlyArray<Path>): boolean => !refused.some((each) => names.some(touches(each)))

/** Whether the binding's tiers do not depend on a refused key. */
export const knowsTiers = (refused: ReadonlyArray<Path>): boolean => !refused.some((each) => tiers.some(touches(each)))

/** True when one path equals the other or is a part of it. */
const touches = (path: Path) => {
  const key = formatPath(path).replaceAll(/\[\d+\]/g, "[]")
  return (cause: string): boolean => isWithin(key, cause) || isWithin(cause, key)
}

const isWithin = (inner: string, outer: string): boolean =>
  inner.startsWith(outer) && /^($|[.[])/.test(inner.slice(outer.length))
