/**
 * A second service that reads the first topic in a group of its own, with a policy of its own, and with the default names: both services share the retry topics and the
 * dead letter topic (ruling 71).
 */
import { drawBinding, lifecycle } from "./base.ts"
import { drawBehaviour } from "./behaviours.ts"
import type * as Random from "./random.ts"
import type { Action, BindingPlan, ProcessPlan, RecordPlan, Scenario } from "./Scenario.ts"

export const withSecondService = (scenario: Scenario, random: Random.Random): Scenario => {
  const first = scenario.bindings[0]!
  const binding = scenario.bindings.length
  const plan: BindingPlan = {
    ...drawBinding(random, 0),
    ...{ name: "invoices", service: 1, groupId: "invoices-readers", topic: first.topic, partitions: first.partitions }
  }
  const processes = Array.from(
    { length: random.between(1, 2) },
    (): ProcessPlan => ({
      concurrency: random.pick([1, 1, 2]),
      service: 1
    })
  )
  const begun = scenario.processes.length
  const own = processes.flatMap((_, index) => lifecycle(random, begun + index, scenario.faultPeriodMillis, [binding]))
  const read = scenario.actions.map((action): Action => {
    if (action._tag !== "Publish" || action.binding !== 0) return action
    const records = action.records.map((record) => asReadBy(plan, record, random))
    return { ...action, others: [...action.others, { binding, records }] }
  })
  return {
    ...scenario,
    bindings: [...scenario.bindings, plan],
    processes: [...scenario.processes, ...processes],
    actions: [...read, ...own].sort((a, b) => a.atMillis - b.atMillis)
  }
}

/** The same bytes, and another course of their handling. */
const asReadBy = (plan: BindingPlan, record: RecordPlan, random: Random.Random): RecordPlan => {
  const drawn = drawBehaviour(random, plan)
  if (record.behaviour._tag === "Undecodable") return record
  return { ...record, behaviour: drawn._tag === "Undecodable" ? { _tag: "Fine", millis: 0 } : drawn }
}
