/**
 * A first binding that works in transactions, whose processes are killed while they do. Requests of a transaction take time, so that a kill falls between them.
 */
import type * as Random from "./random.ts"
import type { Action, Scenario } from "./Scenario.ts"

export const withTransactions = (scenario: Scenario, random: Random.Random): Scenario => {
  const [first, ...others] = scenario.bindings
  const { faultPeriodMillis, processes } = scenario
  const kills = Array.from({ length: random.between(1, 6) }, (): ReadonlyArray<Action> => {
    const process = random.between(0, processes.length - 1)
    const atMillis = random.between(1, faultPeriodMillis)
    return [
      { _tag: "Kill", atMillis, process },
      { _tag: "Start", atMillis: atMillis + random.between(0, 5_000), process }
    ]
  })
  return {
    ...scenario,
    transactionLatencyMillis: random.pick([0, 5, 40]),
    bindings: [
      {
        ...first!,
        ...{ listener: "transactional", processingOrder: "partition" },
        tiers: first!.tiers.map((tier) => ({ ...tier, multiplier: 1 }))
      },
      ...others
    ],
    actions: [...scenario.actions, ...kills.flat()].sort((a, b) => a.atMillis - b.atMillis)
  }
}

/** A reader of committed records looks at the outputs of transactional bindings now and then. */
export const withObserver = (scenario: Scenario, random: Random.Random): Scenario => {
  const looks = scenario.bindings.flatMap(({ listener }, binding) =>
    listener === "transactional"
      ? Array.from(
          { length: random.between(3, 20) },
          (): Action => ({
            _tag: "Observe",
            atMillis: random.between(1, scenario.faultPeriodMillis),
            binding
          })
        )
      : []
  )
  return { ...scenario, actions: [...scenario.actions, ...looks].sort((a, b) => a.atMillis - b.atMillis) }
}
