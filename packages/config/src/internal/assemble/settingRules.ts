/**
 * The rules for settings that belong together, of one binding and of several. They are core's own rules, with the keys of the configuration in the
 * messages.
 */
import { Binding, RetryPolicy, Serde } from "@eventbus/core"
import * as Effect from "effect/Effect"
import type { BindingSettings } from "../../BindingSettings.ts"
import * as Settings from "../../Settings.ts"
import * as Shape from "../schema/shape.ts"
import type { Path } from "../tree/node.ts"
import { perRecord } from "./bindingOf.ts"
import * as RuleInputs from "./ruleInputs.ts"

export interface Problem {
  /** Index of the binding. */
  readonly index: number
  /** Path below the binding. */
  readonly path: Path
  readonly found: string
  readonly allowed: string
}

/** A binding of these settings whose handler is never called, for rules and plans. */
export const withoutHandler = (settings: BindingSettings): Binding.Binding<never> =>
  perRecord(settings, { value: Serde.bytes, handler: () => Effect.die("This binding has no handler.") })

/** A binding as far as it could be decoded. */
export interface PartialBinding {
  readonly binding: BindingSettings
  /** Parts that the schema refused. In `binding` they have their defaults, or a placeholder. */
  readonly refused: ReadonlyArray<Path>
}

/** The problems of each binding and of all together, except those that depend on a refused key. */
export const problems = (all: ReadonlyArray<PartialBinding>): ReadonlyArray<Problem> => {
  const checked = all.map(checkTiers)
  const ofCore = problemsOfCore(checked)
  return all.flatMap(({ binding: settings, refused }, index) => {
    const { binding, tierProblems, refusedForCore } = checked[index]!
    const others = (ofCore.get(binding) ?? []).map((issue) => ({ ...issue, path: pathOf(issue.path, settings) }))
    return [
      ...tierProblems.filter(({ path }) => !RuleInputs.dependsOnRefused(path, refused)),
      ...others.filter(({ path }) => !RuleInputs.dependsOnRefused(path, refusedForCore))
    ].map(({ path, found, allowed }) => ({ index, path, found, allowed }))
  })
}

interface CheckedBinding {
  readonly binding: Binding.Binding<never>
  readonly tierProblems: ReadonlyArray<Omit<Problem, "index">>
  readonly refusedForCore: ReadonlyArray<Path>
}

/** Refused or contradicting tiers make no retry policy, so the other settings are checked without tiers. */
const checkTiers = ({ binding: settings, refused }: PartialBinding): CheckedBinding => {
  const withoutTiers = (tierProblems: CheckedBinding["tierProblems"]): CheckedBinding => ({
    binding: withoutHandler({ ...settings, retry: { ...settings.retry, tiers: [] } }),
    tierProblems,
    refusedForCore: [...refused, ["retry", "tiers"]]
  })
  if (!RuleInputs.knowsTiers(refused)) return withoutTiers([])
  try {
    return { binding: withoutHandler(settings), tierProblems: [], refusedForCore: refused }
  } catch (thrown) {
    if (!(thrown instanceof RetryPolicy.InvalidRetryPolicy)) throw thrown
    return withoutTiers(
      thrown.issues.map((issue) => ({ ...issue, path: ["retry", ...pathBelow(issue.path, retryShape)] }))
    )
  }
}

/** A binding with unknown topic names is checked alone, since names are compared between bindings. */
const problemsOfCore = (checked: ReadonlyArray<CheckedBinding>) => {
  const { true: known = [], false: unknown = [] } = Object.groupBy(checked, (each) =>
    RuleInputs.knowsNames(each.refusedForCore) ? "true" : "false"
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

/** Maps core's name of a setting to the key of the configuration. */
const pathOf = (path: string, { deadLetter }: BindingSettings): Path => {
  // The name of an error may have dots in it.
  const skip = "retry.skipToTierMapping."
  if (path.startsWith(skip)) return ["retry", "skipToTierMapping", path.slice(skip.length)]
  switch (path) {
    case "deadLetterTopic":
    case "deadLetter.journal":
      if (deadLetter.topic !== undefined) return ["deadLetter", "topic"]
      return deadLetter.topicSuffix === undefined ? ["naming"] : ["deadLetter", "topicSuffix"]
    case "name":
      return []
    default:
      return pathBelow(path, shape)
  }
}

/** Maps `tiers[1].delay` to `tiers`, 1, `delayMs`. */
const pathBelow = (path: string, from: Shape.Shape): Path => {
  let location: Shape.Shape | undefined = from
  return path.split(/\.|(?=\[)/).map((part) => {
    const index = /^\[(\d+)\]$/.exec(part)?.[1]
    if (index !== undefined) {
      location = location && Shape.select(location, "List")?.item
      return Number(index)
    }
    const struct: Shape.Struct | undefined = location && Shape.select(location, "Struct")
    const key = struct?.spellings.get(part) ?? part
    location = struct?.keys.get(key)?.shape
    return key
  })
}
