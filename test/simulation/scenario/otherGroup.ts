/**
 * A second service whose binding keeps the order of each key and reads the same topic in a group of its own. Both share the retry topics and the dead letter topic (ruling 71), and each
 * has keys of its own that are parked. Within one service, registration asks for other names.
 */
import * as Order from "./order.ts"
import type * as Random from "./random.ts"
import type { Action, BindingPlan, ProcessPlan, RecordPlan, Scenario } from "./Scenario.ts"

export const withOtherGroup = (scenario: Scenario, random: Random.Random, nature: Order.Nature): Scenario => {
  const { bindings, processes, actions, faultPeriodMillis } = scenario
  const first = bindings[0]!
  const { topic, otherTopics, partitions } = first
  const plan: BindingPlan = {
    ...Order.drawBinding(random, nature),
    ...{ name: "invoices", service: 1, groupId: "invoices-readers", topic, otherTopics, partitions }
  }
  const own = Array.from({ length: random.between(1, 2) }, (): ProcessPlan => ({ concurrency: 1, service: 1 }))
  const lives = Order.lives(random, own.length, nature === "rough", faultPeriodMillis).map((action) =>
    "process" in action ? { ...action, process: action.process + processes.length } : action
  )
  const read = actions.map((action): Action => {
    if (action._tag !== "Publish") return action
    const records = action.records.map((record) => asReadBy(plan, record, random, nature))
    return { ...action, others: [{ binding: 1, records }] }
  })
  return {
    ...scenario,
    bindings: [first, plan],
    processes: [...processes, ...own],
    actions: [...read, ...lives].sort((a, b) => a.atMillis - b.atMillis)
  }
}

/** The same bytes, and another course of their handling. */
const asReadBy = (plan: BindingPlan, record: RecordPlan, random: Random.Random, nature: Order.Nature): RecordPlan => {
  const drawn = Order.drawBehaviour(random, plan, nature)
  if (record.behaviour._tag === "Undecodable") return record
  return { ...record, behaviour: drawn._tag === "Undecodable" ? { _tag: "Fine", millis: 0 } : drawn }
}
