/**
 * Deploys of a service with order per key: the way from RELAXED to PER_KEY and back, and static members that restart within one generation of their group.
 */
import type * as Random from "./random.ts"
import type { Action, OrderingMode, Scenario } from "./Scenario.ts"

/** Up to four releases, each with the other ordering mode. Copies of one stand in the retry topics when the next begins, and for some time both run. */
export const withDeploys = (scenario: Scenario, random: Random.Random): Scenario => {
  const { faultPeriodMillis, bindings, processes } = scenario
  const first = random.pick(["PER_KEY", "RELAXED_IN_RETRY"] as const)
  const times = Array.from({ length: random.between(1, 3) }, () => random.between(1_000, faultPeriodMillis)).sort(
    (a, b) => a - b
  )
  const modes = times.map((_, index) => (index % 2 === 0 ? other(first) : first))
  // Only a binding with order per key gives a held key up before the run ends.
  const holds = bindings.some(({ perKey }) => perKey?.onDeadLetter === "hold")
  if (holds && modes.at(-1) !== "PER_KEY") {
    times.push(faultPeriodMillis)
    modes.push("PER_KEY")
  }
  const deploys = times.flatMap(
    (atMillis, index): ReadonlyArray<Action> => [
      { _tag: "Deploy", atMillis, orderingMode: modes[index]! },
      ...processes.flatMap((_, process) =>
        restart(random, scenario, process, atMillis + random.between(0, 3_000), 3_000)
      )
    ]
  )
  return merged(scenario, [{ _tag: "Deploy", atMillis: 0, orderingMode: first }, ...deploys])
}

const other = (mode: OrderingMode): OrderingMode => (mode === "PER_KEY" ? "RELAXED_IN_RETRY" : "PER_KEY")

/** The session outlasts each restart, so that the member comes back to its partitions without a rebalance. */
export const withQuickRestarts = (scenario: Scenario, random: Random.Random): Scenario => {
  const { faultPeriodMillis, bindings, processes } = scenario
  const restarts = processes.flatMap((_, process) =>
    Array.from({ length: random.between(2, 5) }, () =>
      restart(random, scenario, process, random.between(1_000, faultPeriodMillis), 2_000)
    ).flat()
  )
  return merged({ ...scenario, bindings: bindings.map((plan) => ({ ...plan, membership: "static" })) }, restarts)
}

const restart = (
  random: Random.Random,
  scenario: Scenario,
  process: number,
  atMillis: number,
  withinMillis: number
): ReadonlyArray<Action> => [
  { _tag: hasKills(scenario) && random.happens(0.5) ? "Kill" : "Stop", atMillis, process },
  { _tag: "Start", atMillis: atMillis + random.between(1, withinMillis), process }
]

const hasKills = ({ actions }: Scenario): boolean => actions.some(({ _tag }) => _tag === "Kill")

/** Of two actions at the same time, an added one comes first. */
const merged = (scenario: Scenario, added: ReadonlyArray<Action>): Scenario => ({
  ...scenario,
  actions: [...added, ...scenario.actions].sort((a, b) => a.atMillis - b.atMillis)
})
