/**
 * A topic that is deleted and made again while its binding runs: the main topic, a retry topic, or both. The records of the new topic have the offsets of the former one's
 * (rulings 77 and 85).
 */
import { drawBehaviour } from "./behaviours.ts"
import type * as Random from "./random.ts"
import { retryTopics } from "./retries.ts"
import type { Action, BindingPlan, RecordPlan, Scenario } from "./Scenario.ts"

/** At once, while members still give up the former topic, and after the group has stopped waiting for them. */
const gapsMillis = [0, 200, 1_000, 5_000, 22_000, 45_000] as const

export const withRemakes = (scenario: Scenario, random: Random.Random): Scenario => {
  const [first] = scenario.bindings
  const listener = first!.listener === "transactional" ? "single" : first!.listener
  const takesKeys = listener === "single" || listener === "batch"
  const plan: BindingPlan = { ...first!, listener, isIdempotent: takesKeys && random.happens(0.7) }
  const { faultPeriodMillis } = scenario
  const kept = scenario.actions.flatMap((action) => keptOf(action, plan))
  const remakes = topicsOf(plan, random).map(
    (topic): Extract<Action, { readonly _tag: "Remake" }> => ({
      _tag: "Remake",
      atMillis: random.between(500, faultPeriodMillis),
      topic,
      partitions: plan.partitions,
      gapMillis: random.pick(gapsMillis)
    })
  )
  const published = remakes.map(
    ({ atMillis, gapMillis }, index): Action => ({
      _tag: "Publish",
      atMillis: atMillis + gapMillis + random.between(0, 5_000),
      binding: 0,
      records: Array.from({ length: random.between(5, 60) }, (_, serial) =>
        recordOf(random, plan, `${index}-${serial}`)
      ),
      others: []
    })
  )
  return {
    ...scenario,
    bindings: [plan],
    outage: scenario.outage?.binding === plan.name ? scenario.outage : undefined,
    actions: [...kept, ...remakes, ...published].sort((a, b) => a.atMillis - b.atMillis)
  }
}

/** The actions of processes, of operators, and of producers. The topic keeps its partitions, and nothing but records in them. */
const keptOf = (action: Action, plan: BindingPlan): ReadonlyArray<Action> => {
  switch (action._tag) {
    case "Start":
    case "Stop":
    case "Kill":
      return [action]
    case "Pause":
    case "Resume":
      return action.binding === 0 ? [action] : []
    case "Publish": {
      if (action.binding > 0) return []
      const within = (record: RecordPlan) => ({ ...record, partition: record.partition % plan.partitions })
      return [{ ...action, records: action.records.map(within) }]
    }
    default:
      return []
  }
}

/** The main topic, a retry topic, or both. */
const topicsOf = (plan: BindingPlan, random: Random.Random): ReadonlyArray<string> => {
  const retries = retryTopics(plan)
  const retry = retries[random.between(0, retries.length - 1)]
  if (retry === undefined) return [plan.topic]
  return random.pick([[plan.topic], [plan.topic, retry], [retry]] as const)
}

const recordOf = (random: Random.Random, plan: BindingPlan, serial: string): RecordPlan => ({
  id: `${plan.name}-again-${serial}`,
  partition: random.between(0, plan.partitions - 1),
  key: `k${random.between(1, 5)}`,
  behaviour: drawBehaviour(random, plan),
  forged: false,
  claim: undefined
})

export const hasRemakes = ({ actions }: Scenario): boolean => actions.some(({ _tag }) => _tag === "Remake")
