/**
 * Replays of dead letters by operators, in whatever process they are at, and records whose headers claim falsely that a replay published them (ruling 70).
 */
import type * as Random from "./random.ts"
import type { Action, RecordPlan, ReplayClaim, ReplayOrder, Scenario } from "./Scenario.ts"

/** Replays of a record when the plan says nothing else: the product's default. */
export const defaultMaxReplays = 3

export const withReplays = (scenario: Scenario, random: Random.Random): Scenario => {
  const { faultPeriodMillis, processes } = scenario
  const bindings = scenario.bindings.map((plan) => ({
    ...plan,
    maxReplays: random.pick([defaultMaxReplays, defaultMaxReplays, 1, 2])
  }))
  const replays = Array.from({ length: random.between(2, 10) }, (): Action => {
    const process = random.between(0, processes.length - 1)
    const own = bindings.flatMap((plan, index) => (plan.service === processes[process]!.service ? [index] : []))
    const binding = own[random.between(0, own.length - 1)]!
    const order = orderOf(random, bindings[binding]!.tiers.length, faultPeriodMillis)
    return { _tag: "Replay", atMillis: random.between(1_000, faultPeriodMillis), process, binding, order }
  })
  const groups = [...bindings.map(({ groupId }) => groupId), "others-readers"]
  const claiming = (record: RecordPlan): RecordPlan =>
    random.happens(0.1) ? { ...record, claim: claimOf(random, groups) } : record
  const read = scenario.actions.map((action): Action => {
    if (action._tag !== "Publish") return action
    const records = action.records.map(claiming)
    const claims = new Map(records.map(({ id, claim }) => [id, claim]))
    const others = action.others.map(({ binding, records: same }) => ({
      binding,
      records: same.map((record) => ({ ...record, claim: claims.get(record.id) }))
    }))
    return { ...action, records, others }
  })
  return { ...scenario, bindings, actions: [...read, ...replays].sort((a, b) => a.atMillis - b.atMillis) }
}

const orderOf = (random: Random.Random, tiers: number, faultPeriodMillis: number): ReplayOrder => {
  const fromMillis = random.between(0, faultPeriodMillis)
  const count = random.pick([1, 3, 100])
  return random.pick<ReplayOrder>([
    { _tag: "Next", count },
    { _tag: "Window", fromMillis, toMillis: random.between(fromMillis, faultPeriodMillis) },
    { _tag: "Window", fromMillis: 0, toMillis: faultPeriodMillis },
    { _tag: "Chosen", every: random.between(1, 3) },
    tiers === 0 ? { _tag: "Next", count } : { _tag: "ToTier", tier: random.between(1, tiers), count }
  ])
}

const claimOf = (random: Random.Random, groups: ReadonlyArray<string>): ReplayClaim => ({
  group: groups[random.between(0, groups.length - 1)]!,
  bond: random.pick(["none", "time", "partition", "topic", "cluster"] as const)
})
