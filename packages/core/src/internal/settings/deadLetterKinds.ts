/**
 * The kinds of what a dead letter strategy takes: the settings of its functions, and a strategy that is complete, which a binding takes from code of any origin.
 */
import * as Choices from "../../Choices.ts"
import * as Kinds from "../../Kinds.ts"
import * as Ranges from "../../Ranges.ts"
import { isObject, read } from "../base/properties.ts"
import { shown } from "../base/shown.ts"
import { topicSuffix } from "../retry/policyKinds.ts"
import * as Origins from "./origins.ts"

/** `DeadLetter.Settings`. */
export const settings = {
  topicSuffix,
  topicFor: Kinds.func,
  fingerprint: Kinds.func,
  origins: Origins.problems,
  headers: Kinds.struct({ spring: Kinds.oneOf(Choices.deadLetter.spring), brokers: Kinds.flag, trailJson: Kinds.flag }),
  maxReplays: Ranges.deadLetter.maxReplays
} as const

const withSettings = { settings: Kinds.struct(settings) }
const millis = (range: Ranges.Range): Ranges.Range => ({ ...range, kind: "whole" })

const byStrategy: Readonly<Record<string, Kinds.Kind>> = {
  StoreOnly: Kinds.struct({}, withSettings),
  AlertAndStore: Kinds.struct(
    {},
    { ...withSettings, handler: Kinds.func, timeoutMillis: millis(Ranges.deadLetter.alertTimeout) }
  ),
  ScheduledReplay: Kinds.struct(
    {},
    {
      ...withSettings,
      cooldownMillis: millis(Ranges.deadLetter.cooldown),
      batchSize: Ranges.deadLetter.batchSize
    }
  ),
  Custom: Kinds.struct({}, { ...withSettings, handler: Kinds.func })
}

/** A complete strategy, as the functions of `DeadLetter` make it. */
export const complete: Kinds.Kind = (path, found) => {
  const tag = isObject(found) ? read(found, "_tag") : undefined
  const kind = typeof tag === "string" && Object.hasOwn(byStrategy, tag) ? byStrategy[tag] : undefined
  return kind === undefined
    ? [{ path, found: shown(found), allowed: "a strategy of DeadLetter, such as DeadLetter.storeOnly" }]
    : kind(path, found)
}
