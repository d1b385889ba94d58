/**
 * The actions from outside in a run: those of operators and producers, and changes of the cluster.
 */
import type { BrokerError } from "@eventbus/core"
import { Effect, Exit, Schedule } from "effect"
import type { History } from "../history/History.ts"
import { claimedHeaders, encode, headersOf } from "../scenario/plannedRecords.ts"
import { deadLetterTopic } from "../scenario/retries.ts"
import { type Action, beginMillis, isPerKey, type RecordPlan, type Scenario } from "../scenario/Scenario.ts"
import * as Cluster from "./cluster.ts"
import { type HandlerContext, planKey } from "./handlers.ts"
import type { Machine } from "./Machine.ts"

/** Everything that a run consists of. */
export interface World {
  readonly scenario: Scenario
  readonly history: History
  readonly memory: Cluster.Memory
  readonly clusterId: string
  readonly stored: Cluster.StoredCopies
  readonly machines: ReadonlyArray<Machine>
  readonly handlerContext: HandlerContext
  /** Failures of the simulation itself. */
  readonly failures: Array<string>
  /** Actions that have not ended: a broker that is down delays publishing and growing. */
  readonly acting: Set<Action>
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
      const { topic = scenario.bindings[action.binding]!.topic } = action
      const grow = Effect.flatMap(memory.broker.admin, (admin) => admin.createPartitions(topic, action.partitions))
      // A retry topic that nobody has needed yet, or that has grown with its source.
      const needed = Effect.flatMap(memory.partitionCount(topic), (count) =>
        count === 0 || count >= action.partitions ? Effect.void : Effect.scoped(grow)
      )
      // A broker that is down refuses to grow a topic, so the request is repeated.
      return Effect.retry(needed, { while: isAway, schedule: Schedule.spaced("1 second") })
    }
    case "Deploy":
      for (const machine of machines) machine.orderingMode = action.orderingMode
      return Effect.void
    case "Publish":
      return publish(world, action)
    case "Remake":
      return remake(world, action)
    case "Replay":
      return machines[action.process]!.replay(scenario.bindings[action.binding]!.name, action.order)
    case "Decide":
      return machines[action.process]!.decide(scenario.bindings[action.binding]!.name, action)
    case "Discard":
      return machines[action.process]!.discard(scenario.bindings[action.binding]!.name, action.every)
    case "Purge":
      return machines[action.process]!.purge(scenario.bindings[action.binding]!.name, action.beforeMillis)
    case "Read":
      return Effect.forEach(machines, (machine) => machine.read(), { discard: true })
    case "Observe":
      return Cluster.observe(memory, history, scenario.bindings[action.binding]!)
    default: {
      const plan = scenario.bindings[action.binding]!
      const isOfLetters = action._tag === "Truncate" && action.of === "letters"
      const named = action._tag === "Truncate" ? action.topic : undefined
      const topic = named ?? (isOfLetters ? deadLetterTopic(plan.topic) : plan.topic)
      return change(world, topic, action)
    }
  }
}

/** Deletes a topic and makes it again. A failing broker may delete it without saying so. */
const remake = Effect.fnUntraced(function* (world: World, action: Extract<Action, { readonly _tag: "Remake" }>) {
  const { memory, history, scenario, stored } = world
  const { topic, partitions, gapMillis } = action
  const isMain = scenario.bindings.some((plan) => plan.topic === topic)
  // A retry topic that nobody has needed yet.
  if ((yield* memory.partitionCount(topic)) === 0) return
  const remove = Effect.scoped(Effect.flatMap(memory.broker.admin, (admin) => admin.deleteTopics([topic])))
  yield* Effect.ignore(remove).pipe(
    Effect.andThen(memory.partitionCount(topic)),
    Effect.repeat({ until: (count) => count === 0, schedule: Schedule.spaced("1 second") })
  )
  history.add({ _tag: "Removed", topic, isMain })
  stored.forget(topic)
  yield* Effect.sleep(gapMillis)
  if ((yield* memory.partitionCount(topic)) > 0) return
  yield* memory.createTopic(topic, { partitions })
  history.add({ _tag: "Made", topic })
})

const isAway = ({ _tag }: BrokerError.BrokerError): boolean =>
  _tag === "BrokerUnavailable" || _tag === "RequestTimedOut"

const publish = Effect.fnUntraced(function* (world: World, action: Extract<Action, { readonly _tag: "Publish" }>) {
  const { scenario, memory, history, handlerContext } = world
  const { name, topic: first } = scenario.bindings[action.binding]!
  const { topic = first } = action
  const { clusterId } = world
  for (const [partition, records] of Map.groupBy(action.records, (record) => record.partition)) {
    yield* awaitPartition(memory, topic, partition)
    const { logEnd } = yield* memory.offsets(topic, partition)
    const nowMillis = beginMillis + history.nowMillis()
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
        headers: [
          ...headersOf(plan),
          ...(plan.claim === undefined ? [] : claimedHeaders(plan.claim, { clusterId, topic, partition, nowMillis }))
        ]
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
  { memory, history, scenario }: World,
  topic: string,
  action: Extract<Action, { readonly _tag: "Hole" | "Compact" | "Truncate" }>
) {
  const { partition } = action
  // A dead letter topic that nobody has needed yet.
  if ((yield* memory.partitionCount(topic)) <= partition) return
  const name = `${topic}/${partition}`
  const { logEnd } = yield* memory.offsets(topic, partition)
  if (action._tag !== "Hole") Cluster.noteReadable(history.entries, name, yield* memory.log(topic, partition))
  if (action._tag === "Hole") {
    const takes = action.kind === "control" ? 1n : 3n
    history.add({ _tag: "LogEnd", partition: name, logEnd: logEnd + takes, why: `${action.kind} records` })
    const record = { value: new TextEncoder().encode("aborted") }
    if (action.kind === "control") yield* memory.appendControl(topic, partition)
    else yield* memory.appendAborted(topic, partition, [record, record])
    return
  }
  if (action._tag === "Compact") {
    // Kafka compacts no record of an open transaction, and neither does this.
    const log = yield* memory.log(topic, partition)
    const offsets = log.map(({ offset }) => offset).filter((offset) => offset % 3n === 1n)
    history.add({ _tag: "Compacted", partition: name, offsets })
    return yield* memory.compact(topic, partition, ({ offset }) => offsets.includes(offset))
  }
  const { logStart } = yield* memory.offsets(topic, partition)
  const admin = yield* memory.broker.admin
  const exit = yield* Effect.exit(
    Effect.gen(function* () {
      // Retention takes no record of an open transaction.
      const ends = yield* admin.topicOffsets(topic, "read_committed")
      const end = ends.find((each) => each.partition === partition)!.logEnd
      const before = action.share === "all" ? end : logStart + (end - logStart) / 2n
      // A follower is missed as soon as it is gone, and a failing broker may delete without saying so.
      if (isPerKey(scenario)) history.add({ _tag: "Truncated", partition: name, before })
      yield* admin.deleteRecords(topic, [{ partition, before }])
      return before
    })
  )
  if (Exit.isSuccess(exit) && !isPerKey(scenario))
    history.add({ _tag: "Truncated", partition: name, before: exit.value })
}, Effect.scoped)
