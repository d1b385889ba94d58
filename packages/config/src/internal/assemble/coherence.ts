/**
 * What settings must be to each other, of one binding and of several: core's own rules, told by the keys of the configuration.
 */
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import { Effect } from "effect"
import type { BindingSettings } from "../../BindingSettings.ts"
import * as Settings from "../../Settings.ts"
import * as Shape from "../schema/shape.ts"
import type { Path } from "../tree/node.ts"
import { perRecord } from "./bindingOf.ts"
import * as Causes from "./causes.ts"

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

/** What can be judged of a binding. */
export interface Readable {
  readonly binding: BindingSettings
  /** Parts that the schema refused, which have their defaults, or a placeholder, here. */
  readonly unknown: ReadonlyArray<Path>
}

/** Problems of each, and of what they have in common, as far as they come from what is known. */
export const problems = (all: ReadonlyArray<Readable>): ReadonlyArray<Problem> => {
  const judged = all.map(judge)
  const ofCore = problemsOfCore(judged)
  return all.flatMap(({ binding: settings, unknown }, index) => {
    const { binding, tierProblems, unknownToCore } = judged[index]!
    const others = (ofCore.get(binding) ?? []).map((issue) => ({ ...issue, path: pathOf(issue.path, settings) }))
    return [
      ...tierProblems.filter(({ path }) => !Causes.areUnknown(path, unknown)),
      ...others.filter(({ path }) => !Causes.areUnknown(path, unknownToCore))
    ].map(({ path, found, allowed }) => ({ index, path, found, allowed }))
  })
}

interface Judged {
  readonly binding: Binding.Binding<never>
  readonly tierProblems: ReadonlyArray<Omit<Problem, "index">>
  readonly unknownToCore: ReadonlyArray<Path>
}

/** Tiers that are refused, or do not fit together, make no policy: the rest is looked at without them. */
const judge = ({ binding: settings, unknown }: Readable): Judged => {
  const withoutTiers = (tierProblems: Judged["tierProblems"]): Judged => ({
    binding: withoutHandler({ ...settings, retry: { ...settings.retry, tiers: [] } }),
    tierProblems,
    unknownToCore: [...unknown, ["retry", "tiers"]]
  })
  if (!Causes.knowsTiers(unknown)) return withoutTiers([])
  try {
    return { binding: withoutHandler(settings), tierProblems: [], unknownToCore: unknown }
  } catch (thrown) {
    if (!(thrown instanceof RetryPolicy.InvalidRetryPolicy)) throw thrown
    return withoutTiers(
      thrown.issues.map((issue) => ({ ...issue, path: ["retry", ...pathBelow(issue.path, retryShape)] }))
    )
  }
}

/** A binding whose names are not known is looked at alone. */
const problemsOfCore = (judged: ReadonlyArray<Judged>) => {
  const { true: known = [], false: unknown = [] } = Object.groupBy(judged, (each) =>
    Causes.knowsNames(each.unknownToCore) ? "true" : "false"
  )
  const groups = [known, ...unknown.map((each) => [each])].map((group) => group.map(({ binding }) => binding))
  return new Map(
    groups.flatMap((group) =>
      Array.from(Binding.problems(group), ([index, issues]) => [group[index]!, issues] as const)
    )
  )
}

const shape = Shape.make(Settings.Binding.ast)
const retryShape = Shape.make(Settings.Retry.ast)

const lists = new Map([
  ["retryable", "retryableExceptions"],
  ["nonRetryable", "nonRetryableExceptions"]
])

/** Core's name of a setting to the key that it is in a configuration. */
const pathOf = (path: string, { dlt }: BindingSettings): Path => {
  const skip = "exceptions.skipToTier."
  if (path.startsWith(skip)) return ["retry", "skipToTierMapping", path.slice(skip.length)]
  const [, list, index] = /^exceptions\.(\w+)\[(\d+)\]$/.exec(path) ?? []
  if (list !== undefined) return ["retry", lists.get(list) ?? list, Number(index)]
  switch (path) {
    case "deadLetterTopic":
    case "deadLetter.journal":
      if (dlt.topic !== undefined) return ["dlt", "topic"]
      return dlt.topicSuffix === undefined ? ["naming"] : ["dlt", "topicSuffix"]
    case "retry.blocking":
      return ["retry", "tier0"]
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
