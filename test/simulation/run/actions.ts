/**
 * The actions from outside in a run: those of operators and producers, and changes of the cluster.
 */
import type { BrokerError, ConsumerRecord } from "@eventbus/core"
import { Effect, Exit, Schedule } from "effect"
import type { History } from "../history/History.ts"
import { encode, headersOf } from "../scenario/plannedRecords.ts"
import type { Action, RecordPlan, Scenario } from "../scenario/Scenario.ts"
import * as Cluster from "./cluster.ts"
import { type HandlerContext, planKey } from "./handlers.ts"
import type { Machine } from "./Machine.ts"

/** Everything that a run consists of. */
export interface World {
  readonly scenario: Scenario
  readonly history: History
  readonly memory: Cluster.Memory
  readonly machines: ReadonlyArray<Machine>
  readonly handlerContext: HandlerContext
  /** Failures of the simulation itself. */
  readonly failures: Array<string>
  /** Number of actions that have not ended: a broker that is down delays publishing and growing. */
  acting: number
}

export const act = (world: World, action: Action): Effect.Effect<void, BrokerError.BrokerError> => {
  const { machines, scenario, memory, history } = world
  switch (action._tag) {
    case "Start":
      return machines[action.process]!.start()
    case "Stop":
      return machines[action.process]!.stop()
    case "Kill":
      return machines[action.process]!.kill()
    case "Pause":
      return machines[action.process]!.pause(scenario.bindings[action.binding]!.name)
    case "Resume":
      return machines[action.process]!.resume(scenario.bindings[action.binding]!.name)
    case "Grow": {
      const { topic } = scenario.bindings[action.binding]!
      // A broker that is down refuses to grow a topic, so the request is repeated.
      const grow = Effect.flatMap(memory.broker.admin, (admin) => admin.createPartitions(topic, action.partitions))
      return Effect.retry(Effect.scoped(grow), { while: isAway, schedule: Schedule.spaced("1 second") })
    }
    case "Publish":
      return publish(world, action)
    case "Observe":
      return Cluster.observe(memory, history, scenario.bindings[action.binding]!)
    default: {
      const { topic } = scenario.bindings[action.binding]!
      return change(memory, history, topic, action)
    }
  }
}

const isAway = ({ _tag }: BrokerError.BrokerError): boolean =>
  _tag === "BrokerUnavailable" || _tag === "RequestTimedOut"

const publish = Effect.fnUntraced(function* (world: World, action: Extract<Action, { readonly _tag: "Publish" }>) {
  const { scenario, memory, history, handlerContext } = world
  const { name, topic } = scenario.bindings[action.binding]!
  for (const [partition, records] of Map.groupBy(action.records, (record) => record.partition)) {
    yield* awaitPartition(memory, topic, partition)
    const { logEnd } = yield* memory.offsets(topic, partition)
    // Recorded before the broker wakes its readers.
    const note = (binding: string, read: ReadonlyArray<RecordPlan>) => {
      for (const plan of read) handlerContext.plans.set(planKey(binding, plan.id), plan)
      const at = { partition: `${topic}/${partition}`, firstOffset: logEnd }
      history.add({ _tag: "Published", binding, ...at, records: read })
    }
    note(name, records)
    for (const other of action.others) {
      const read = other.records.filter((record) => record.partition === partition)
      note(scenario.bindings[other.binding]!.name, read)
    }
    yield* memory.append(
      topic,
      partition,
      records.map((plan) => ({
        key: plan.key === null ? null : new TextEncoder().encode(plan.key),
        value: encode(plan),
        headers: headersOf(plan)
      }))
    )
  }
})

/** Waits for a partition that a failing broker has not made yet. */
const awaitPartition = (memory: Cluster.Memory, topic: string, partition: number) =>
  Effect.repeat(memory.partitionCount(topic), {
    until: (partitions) => partitions > partition,
    schedule: Schedule.spaced("1 second")
  })

/** Actions that change a log without a reader noticing at once. */
const change = Effect.fnUntraced(function* (
  memory: Cluster.Memory,
  history: History,
  topic: string,
  action: Extract<Action, { readonly _tag: "Hole" | "Compact" | "Truncate" }>
) {
  const { partition } = action
  const name = `${topic}/${partition}`
  const { logEnd } = yield* memory.offsets(topic, partition)
  if (action._tag === "Hole") {
    const takes = action.kind === "control" ? 1n : 3n
    history.add({ _tag: "LogEnd", partition: name, logEnd: logEnd + takes, why: `${action.kind} records` })
    const record = { value: new TextEncoder().encode("aborted") }
    if (action.kind === "control") yield* memory.appendControl(topic, partition)
    else yield* memory.appendAborted(topic, partition, [record, record])
    return
  }
  if (action._tag === "Compact") {
    const removed = (record: ConsumerRecord.ConsumerRecord) => record.offset % 3n === 1n
    const log = yield* memory.log(topic, partition)
    history.add({ _tag: "Compacted", partition: name, offsets: log.filter(removed).map(({ offset }) => offset) })
    return yield* memory.compact(topic, partition, removed)
  }
  const { logStart } = yield* memory.offsets(topic, partition)
  const before = logStart + (logEnd - logStart) / 2n
  const admin = yield* memory.broker.admin
  const exit = yield* Effect.exit(admin.deleteRecords(topic, [{ partition, before }]))
  if (Exit.isSuccess(exit)) history.add({ _tag: "Truncated", partition: name, before })
}, Effect.scoped)
