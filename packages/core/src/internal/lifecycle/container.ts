/**
 * A registered binding: puts its parts together and holds its state.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import type { Broker, PartitionOffsets } from "../../Broker.ts"
import * as CircuitBreaker from "../../CircuitBreaker.ts"
import type { ContainerState } from "../../EventBusError.ts"
import { Hostname } from "../../Hostname.ts"
import type { NotOrderedPerKey, ParkedKeys } from "../../ParkedKeys.ts"
import type { Runs as RunCommands } from "../../ReplayRun.ts"
import { toMillis } from "../base/durations.ts"
import * as LettersOfTopics from "../deadLetters/lettersOfTopics.ts"
import type { Strategy } from "../deadLetters/strategy.ts"
import type { FleetMember } from "../fleet/fleetMember.ts"
import { type Consumer, subscriptions } from "../group/consumer.ts"
import * as Supervisor from "../group/supervisor.ts"
import * as BindingMetrics from "../observe/bindingMetrics.ts"
import type { DeadLetterDepth } from "../observe/deadLetterDepth.ts"
import type { EventHub } from "../observe/eventHub.ts"
import * as OngoingFailures from "../observe/ongoingFailures.ts"
import * as HeldRecords from "../partition/heldRecords.ts"
import type { Partition } from "../partition/partition.ts"
import * as CopyPublisher from "../publish/copyPublisher.ts"
import type * as RetryTopics from "../publish/retryTopics.ts"
import * as RunsOfTopics from "../runs/runsOfTopics.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as BreakerPermits from "../slots/breakerPermits.ts"
import * as ConcurrencyLimits from "../slots/concurrencyLimits.ts"
import * as HealthReport from "./health.ts"
import * as KeyOrder from "./keyOrder.ts"
import type * as LagPoller from "./lagPoller.ts"
import * as Pausing from "./pausing.ts"
import * as Run from "./run.ts"
import * as Snapshots from "./snapshots.ts"
import * as StartStop from "./startStop.ts"

type Command = StartStop.Command

export interface Container extends FleetMember {
  readonly broker: Broker["Service"]
  readonly hostname: string
  readonly deadLetterDepth: DeadLetterDepth
  readonly clusterStatus: LagPoller.ClusterStatus
  readonly failures: OngoingFailures.BindingFailures
  /** The commands on all its dead letters. */
  readonly deadLetters: LettersOfTopics.LettersOfTopics["all"]
  /** The plans over its dead letters, and their runs. */
  readonly runs: RunCommands
  /** The parked keys of its group. Fails for a binding without order per key. */
  readonly parked: Effect.Effect<ParkedKeys, NotOrderedPerKey>
  readonly state: () => ContainerState
  /** The partitions that the consumers of this binding own. */
  readonly partitions: () => ReadonlyArray<Partition>
  /** Retention has passed the position of a partition that is not fetched. */
  readonly overtaken: (partition: Partition, log: PartitionOffsets) => Effect.Effect<void>
  readonly destroy: Command
  readonly releaseMillis: StartStop.StartStop["releaseMillis"]
  /** Decides about a record that holds its partition. */
  readonly decide: Pausing.Pausing["decide"]
}

/** Makes a binding in state CREATED. Closing the scope ends its shared parts; destroy the binding first. */
export const make = Effect.fnUntraced(function* <R>(
  definition: BindingDefinition<R>,
  broker: Broker["Service"],
  hub: EventHub,
  prepareRetryTopics: RetryTopics.Prepare
): Effect.fn.Return<Container, never, R | Scope.Scope> {
  const scope = yield* Effect.scope
  const services = yield* Effect.context<R>()
  const hostname = yield* Hostname
  const clock = yield* Clock.Clock
  const copyPublisher = yield* CopyPublisher.make(definition, broker, prepareRetryTopics)
  const letters = LettersOfTopics.make(definition, broker, hostname, services)
  const breaker = yield* makeBreaker(definition)
  const runs = RunsOfTopics.make(definition, broker, hostname, () => breaker?.stateUnsafe() === "OPEN")
  const permits = breaker === undefined ? undefined : yield* makePermits(definition, breaker, clock)
  const limits = ConcurrencyLimits.make(definition, permits, clock)
  const held = HeldRecords.make(() => clock.currentTimeMillisUnsafe(), permits)
  const clusterStatus: LagPoller.ClusterStatus = { unreachable: undefined }
  const failures = OngoingFailures.ofBinding(clock)
  const statuses = new Map<number, Supervisor.ConsumerStatus>()
  const lifecycle: StartStop.Lifecycle = { phase: "CREATED", run: undefined }

  const { begin, consumers, consumersRunning, onConsumers, partitions, overtaken } = consumersOf(statuses)
  const { unitCounts, parked, ...order } = KeyOrder.make(definition, broker, hub, consumers)
  const state = () => stateOf(lifecycle, () => pausing.pausedBy())
  const health = () => HealthReport.statusOf(Effect.runSyncWith(services)(snapshot), clock.currentTimeMillisUnsafe())
  const parts = { state, breaker, consumersRunning, health, order: order.metrics }
  const metrics = yield* BindingMetrics.make(definition, parts)
  const { announce, sinceMillis } = makeAnnouncer(definition, hub, clock, state, () => pausing.pausedBy())
  const { onStrategies, unreadableLetters } = runningStrategies()
  const pausing: Pausing.Pausing = Pausing.make({
    ...{ definition, breaker, hub, held, consumers, onConsumers, state, announce, unreadableLetters },
    ...{ isStarted: () => lifecycle.phase === "STARTED", fork: Effect.runForkWith(services) }
  })

  const snapshot = Snapshots.take({
    ...{ definition, pausing, held, unreadableLetters, copyPublisher, clusterStatus, failures, parked },
    ...{ breaker, permits, statuses, state, sinceMillis }
  })
  const runOptions: Run.RunOptions<R> = {
    ...{ deadLetters: letters, services, onStrategies },
    onStatus: (index, status) => statuses.set(index, status),
    consumer: {
      ...{ definition, hostname, broker, hub, metrics, failures, copyPublisher, announce, limits, held, unitCounts },
      mayJoin: () => lifecycle.phase === "STARTED",
      bindingReasons: pausing.reasonsFor,
      onHalted: pausing.halt,
      pauseBinding: pausing.pauseByOperator
    }
  }
  const { start, stop, destroy, releaseMillis } = StartStop.make({
    ...{ lifecycle, definition, clock, scope, pausing, announce },
    start: (run) => {
      metrics.begin()
      begin(definition, clock.currentTimeMillisUnsafe())
      return Run.start(run, runOptions)
    },
    drain: (limits) => onConsumers((consumer) => consumer.drain(limits)),
    onEnded: () => {
      statuses.clear()
      clusterStatus.unreachable = undefined
      failures.clear()
      metrics.end()
    }
  })

  const { pause, resume, pauseTier, resumeTier, decide, hold } = pausing
  return {
    ...{ definition, broker, hostname, clusterStatus, failures, state, snapshot, parked: order.parkedKeys },
    ...{ deadLetters: letters.all, runs, deadLetterDepth: metrics.deadLetterDepth, partitions, overtaken },
    ...{ start, stop, destroy, releaseMillis, pause, resume, pauseTier, resumeTier, decide, hold }
  }
})

