/**
 * Runs one scenario from its first record to the last stop, and holds what happened against the rules.
 */
import type { BrokerError, ConsumerRecord } from "@eventbus/core"
import { MemoryBroker } from "@eventbus/testkit"
import { Cause, Effect, Exit, Schedule } from "effect"
import { applyEntry } from "../history/applyEntry.ts"
import { type Entry, History } from "../history/History.ts"
import { Ledger } from "../history/Ledger.ts"
import { rules } from "../rules/rules.ts"
import { encode, headersOf } from "../scenario/plannedRecords.ts"
import { groupOf, outputTopic, retryTopics } from "../scenario/retries.ts"
import { type Action, beginMillis, isDown, type Scenario } from "../scenario/Scenario.ts"
import * as Cluster from "./cluster.ts"
import { type HandlerContext, makeHandlerContext } from "./handlers.ts"
import { type Defect, Machine } from "./Machine.ts"
import { Stuck, Timeline } from "./Timeline.ts"

export interface Violation {
  readonly rule: string
  readonly message: string
  /** Index of the history entry that broke the rule. */
  readonly at: number
}

export interface Outcome {
  readonly scenario: Scenario
  readonly history: ReadonlyArray<Entry>
  readonly violation: Violation | undefined
}

/** Time limits, in virtual time. */
const settleLimitMillis = 20 * 60_000
/** A producer, also of a killed process, gives up undelivered records after two minutes. */
const cleanUpMillis = 3 * 60_000
const idleLimitMillis = 6 * 60_000
/** Interval of the checks after the last planned action. The longest fault of a plan is an isolation of two minutes. */
const pollMillis = 2_000

export const simulate = (scenario: Scenario, defect?: Defect): Outcome => {
  const time = new Timeline({ seed: scenario.seed, interleaving: scenario.interleaving })
  const history = new History(() => time.nowMillis - beginMillis)
  const stuck = run(time, Effect.scoped(program(scenario, history, defect)))
  if (stuck === undefined) history.add({ _tag: "Closed", fibers: time.fibers })
  const { entries } = history
  if (stuck !== undefined) {
    const violation = { rule: "progress", message: stuck, at: entries.length - 1 }
    return { scenario, history: entries, violation: firstViolation(scenario, entries) ?? violation }
  }
  return { scenario, history: entries, violation: firstViolation(scenario, entries) }
}

/** The reason why the run did not end; undefined when it ended. */
const run = (time: Timeline, effect: Effect.Effect<void>): string | undefined => {
  try {
    const exit = time.run(effect)
    return Exit.isSuccess(exit) ? undefined : Cause.pretty(exit.cause)
  } catch (error) {
    if (error instanceof Stuck) return error.message
    throw error
  }
}

/** The first entry that breaks a rule. */
export const firstViolation = (scenario: Scenario, entries: ReadonlyArray<Entry>): Violation | undefined => {
  const ledger = new Ledger(scenario)
  for (const [at, entry] of entries.entries()) {
    for (const { name, check } of rules) {
      const message = check(entry, ledger)
      if (message !== undefined) return { rule: name, message, at }
    }
    applyEntry(ledger, entry)
  }
  return undefined
}

