/**
 * Somebody who reads the figures of all processes in rounds, as an exporter does, while operators and retention change what the figures are about (ruling 75).
 */
import type * as Random from "./random.ts"
import { defaultMaxReplays } from "./replays.ts"
import type { Action, BindingPlan, Scenario } from "./Scenario.ts"

/** Time between two readings. */
const readMillis = 15_000

export const withReadings = (scenario: Scenario, random: Random.Random): Scenario => {
  const { faultPeriodMillis } = scenario
  const reads: Array<Action> = []
  for (let atMillis = random.between(0, readMillis); atMillis < faultPeriodMillis; atMillis += readMillis)
    reads.push({ _tag: "Read", atMillis })
  return withActions(scenario, reads)
}

/** Operators give dead letters up and delete them, retention takes them and what a paused binding has not read, and strategies have handlers. */
export const withOperators = (scenario: Scenario, random: Random.Random): Scenario => {
  const bindings = scenario.bindings.map(
    (plan): BindingPlan =>
      random.happens(0.25) ? { ...plan, handlesLetters: true, maxReplays: defaultMaxReplays } : plan
  )
  const actions = scenario.processes.flatMap((_, process) => commands(scenario, random, process))
  const binding = random.between(0, bindings.length - 1)
  const retention = random.happens(0.4) ? [ofLetters(scenario, random, binding)] : []
  const overtaken = random.happens(0.4) ? whilePaused(scenario, random, binding) : []
  return withActions({ ...scenario, bindings }, [...actions, ...retention, ...overtaken])
}

/** The commands of an operator on the dead letters of a binding, in one process. */
const commands = (scenario: Scenario, random: Random.Random, process: number): ReadonlyArray<Action> => {
  const { faultPeriodMillis, bindings, processes } = scenario
  const own = bindings.flatMap((plan, index) => (plan.service === processes[process]!.service ? [index] : []))
  return Array.from({ length: random.pick([0, 0, 1, 2]) }, (): Action => {
    const binding = own[random.between(0, own.length - 1)]!
    const atMillis = random.between(1_000, faultPeriodMillis)
    return random.happens(0.7)
      ? { _tag: "Discard", atMillis, process, binding, every: random.between(1, 4) }
      : { _tag: "Purge", atMillis, process, binding, beforeMillis: random.between(0, atMillis) }
  })
}

const ofLetters = ({ bindings, faultPeriodMillis }: Scenario, random: Random.Random, binding: number): Action => ({
  _tag: "Truncate",
  atMillis: random.between(faultPeriodMillis / 2, faultPeriodMillis),
  binding,
  partition: random.between(0, bindings[binding]!.partitions - 1),
  of: "letters",
  share: random.pick(["half", "all"] as const)
})

/** Retention takes what a paused binding has not read. */
const whilePaused = (
  { bindings, processes, faultPeriodMillis }: Scenario,
  random: Random.Random,
  binding: number
): ReadonlyArray<Action> => {
  const plan = bindings[binding]!
  const fromMillis = random.between(1, faultPeriodMillis / 2)
  const own = processes.flatMap(({ service }, process) => (service === plan.service ? [process] : []))
  const lasts = random.between(20_000, 40_000)
  return [
    ...own.flatMap(
      (process): ReadonlyArray<Action> => [
        { _tag: "Pause", atMillis: fromMillis, process, binding },
        { _tag: "Resume", atMillis: fromMillis + lasts, process, binding }
      ]
    ),
    {
      _tag: "Truncate",
      atMillis: fromMillis + random.between(1, lasts),
      binding,
      partition: random.between(0, plan.partitions - 1),
      of: "main",
      share: random.pick(["half", "all"] as const)
    }
  ]
}

const withActions = (scenario: Scenario, added: ReadonlyArray<Action>): Scenario => ({
  ...scenario,
  actions: [...scenario.actions, ...added].sort((a, b) => a.atMillis - b.atMillis)
})
