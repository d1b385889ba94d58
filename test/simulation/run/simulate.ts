/**
 * Runs one scenario from its first record to the last stop, and holds what happened against the rules.
 */
import { MemoryBroker } from "@eventbus/testkit"
import { Cause, Effect, Exit } from "effect"
import { type Entry, History, type LetterState } from "../history/History.ts"
import { servicesOf } from "../history/services.ts"
import { hasRemakes } from "../scenario/remakes.ts"
import { mainTopics, outputPartitions, outputTopic, retryGroups, retryTopics } from "../scenario/retries.ts"
import { type Action, beginMillis, isDown, isPerKey, type Scenario } from "../scenario/Scenario.ts"
import { act, type World } from "./actions.ts"
import * as Cluster from "./cluster.ts"
import { makeHandlerContext } from "./handlers.ts"
import * as Idempotency from "./idempotency.ts"
import * as Locks from "./locks.ts"
import { type Defect, Machine } from "./Machine.ts"
import { Stuck, Timeline } from "./Timeline.ts"
import { firstViolation, type Violation } from "./violations.ts"

export interface Outcome {
  readonly scenario: Scenario
  readonly history: ReadonlyArray<Entry>
  readonly violation: Violation | undefined
}

/** Time limits, in virtual time. */
const settleLimitMillis = 20 * 60_000
/** A key whose records fail one after the other waits for each of them. */
const settleOrderLimitMillis = 6 * 60 * 60_000
/** A producer, also of a killed process, gives up undelivered records after two minutes. */
const cleanUpMillis = 3 * 60_000
const idleLimitMillis = 6 * 60_000
/** Longer than a figure that is asked for now and then may lag behind. */
const restMillis = 50_000
/** Everything is at rest long before. */
const restLimitMillis = 60 * 60_000
/** Interval of the checks after the last planned action. The longest fault of a plan is an isolation of two minutes. */
const pollMillis = 2_000

export const simulate = (scenario: Scenario, defect?: Defect): Outcome => {
  const time = new Timeline({ seed: scenario.seed, interleaving: scenario.interleaving })
  const history = new History(() => time.nowMillis - beginMillis)
  const remove = defect?.plant?.()
  const { stackTraceLimit } = Error
  // Stack traces of planned errors would cost more than all the rest.
  Error.stackTraceLimit = 0
  const stuck = run(time, Effect.scoped(program(scenario, history, defect)))
  Error.stackTraceLimit = stackTraceLimit
  remove?.()
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

/** Makes the cluster with its topics, and the machines. */
const makeWorld = Effect.fnUntraced(function* (scenario: Scenario, history: History, defect: Defect | undefined) {
  const { bindings, assignment, latencyMillis, maxRecordsPerChunk, faults } = scenario
  const inTransaction = {
    sendOffsets: scenario.transactionLatencyMillis,
    endTransaction: scenario.transactionLatencyMillis
  }
  const latency = {
    ...{ join: latencyMillis, fetch: latencyMillis, commit: latencyMillis, produce: latencyMillis },
    ...inTransaction
  }
  const transactional = new Map(
    bindings.flatMap((plan) => (plan.listener === "transactional" ? [[plan.groupId, plan] as const] : []))
  )
  let clusterId = ""
  const stored = Cluster.storedCopies(bindings)
  const locked = Locks.stored(bindings)
  const memory: Cluster.Memory = yield* MemoryBroker.make({
    assignment,
    maxRecordsPerChunk,
    latency,
    requestTimeout: "5 seconds",
    faults,
    onEvent: (entry) => {
      history.add({ _tag: "Broker", entry })
      const copies = entry._tag === "Appended" ? stored.read(memory, clusterId, entry) : undefined
      if (copies !== undefined) history.add(copies)
      const locks = entry._tag === "Appended" ? locked(memory, entry) : undefined
      if (locks !== undefined) history.add(locks)
      // The offsets of a transaction are the last part of it that becomes visible.
      const committed = entry._tag === "Committed" ? transactional.get(entry.groupId) : undefined
      if (committed !== undefined) Effect.runSync(Cluster.observe(memory, history, committed))
    }
  })
  clusterId = (yield* Effect.orDie(Effect.scoped(memory.broker.admin))).clusterId
  const handlerContext = makeHandlerContext(history, (binding) => isDown(scenario, binding, history.nowMillis()))
  const store = yield* Idempotency.make
  const machines = scenario.processes.map(
    ({ concurrency, service }, index) =>
      new Machine({
        name: `p${index + 1}`,
        service,
        concurrency,
        plans: bindings.filter((plan) => plan.service === service),
        memory,
        history,
        store,
        handlerContext,
        defect: defect
      })
  )
  const partitions = new Map(
    // Two groups may read one topic.
    bindings.flatMap((plan) => mainTopics(plan).map((topic) => [topic, plan.partitions] as const))
  )
  for (const [topic, count] of partitions) yield* memory.createTopic(topic, { partitions: count })
  if (scenario.retryTopics !== undefined) {
    const { partitions: count, timestampType } = scenario.retryTopics
    const config = new Map([["message.timestamp.type", timestampType]])
    for (const topic of new Set(bindings.flatMap(retryTopics)))
      yield* memory.createTopic(topic, { partitions: count, config })
  }
  for (const plan of bindings) {
    if (plan.listener === "transactional")
      yield* memory.createTopic(outputTopic(plan), { partitions: outputPartitions(plan) })
  }
  const world: World = {
    ...{ scenario, history, memory, clusterId, stored, machines, handlerContext },
    ...{ failures: [], acting: new Set<Action>() }
  }
  return world
})

const program = Effect.fnUntraced(function* (scenario: Scenario, history: History, defect: Defect | undefined) {
  const { bindings } = scenario
  const world = yield* makeWorld(scenario, history, defect)
  const { memory, machines } = world
  // Also when the run gets stuck.
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      // The logs of topics that were deleted are gone. No transaction writes to one.
      if (!hasRemakes(scenario)) Cluster.markAborted(memory, history.entries)
    })
  )
  yield* faultPeriod(world)
  yield* settle(world)
  yield* lastReading(world)
  if (world.failures.length > 0) return yield* Effect.die(new Error(world.failures.join("\n")))
  const readMillis = history.nowMillis()
  const lagging = yield* Cluster.lag(memory, bindings)
  const outputs = yield* Cluster.outputs(memory, bindings)
  const letters = yield* lettersOf(world)
  const groups = yield* Effect.forEach(
    bindings.flatMap((plan) => [...new Set([plan.groupId, ...retryGroups(plan)])]),
    (groupId) => Effect.map(memory.group(groupId), Cluster.describeGroup)
  )
  yield* Effect.forEach(machines, (machine) => machine.stop(), { concurrency: "unbounded", discard: true })
  const leftovers = yield* awaitIdle(world)
  // Read last, since an isolated process may publish a dead letter until its end.
  const deadLetters = yield* Cluster.deadLetters(memory, bindings)
  history.add({ _tag: "Ended", remains: { groups, readMillis, lagging, deadLetters, letters, outputs, leftovers } })
})