interface World {
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

const program = Effect.fnUntraced(function* (scenario: Scenario, history: History, defect: Defect | undefined) {
  const { bindings, assignment, latencyMillis, maxRecordsPerChunk, faults } = scenario
  const latency = { join: latencyMillis, fetch: latencyMillis, commit: latencyMillis, produce: latencyMillis }
  const storedIn = Cluster.storedCopies()
  const memory: Cluster.Memory = yield* MemoryBroker.make({
    assignment,
    maxRecordsPerChunk,
    latency,
    requestTimeout: "5 seconds",
    faults,
    onEvent: (entry) => {
      history.add({ _tag: "Broker", entry })
      const stored = entry._tag === "Appended" ? storedIn(memory, entry) : undefined
      if (stored !== undefined) history.add(stored)
    }
  })
  const handlerContext = makeHandlerContext(history, (binding) => isDown(scenario, binding, history.nowMillis()))
  const machines = scenario.processes.map(
    ({ concurrency }, index) =>
      new Machine({
        name: `p${index + 1}`,
        concurrency,
        plans: bindings,
        memory,
        history,
        handlerContext,
        defect: defect
      })
  )
  const world: World = { scenario, history, memory, machines, handlerContext, failures: [], acting: 0 }
  for (const plan of bindings) {
    yield* memory.createTopic(plan.topic, { partitions: plan.partitions })
    if (plan.listener === "transactional") yield* memory.createTopic(outputTopic(plan))
  }
  // Also when the run gets stuck.
  yield* Effect.addFinalizer(() => Effect.sync(() => Cluster.markAborted(memory, history.entries)))
  yield* faultPeriod(world)
  yield* settle(world)
  if (world.failures.length > 0) return yield* Effect.die(new Error(world.failures.join("\n")))
  const readMillis = history.nowMillis()
  const lagging = yield* Cluster.lag(memory, bindings)
  const outputs = yield* Cluster.outputs(memory, bindings)
  const groups = yield* Effect.forEach(
    bindings.flatMap((plan) => [...new Set([plan.groupId, ...retryTopics(plan).map((topic) => groupOf(plan, topic))])]),
    (groupId) => Effect.map(memory.group(groupId), Cluster.describeGroup)
  )
  yield* Effect.forEach(machines, (machine) => machine.stop(), { concurrency: "unbounded", discard: true })
  const leftovers = yield* awaitIdle(world)
  // Read last, since an isolated process may publish a dead letter until its end.
  const deadLetters = yield* Cluster.deadLetters(memory, bindings)
  history.add({ _tag: "Ended", remains: { groups, readMillis, lagging, deadLetters, outputs, leftovers } })
})

const faultPeriod = Effect.fnUntraced(function* (world: World) {
  let nowMillis = 0
  for (const action of world.scenario.actions) {
    if (action.atMillis > nowMillis) yield* Effect.sleep(action.atMillis - nowMillis)
    nowMillis = Math.max(nowMillis, action.atMillis)
    // The next action does not wait for a stop.
    world.acting++
    const acted = Effect.onExit(act(world, action), (exit) =>
      Effect.sync(() => {
        world.acting--
        if (Exit.isFailure(exit)) world.failures.push(`${action._tag}: ${Cause.pretty(exit.cause)}`)
      })
    )
    yield* Effect.forkDetach(acted, { startImmediately: true })
  }
  const restMillis = world.scenario.faultPeriodMillis - nowMillis
  if (restMillis > 0) yield* Effect.sleep(restMillis)
  world.history.add({ _tag: "FaultsOver" })
})

const act = (world: World, action: Action): Effect.Effect<void, BrokerError.BrokerError> => {
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
    for (const plan of records) handlerContext.plans.set(plan.id, plan)
    yield* awaitPartition(memory, topic, partition)
    const { logEnd } = yield* memory.offsets(topic, partition)
    // Recorded before the broker wakes its readers.
    history.add({ _tag: "Published", binding: name, partition: `${topic}/${partition}`, firstOffset: logEnd, records })
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
const awaitPartition = (memory: World["memory"], topic: string, partition: number) =>
  Effect.repeat(memory.partitionCount(topic), {
    until: (partitions) => partitions > partition,
    schedule: Schedule.spaced("1 second")
  })

/** Actions that change a log without a reader noticing at once. */
const change = Effect.fnUntraced(function* (
  memory: World["memory"],
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

/** Operators restart and resume everything until every record is published and read, or the time limit is reached. */
const settle = Effect.fnUntraced(function* (world: World) {
  const { machines, scenario, memory } = world
  for (let waited = 0; waited < settleLimitMillis; waited += pollMillis) {
    if (!machines.some((machine) => machine.isUp)) yield* machines[0]!.start()
    for (const machine of machines) for (const { name } of scenario.bindings) yield* machine.resume(name)
    yield* Effect.sleep(pollMillis)
    if (world.acting === 0 && (yield* Cluster.lag(memory, scenario.bindings)).length === 0) return
  }
})

/** Sentences that describe the leftovers when everything had time to end. */
const awaitIdle = Effect.fnUntraced(function* ({ machines, memory, handlerContext }: World) {
  const activity = Effect.gen(function* () {
    if (!machines.every((machine) => machine.isIdle)) return ["a process did not end"]
    // The duration of a stop is bounded, and a handler that resists its interruption ends later.
    if (handlerContext.running > 0) return [`${handlerContext.running} handlers run on`]
    const usage = yield* memory.usage
    return (["consumers", "producers", "admins"] as const).flatMap((kind) =>
      usage[kind] === 0 ? [] : [`${usage[kind]} ${kind} are connected after everything was stopped`]
    )
  })
  for (let waited = 0; waited < idleLimitMillis; waited += 1_000) {
    if ((yield* activity).length === 0) {
      // Fibers of a killed process end by their own timeouts.
      yield* Effect.sleep(cleanUpMillis)
      return []
    }
    yield* Effect.sleep(1_000)
  }
  return yield* activity
})