const stateOf = ({ phase }: StartStop.Lifecycle, pausedBy: Pausing.Pausing["pausedBy"]): ContainerState => {
  if (phase !== "STARTED") return phase
  return pausedBy().length > 0 ? "PAUSED" : "RUNNING"
}

/** The dead letter strategies of the last run. Once they have ended, they hold no batches. */
const runningStrategies = () => {
  let strategies: ReadonlyArray<Strategy> = []
  const unreadable: Strategy["unreadable"] = {
    list: () => strategies.flatMap((strategy) => strategy.unreadable.list()),
    skip: (at, reason) =>
      Effect.suspend(() =>
        strategies.reduce(
          (skipped, strategy) =>
            Effect.flatMap(skipped, (isDone) => (isDone ? Effect.succeed(true) : strategy.unreadable.skip(at, reason))),
          Effect.succeed(false)
        )
      )
  }
  return {
    onStrategies: (running: ReadonlyArray<Strategy>) => {
      strategies = running
    },
    unreadableLetters: () => unreadable
  }
}

/** The running consumers of a binding. */
const consumersOf = (statuses: Map<number, Supervisor.ConsumerStatus>) => {
  const consumers = () => Array.from(statuses.values()).flatMap((status) => status.consumer ?? [])
  return {
    consumers,
    consumersRunning: () => consumers().length,
    /** From the first moment of a run on, health knows the consumers that are still to come. */
    begin: (definition: BindingDefinition<unknown>, nowMillis: number) => {
      for (const index of subscriptions(definition).keys()) statuses.set(index, Supervisor.connecting(nowMillis))
    },
    onConsumers: (each: (consumer: Consumer) => Effect.Effect<void>) =>
      Effect.suspend(() => Effect.forEach(consumers(), each, { concurrency: "unbounded", discard: true })),
    partitions: () => consumers().flatMap((consumer) => consumer.partitions()),
    overtaken: (partition: Partition, log: PartitionOffsets) =>
      Effect.suspend(() => {
        const owner = consumers().find((consumer) => consumer.partitions().includes(partition))
        return owner === undefined ? Effect.void : owner.overtaken(partition, log)
      })
  }
}

const makeBreaker = <R>({ circuitBreaker }: BindingDefinition<R>) =>
  circuitBreaker === undefined
    ? Effect.succeed(undefined)
    : // Validation has refused invalid settings before.
      Effect.orDie(CircuitBreaker.make(circuitBreaker))

/** The permits of a binding's breaker. The candidates of a half-open breaker are there when each partition could be fetched once. */
const makePermits = Effect.fnUntraced(function* (
  { circuitBreaker, retry, fetchMaxWaitMillis }: BindingDefinition<unknown>,
  breaker: CircuitBreaker.CircuitBreaker,
  clock: Clock.Clock
) {
  const fork = yield* FiberSet.makeRuntime()
  const giveUpAfter = circuitBreaker?.giveUpAfter
  return BreakerPermits.make(breaker, {
    maxAttempts: retry.blocking.maxAttempts,
    giveUpAfterMillis: giveUpAfter === undefined ? Number.POSITIVE_INFINITY : toMillis(giveUpAfter),
    onGathered: (gathered) => fork(Effect.delay(Effect.sync(gathered), fetchMaxWaitMillis + 100)),
    nowMillis: () => clock.currentTimeMillisUnsafe()
  })
})

/** Emits `StateChanged` when the state that the binding shows has changed since the last call. */
const makeAnnouncer = (
  definition: BindingDefinition<unknown>,
  hub: EventHub,
  clock: Clock.Clock,
  state: () => ContainerState,
  pausedBy: Pausing.Pausing["pausedBy"]
) => {
  let shown: ContainerState = "CREATED"
  let sinceMillis = clock.currentTimeMillisUnsafe()
  const announce = Effect.sync(() => {
    const to = state()
    if (to === shown) return
    hub.emit({ _tag: "StateChanged", ...BindingKey.onEvent(definition), from: shown, to, reasons: pausedBy() })
    shown = to
    sinceMillis = clock.currentTimeMillisUnsafe()
  })
  return { announce, sinceMillis: () => sinceMillis }
}
