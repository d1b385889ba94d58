/**
 * A second topic of the first binding: it shares handler, group, breaker and limits with the first topic, and has retry topics, dead letters and offsets of its own.
 */
import type * as Random from "./random.ts"
import type { Action, Scenario } from "./Scenario.ts"

export const secondTopic = "refunds"

/** About half of what is published goes to the second topic. */
export const withSecondTopic = (scenario: Scenario, random: Random.Random): Scenario => {
  const [first, ...others] = scenario.bindings
  const { partitions } = first!
  const published = scenario.actions.map((action): Action => {
    if (action._tag !== "Publish" || action.binding !== 0 || random.happens(0.5)) return action
    // Only the first topic grows.
    const records = action.records.map((record) => ({ ...record, partition: record.partition % partitions }))
    return { ...action, topic: secondTopic, records }
  })
  return { ...scenario, bindings: [{ ...first!, otherTopics: [secondTopic] }, ...others], actions: published }
}
