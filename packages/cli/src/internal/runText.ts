/**
 * Plans, runs and receipts as text for a terminal.
 */
import { LogFormat, type ReplayPlan, type ReplayRun } from "@eventbus/core"
import { columns, counted, timeText } from "./text.ts"

/** Letters, or copies, by a reason or a topic, the most first. */
const byName = (counts: ReadonlyMap<string, number>, what: string): ReadonlyArray<string> =>
  Array.from(counts)
    .sort(([, one], [, other]) => other - one)
    .map(([name, count]) => LogFormat.oneLine(`  ${count} ${what} ${name}`))

const verbs: Readonly<Record<ReplayPlan.Plan["action"], string>> = {
  replay: "would be replayed",
  toTier: "would go to a retry tier",
  discard: "would be given up",
  restore: "would wait again"
}

export const planText = (plan: ReplayPlan.Plan): string => {
  const { id, action, count, targets, refusals, passedOver, unreadable, expiresAtMillis } = plan
  return [
    `plan ${id}: ${counted(count, "dead letter")} ${verbs[action]}`,
    ...byName(targets, "to"),
    ...byName(refusals, "would stay:"),
    ...(passedOver === 0
      ? []
      : [`  ${passedOver} would stay: replayed too often, take them with --ignore-max-replays`]),
    ...(unreadable === 0 ? [] : [`  ${counted(unreadable, "offset")} that cannot be read`]),
    `apply it before ${timeText(expiresAtMillis)}`
  ].join("\n")
}

export const runsText = (runs: ReadonlyArray<ReplayRun.RunSummary>): string =>
  [
    counted(runs.length, "run"),
    ...columns(
      runs.map(({ id, action, state, dealtWith, count, startedAtMillis, by, reason }) =>
        [id, action, state, `${dealtWith} of ${count}`, timeText(startedAtMillis), by, reason].map(LogFormat.oneLine)
      )
    )
  ].join("\n")

export const receiptText = (receipt: ReplayRun.Receipt): string => {
  const { id, action, state, stateReason, dealtWith, count, refusals, closed } = receipt
  const { passed, cameBack, waiting, unknown = 0, elsewhere } = receipt
  const why = stateReason === undefined ? "" : `: ${stateReason}`
  const fates: ReadonlyArray<readonly [number, string]> = [
    [passed, "passed"],
    [cameBack, "came back"],
    [waiting, "wait"],
    [unknown, "may have come back"],
    [elsewhere, "went to topics that the binding does not read"]
  ]
  const found = fates.filter(([number]) => number > 0).map(([number, text]) => `${number} ${text}`)
  return [
    LogFormat.oneLine(`run ${id}: ${action} is ${state}${why}`),
    `  ${dealtWith} of ${counted(count, "dead letter")} dealt with`,
    ...byName(refusals, "stay:"),
    ...(found.length === 0 ? [] : [`  copies: ${found.join(", ")}`]),
    closed ? "  the receipt is closed" : "  the receipt is open"
  ].join("\n")
}