/** Somebody reads all figures. Where that has gone on for the whole run, once more when everything has been at rest for so long that they must be right. */
const lastReading = Effect.fnUntraced(function* (world: World) {
  const { scenario, machines, memory } = world
  const read = Effect.forEach(machines, (machine) => machine.read(), { discard: true })
  yield* read
  if (!scenario.actions.some(({ _tag }) => _tag === "Read")) return
  yield* Effect.sleep(restMillis)
  // A process that was isolated publishes what it still held.
  while ((yield* Cluster.lag(memory, scenario.bindings)).length > 0 && world.history.nowMillis() < restLimitMillis) {
    yield* settle(world)
    yield* Effect.sleep(restMillis)
  }
  yield* read
})

/** The dead letters of bindings whose operators replay some, each as one of its processes sees them. */
const lettersOf = Effect.fnUntraced(function* ({ scenario, machines }: World) {
  const found = new Map<string, ReadonlyArray<LetterState>>()
  if (!scenario.actions.some(({ _tag }) => _tag === "Replay")) return found
  for (const { name, service } of scenario.bindings) {
    const machine = machines.find((candidate) => candidate.service === service && candidate.isUp)
    const letters = yield* machine?.letters(name) ?? Effect.void
    if (letters !== undefined) found.set(name, letters)
  }
  return found
})

const faultPeriod = Effect.fnUntraced(function* (world: World) {
  let nowMillis = 0
  for (const action of world.scenario.actions) {
    if (action.atMillis > nowMillis) yield* Effect.sleep(action.atMillis - nowMillis)
    nowMillis = Math.max(nowMillis, action.atMillis)
    // The next action does not wait for a stop.
    world.acting.add(action)
    const acted = Effect.onExit(act(world, action), (exit) =>
      Effect.sync(() => {
        world.acting.delete(action)
        if (Exit.isFailure(exit)) world.failures.push(`${action._tag}: ${Cause.pretty(exit.cause)}`)
      })
    )
    yield* Effect.forkDetach(acted, { startImmediately: true })
  }
  const restMillis = world.scenario.faultPeriodMillis - nowMillis
  if (restMillis > 0) yield* Effect.sleep(restMillis)
  world.history.add({ _tag: "FaultsOver" })
})

/** Operators restart and resume everything until every record is published and read, or the time limit is reached. */
const settle = Effect.fnUntraced(function* (world: World) {
  const { machines, scenario, memory } = world
  const limitMillis = isPerKey(scenario) ? settleOrderLimitMillis : settleLimitMillis
  for (let waited = 0; waited < limitMillis; waited += pollMillis) {
    for (const service of servicesOf(scenario)) {
      const own = machines.filter((machine) => machine.service === service)
      if (!own.some((machine) => machine.isUp)) yield* own[0]!.start()
    }
    for (const machine of machines) for (const name of machine.bindings) yield* machine.resume(name)
    yield* Effect.sleep(pollMillis)
    if (world.acting.size === 0 && (yield* Cluster.lag(memory, scenario.bindings)).length === 0) return
  }
})

/** Sentences that describe the leftovers when everything had time to end. */
const awaitIdle = Effect.fnUntraced(function* ({ machines, memory, handlerContext, acting }: World) {
  const activity = Effect.gen(function* () {
    if (!machines.every((machine) => machine.isIdle)) return ["a process did not end"]
    // The duration of a stop is bounded, and a handler that resists its interruption ends later.
    if (handlerContext.running > 0) return [`${handlerContext.running} handlers run on`]
    const [action] = acting
    if (action !== undefined) return [`the action ${action._tag} of ${action.atMillis} ms did not end`]
    const usage = yield* memory.usage
    return (["consumers", "producers", "readers", "admins"] as const).flatMap((kind) =>
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
