/**
 * What settings must be to each other, of one binding and of several: core's own rules, told by the keys of the configuration.
 */
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { Effect } from "effect"
import type { BindingSettings } from "../BindingSettings.ts"
import * as Settings from "../Settings.ts"
import { perRecord, retryPolicyOf } from "./bindingOf.ts"
import type { Path } from "./node.ts"
import * as Shape from "./shape.ts"

export interface Problem {
  /** Of the binding. */
  readonly index: number
  /** Below the binding. */
  readonly path: Path
  readonly found: string
  readonly allowed: string
}

/** A binding of these settings whose handler is never called: for rules and plans. */
export const withoutHandler = (settings: BindingSettings): Binding.Binding<never> =>
  perRecord(settings, { value: Serde.bytes, handler: () => Effect.die("This binding has no handler.") })

export const problems = (all: ReadonlyArray<BindingSettings>): ReadonlyArray<Problem> => {
  const tierProblems = all.map((settings, index) => tiersOf(settings, index))
  // Tiers that do not fit together make no policy: the rest is looked at without them.
  const bindings = all.map((settings, index) =>
    withoutHandler(
      tierProblems[index]!.length === 0 ? settings : { ...settings, retry: { ...settings.retry, tiers: [] } }
    )
  )
  const ofCore = Binding.problems(bindings)
  return all.flatMap((settings, index) => [
    ...tierProblems[index]!,
    ...(ofCore.get(index) ?? [])
      .map(({ path, found, allowed }) => ({ index, path: pathOf(path, settings), found, allowed }))
      .filter(({ path }) => tierProblems[index]!.length === 0 || path[1] !== "skipToTierMapping")
  ])
}

/** Settings that are judged together, by their first key below the binding. */
const groups = [
  ["sessionTimeoutMs", "heartbeatIntervalMs"],
  ["retry", "maxPollRecords", "maxPollIntervalMs", "listenerType", "orderingMode", "topic", "groupId", "naming"],
  ["processingOrder", "listenerType", "orderingMode", "onExhausted", "retry"],
  ["dlt", "naming", "topic", "groupId", "retry"],
  ["topic", "groupId", "cluster"]
]

/** Whether a problem at `key` may come from one of `unknown`, whose values are refused already. */
export const dependsOn = (key: string | number | undefined, unknown: ReadonlySet<string>): boolean =>
  key !== undefined &&
  (unknown.has(String(key)) ||
    groups.some((group) => group.includes(String(key)) && group.some((each) => unknown.has(each))))

const tiersOf = (settings: BindingSettings, index: number): ReadonlyArray<Problem> => {
  try {
    retryPolicyOf(settings)
    return []
  } catch (thrown) {
    if (!(thrown instanceof RetryPolicy.InvalidRetryPolicy)) throw thrown
    return thrown.issues.map(({ path, found, allowed }) => ({
      index,
      path: ["retry", ...pathBelow(path, retryShape)],
      found,
      allowed
    }))
  }
}

const shape = Shape.make(Settings.Binding.ast)
const retryShape = Shape.make(Settings.Retry.ast)

const lists = new Map([
  ["retryable", "retryableExceptions"],
  ["nonRetryable", "nonRetryableExceptions"]
])

/** Core's name of a setting to the key that it is in a configuration. */
const pathOf = (path: string, { dlt, retry }: BindingSettings): Path => {
  const skip = "exceptions.skipToTier."
  if (path.startsWith(skip)) return ["retry", "skipToTierMapping", path.slice(skip.length)]
  const [, list, index] = /^exceptions\.(\w+)\[(\d+)\]$/.exec(path) ?? []
  if (list !== undefined) return ["retry", lists.get(list) ?? list, Number(index)]
  switch (path) {
    case "deadLetterTopic":
    case "deadLetter.journal":
      if (dlt.topic !== undefined) return ["dlt", "topic"]
      return dlt.topicSuffix === undefined ? ["naming"] : ["dlt", "topicSuffix"]
    case "retry":
      return retry.tiers.length > 0 ? ["retry"] : ["retry", "tier0"]
    case "name":
      return []
    default:
      return pathBelow(path, shape)
  }
}

/** `tiers[1].delay` to `tiers`, 1, `delayMs`. */
const pathBelow = (path: string, from: Shape.Shape): Path => {
  let at: Shape.Shape | undefined = from
  return path.split(/\.|(?=\[)/).map((part) => {
    const index = /^\[(\d+)\]$/.exec(part)?.[1]
    if (index !== undefined) {
      at = at && Shape.select(at, "List")?.item
      return Number(index)
    }
    const struct: Shape.Struct | undefined = at && Shape.select(at, "Struct")
    const key = struct?.spellings.get(part) ?? part
    at = struct?.keys.get(key)?.shape
    return key
  })
}
