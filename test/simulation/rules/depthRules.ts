/**
 * The rule about `eventbus.dlt.depth` (ruling 75): after replays, discards, purges, retention and handlers of the strategy, whoever did them.
 */
import { figureKey } from "../history/figures.ts"
import { planOf } from "../scenario/Scenario.ts"
import type { FigureRule } from "./FigureRule.ts"

/** The depth is asked for every ten seconds. An answer takes a scan of the topic and of its journal. */
const staleMillis = 40_000

const depth: FigureRule["check"] = ({ process, series, snapshots, logs, atMillis }, book) => {
  const { readMillis } = book.of(process)
  for (const { name, state } of snapshots) {
    const plan = planOf(book.scenario, name)
    const shown = series.get(figureKey("eventbus.dlt.depth", name))
    const isQuiet =
      atMillis - book.letters.touchedMillis(plan) >= staleMillis && atMillis - book.troubledUntilMillis >= staleMillis
    if (!isQuiet || (state !== "RUNNING" && state !== "PAUSED")) continue
    // Nobody is asked before somebody has read once.
    const isAsked = readMillis.some((read) => atMillis - read >= staleMillis && atMillis - read < 120_000)
    if (shown === undefined) {
      if (isAsked) return `${process}: the depth of ${name} is missing, and somebody has read it`
      continue
    }
    const { least, most } = book.letters.waiting(plan, logs)
    if (shown < least || shown > most)
      return `${process}: the dead letter depth of ${name} is ${shown}, and ${least} to ${most} are not dealt with`
  }
  return undefined
}

export const depthRules: ReadonlyArray<FigureRule> = [{ name: "depth", check: depth }]
