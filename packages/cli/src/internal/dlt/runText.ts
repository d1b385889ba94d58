/**
 * Plans, runs and receipts as text for a terminal.
 */
import type * as Answers from "@eventbus/admin/Answers"
import type * as RunAnswers from "@eventbus/admin/RunAnswers"
import { LogFormat } from "@eventbus/core"
import * as Duration from "effect/Duration"
import { columns, counted, indent } from "../text.ts"

/** Letters, or copies, by a reason or a topic. */
const byName = (counts: ReadonlyArray<Answers.Count> | undefined, what: string): ReadonlyArray<string> =>
  (counts ?? []).map(({ name, count }) => LogFormat.oneLine(`  ${count} ${what} ${name}`))

const verbs: Readonly<Record<RunAnswers.Plan["action"], string>> = {
  replay: "would be replayed",
  toTier: "would go to a retry tier",
  discard: "would be given up",
  restore: "would wait again"
}

const mostNames = 10

/** The first few of a list, and how many more there are. */
const few = (names: ReadonlyArray<string>): string => {
  const more = names.length - mostNames
  return [...names.slice(0, mostNames), ...(more > 0 ? [`${more} more`] : [])].join(", ")
}

const selectionText = (select: RunAnswers.Selection): string => {
  const { groups, from, to, keys, keyCount, records, all, except } = select
  const parts = [
    ...(all === undefined ? [] : ["all"]),
    ...(groups === undefined ? [] : [`group ${few(groups)}`]),
    ...(from === undefined ? [] : [`from ${from}`]),
    ...(to === undefined ? [] : [`before ${to}`]),
    ...(keys !== undefined ? [`key ${few(keys)}`] : keyCount === undefined ? [] : [counted(keyCount, "key")]),
    ...(records === undefined ? [] : [`at ${few(records)}`]),
    ...(except === undefined ? [] : [`except ${few(except)}`])
  ]
  return parts.join(", ")
}

/** The settings that are about copies. */
const copyRows = (plan: RunAnswers.Plan): ReadonlyArray<readonly [string, string]> => {
  const { transform, rate, canary, canaryWaitMillis, stopAbove, ignoreMaxReplays } = plan
  if (plan.action === "discard" || plan.action === "restore") return []
  const wait = Duration.format(Duration.millis(canaryWaitMillis))
  return [
    ["transform", transform ?? "none: copies have the bytes of their letters"],
    ["rate", `${rate} a second at most`],
    ["canary", canary === 0 ? "none" : `${canary} first; the others wait ${wait} at most for their fate`],
    ["stops", stopAbove >= 100 ? "never by itself" : `when more than ${stopAbove} % of the decided copies come back`],
    ["too often", ignoreMaxReplays ? "letters that were replayed maxReplays times are taken, too" : "they stay"]
  ]
}

export const planText = (plan: RunAnswers.Plan): string => {
  const { id, action, tier, count, targets, refusals, passedOver, unreadable, sample, reason, by, expires } = plan
  const rows = [
    ["action", tier === undefined ? action : `${action} ${tier}`],
    ["selection", selectionText(plan.select)],
    ["reason", `${reason} (${by})`],
    ...copyRows(plan),
    ...(sample.length === 0 ? [] : [["sample", few(sample)]]),
    ["expires", expires]
  ].map((row) => row.map(LogFormat.oneLine))
  return [
    count === 0
      ? `plan ${id}: nothing is selected, so no run would do anything`
      : `plan ${id}: ${counted(count, "dead letter")} ${verbs[action]}`,
    ...byName(targets, "to"),
    ...byName(refusals, "would stay:"),
    ...(passedOver === 0
      ? []
      : [`  ${passedOver} would stay: replayed too often, take them with --ignore-max-replays`]),
    ...(unreadable === 0 ? [] : [`  ${counted(unreadable, "offset")} that cannot be read`]),
    ...columns(rows).map((line) => indent(1, line))
  ].join("\n")
}

/** A run that somebody can go on with. */
const canGoOn = ({ state, abandonedSince }: RunAnswers.Run): boolean =>
  state === "paused" || state === "stopped" || abandonedSince !== undefined

const resumeText = (said: string, id: string): string => `go on with it: eventbus dlt resume ${said} ${id}`

/** `said` leads a command to the binding. */
export const runsText = ({ runs }: RunAnswers.Runs, said: string): string =>
  [
    counted(runs.length, "run"),
    ...columns(
      runs.map((run) => {
        const { id, action, state, stateReason, dealtWith, count, started, by, reason } = run
        const why = canGoOn(run) && stateReason !== undefined ? `${state}: ${stateReason}` : state
        return [id, action, why, `${dealtWith} of ${count}`, started, by, reason].map(LogFormat.oneLine)
      })
    ),
    ...runs.filter(({ abandonedSince }) => abandonedSince !== undefined).map(({ id }) => resumeText(said, id))
  ].join("\n")

const copiesText = (receipt: RunAnswers.Receipt): ReadonlyArray<string> => {
  const { passed, cameBack, waiting, unknown, elsewhere } = receipt
  const fates: ReadonlyArray<readonly [number, string]> = [
    [passed, "passed"],
    [cameBack, "came back"],
    [waiting, "wait"],
    [unknown, "may have come back"],
    [elsewhere, "went to topics that the binding does not read"]
  ]
  const found = fates.filter(([number]) => number > 0).map(([number, text]) => `${number} ${text}`)
  return found.length === 0 ? [] : [`copies: ${found.join(", ")}`]
}

export const receiptText = (receipt: RunAnswers.Receipt, said: string): string => {
  const { id, action, state, stateReason, dealtWith, count, refusals, closed } = receipt
  const why = stateReason === undefined ? "" : `: ${stateReason}`
  return [
    LogFormat.oneLine(`run ${id}: ${action} is ${state}${why}`),
    `  ${dealtWith} of ${counted(count, "dead letter")} dealt with`,
    ...byName(refusals, "stay:"),
    ...copiesText(receipt).map((line) => indent(1, line)),
    closed ? "  the receipt is closed" : "  the receipt is open",
    ...(canGoOn(receipt) ? [indent(1, resumeText(said, id))] : [])
  ].join("\n")
}

/** How far a run is, in one line. */
export const progressText = (receipt: RunAnswers.Receipt): string => {
  const { id, dealtWith, count, refused } = receipt
  const parts = [
    `${dealtWith} of ${counted(count, "dead letter")} dealt with`,
    ...(refused === 0 ? [] : [`${refused} stay`]),
    ...copiesText(receipt)
  ]
  return `run ${id}: ${parts.join("; ")}`
}
