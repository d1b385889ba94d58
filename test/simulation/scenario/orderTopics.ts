/**
 * Changes to the topics of a binding with order per key while keys are parked: they grow, retention or compaction passes followers and locks, and retry topics are not as the
 * connector makes them.
 */
import type * as Random from "./random.ts"
import { mainTopics, retryTopics } from "./retries.ts"
import type { Action, Scenario } from "./Scenario.ts"

/** The first topic of the binding grows, and is published to where it is new; or one of its retry topics grows alone. */
export const withGrowth = (scenario: Scenario, random: Random.Random): Scenario => {
  const { bindings, faultPeriodMillis, actions } = scenario
  const [plan] = bindings
  const atMillis = random.between(500, faultPeriodMillis)
  const partitions = plan!.partitions + random.between(1, 2)
  const retries = retryTopics(plan!)
  if (random.happens(0.3)) {
    const topic = retries[random.between(0, retries.length - 1)]!
    return added(scenario, [{ _tag: "Grow", atMillis, binding: 0, topic, partitions }])
  }
  const published = actions.map((action): Action => {
    if (action._tag !== "Publish" || action.topic !== undefined || action.atMillis <= atMillis) return action
    const moved = new Map(action.records.map(({ id }) => [id, random.between(0, partitions - 1)]))
    const within = ({ id, ...record }: (typeof action.records)[number]) => ({
      ...record,
      id,
      partition: moved.get(id)!
    })
    return {
      ...action,
      records: action.records.map(within),
      others: action.others.map((other) => ({ ...other, records: other.records.map(within) }))
    }
  })
  return added({ ...scenario, actions: published }, [{ _tag: "Grow", atMillis, binding: 0, partitions }])
}

/** Retention deletes records of sources or of retry topics, up to three times, and compaction takes records of a source. */
export const withDeletions = (scenario: Scenario, random: Random.Random): Scenario => {
  const { bindings, faultPeriodMillis } = scenario
  const [plan] = bindings
  const topics = random.happens(0.7) ? mainTopics(plan!) : retryTopics(plan!)
  const deletions = Array.from({ length: random.between(1, 3) }, (): Action => {
    const at = {
      atMillis: random.between(500, faultPeriodMillis),
      binding: 0,
      partition: random.between(0, plan!.partitions - 1)
    }
    if (random.happens(0.2)) return { ...at, _tag: "Compact" }
    const topic = topics[random.between(0, topics.length - 1)]!
    return { ...at, _tag: "Truncate", topic, of: "main", share: random.pick(["half", "all"] as const) }
  })
  return added(scenario, deletions)
}

/** Somebody has made the retry topics: with other numbers of partitions, or with the times of the broker. */
export const withMadeRetryTopics = (scenario: Scenario, random: Random.Random): Scenario => {
  const { partitions } = scenario.bindings[0]!
  return {
    ...scenario,
    retryTopics: {
      partitions: random.pick([1, partitions, partitions, partitions + 2]),
      timestampType: random.happens(0.7) ? "LogAppendTime" : "CreateTime"
    }
  }
}

const added = (scenario: Scenario, actions: ReadonlyArray<Action>): Scenario => ({
  ...scenario,
  actions: [...scenario.actions, ...actions].sort((a, b) => a.atMillis - b.atMillis)
})
