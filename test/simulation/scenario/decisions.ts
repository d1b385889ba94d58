/**
 * Operators who decide about held keys of order per key, in whatever process they are at, while processes crash and partitions move.
 */
import * as Random from "./random.ts"
import type { Action, Scenario } from "./Scenario.ts"

/** Adds decisions by a chance of its own: what else happens in a seed stays as it is. */
export const withDecisions = (scenario: Scenario): Scenario => {
  const random = Random.make(scenario.seed ^ 0x51ed270b)
  const { actions, bindings, processes, faultPeriodMillis } = scenario
  if (bindings[0]?.perKey?.onDeadLetter !== "hold" || !random.happens(0.7)) return scenario
  const decisions = Array.from({ length: random.between(1, 12) }, (): Action => {
    const process = random.between(0, processes.length - 1)
    const verb = random.pick(["retry", "retry", "skip"] as const)
    const atMillis = random.between(1_000, faultPeriodMillis)
    return { _tag: "Decide", atMillis, process, binding: 0, verb, every: random.between(1, 2) }
  })
  return { ...scenario, actions: [...actions, ...decisions].sort((a, b) => a.atMillis - b.atMillis) }
}
