/**
 * One consumer of a binding: a member of the Kafka group, and the loop that passes the reports of its session to the assignments.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { Broker, ConsumerSession } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord } from "../../ConsumerRecord.ts"
import { Interceptors } from "../../Interceptor.ts"
import type { PauseReason } from "../../Snapshot.ts"
import * as TopicName from "../../TopicName.ts"
import * as Clocks from "../base/clocks.ts"
import * as DerivedNames from "../base/derivedNames.ts"
import { keepRunning } from "../base/keepRunning.ts"
import type { ConsumerContext } from "../delivery/consumerContext.ts"
import * as ForeignRecords from "../delivery/foreignRecords.ts"
import * as HandlerTimeouts from "../delivery/handlerTimeouts.ts"
import type { BindingMetrics } from "../observe/bindingMetrics.ts"
import type { EventHub } from "../observe/eventHub.ts"
import type { BindingFailures } from "../observe/ongoingFailures.ts"
import type { UnitCounts } from "../observe/orderMetrics.ts"
import * as Tracing from "../observe/tracing.ts"
import * as Committer from "../partition/committer.ts"
import type { HeldRecords } from "../partition/heldRecords.ts"
import type { Partition } from "../partition/partition.ts"
import type { PauseReasons } from "../partition/pauseReasons.ts"
import type { CopyPublisher } from "../publish/copyPublisher.ts"
import * as RetryState from "../record/retryState.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as Sources from "../settings/sources.ts"
import type { BindingLimits } from "../slots/concurrencyLimits.ts"
import * as Assignments from "./assignments.ts"
import { inspectTopics } from "./topicInspection.ts"
import * as Units from "./units.ts"

export interface ConsumerOptions<R> {
  readonly definition: BindingDefinition<R>
  readonly index: number
  readonly hostname: string
  readonly broker: Broker["Service"]
  readonly hub: EventHub
  readonly metrics: BindingMetrics
  readonly failures: BindingFailures
  readonly copyPublisher: CopyPublisher
  /** Called with each stored dead letter; undefined when no strategy wants them. */
  readonly onDeadLetter: ((stored: ConsumerRecord) => void) | undefined
  /** The topics that this consumer reads, and the group that it joins. */
  readonly subscription: Subscription
  /** Whether the binding is started: one that stops joins no group anew. */
  readonly mayJoin: () => boolean
  /** The reasons that currently pause the whole binding. */
  readonly bindingReasons: (partition: Partition) => PauseReasons
  /** A record halted its partition. The halt survives rebalances. */
  readonly onHalted: (partition: Partition) => Effect.Effect<void>
  /** Publishes the state of the binding if it has changed. */
  readonly announce: Effect.Effect<void>
  /** Pauses the whole binding with reason `operator`. */
  readonly pauseBinding: Effect.Effect<void>
  /** The records that hold their partitions. */
  readonly held: HeldRecords
  readonly unitCounts: UnitCounts
  readonly limits: BindingLimits
}

export interface Subscription {
  readonly groupId: string
  readonly topics: ReadonlyArray<string>
}

/**
 * The subscriptions of a binding, one per consumer. They read its topics and their retry topics together, or a separate consumer reads the retry topics
 * (`consumer: "separate"`).
 */
export const subscriptions = (definition: BindingDefinition<unknown>): ReadonlyArray<Subscription> => {
  const { groupId, retry, concurrency } = definition
  const topics = Sources.topicsOf(definition)
  const retryTopics = Sources.retryTopicsOf(definition)
  const isSeparate = retry.consumer === "separate" && retryTopics.length > 0
  const main = { groupId, topics: isSeparate ? topics : [...topics, ...retryTopics] }
  const all = Array.from({ length: concurrency }, () => main)
  return isSeparate ? [...all, { groupId: TopicName.retryGroup(groupId), topics: retryTopics }] : all
}

export interface Consumer {
  /** Undefined for a binding that cannot keep the order of each key through retry topics. */
  readonly units: Units.Units | undefined
  readonly partitions: () => ReadonlyArray<Partition>
  /** Adds a pause reason to the partitions of this consumer; without `which`, to all of them. */
  readonly pause: (reason: PauseReason, which?: (partition: Partition) => boolean) => Effect.Effect<void>
  /** Removes a pause reason. A partition resumes once it has no reason left. */
  readonly resume: (reason: PauseReason, which?: (partition: Partition) => boolean) => Effect.Effect<void>
  readonly overtaken: Assignments.Assignments["overtaken"]
  readonly skipUnreadable: Assignments.Assignments["skipUnreadable"]
  /** Commits the finished records of all partitions. */
  readonly flush: Effect.Effect<void>
  /** Stops, drains, commits and ends every partition within the limits. The session stays open. */
  readonly drain: Assignments.Assignments["drain"]
  /** Returns once the consumer has become a member of its group. */
  readonly joined: Effect.Effect<void>
  /** The event loop. It ends only by failing. */
  readonly run: Effect.Effect<never, BrokerError>
}

export const make = Effect.fnUntraced(function* <R>(
  options: ConsumerOptions<R>
): Effect.fn.Return<Consumer, BrokerError, R | Scope.Scope> {
  // Before the session starts: a retry topic that appears later would cause a rebalance of its own.
  yield* options.copyPublisher.prepare
  const session = yield* openSession(options)
  const broken = Deferred.makeUnsafe<never>()
  const context = yield* makeContext(options, session, (defect) => Deferred.die(broken, defect))
  const joined = Latch.makeUnsafe(false)
  const guarded = Latch.makeUnsafe(false)
  const units = yield* Units.ofConsumer({ context, session, broker: options.broker, counts: options.unitCounts })
  const assignments = yield* Assignments.make({
    context,
    onGuarded: () => guarded.openUnsafe(),
    contextOf: topicContexts(options, context),
    session,
    broker: options.broker,
    units,
    foreignRecords: yield* ForeignRecords.make(context),
    bindingReasons: options.bindingReasons,
    announce: options.announce
  })
  yield* Effect.forkScoped(
    keepRunning("handler timeouts", HandlerTimeouts.run(context, assignments.partitions, guarded))
  )
  yield* Effect.forkScoped(keepRunning("event loop monitor", monitorEventLoop(context)))
  yield* Effect.andThen(reportSession(options), Effect.forkScoped(inspectTopics(options)))

  const onEach = (change: (partition: Partition) => void, which: (partition: Partition) => boolean = () => true) =>
    Effect.suspend(() => {
      const all = assignments.partitions().filter(which)
      for (const partition of all) change(partition)
      return Effect.forEach(all, (partition) => partition.syncFetch, { discard: true })
    })

  return {
    units,
    partitions: assignments.partitions,
    pause: (reason, which) => onEach((partition) => partition.addReason(reason), which),
    resume: (reason, which) => onEach((partition) => partition.removeReason(reason), which),
    overtaken: assignments.overtaken,
    skipUnreadable: assignments.skipUnreadable,
    flush: Effect.suspend(() =>
      Effect.forEach(assignments.partitions(), (partition) => context.committer.commit(partition), {
        concurrency: "unbounded",
        discard: true
      })
    ),
    drain: assignments.drain,
    joined: joined.await,
    run: Effect.forever(
      Effect.flatMap(Queue.takeAll(session.events), (events) =>
        Effect.map(Effect.forEach(events, assignments.react, { discard: true }), () => {
          if (events.some(({ _tag }) => _tag === "Assigned")) joined.openUnsafe()
        })
      )
    ).pipe(Effect.raceFirst(Deferred.await(broken)))
  }
})

const reportSession = (options: ConsumerOptions<unknown>): Effect.Effect<void, never, Scope.Scope> => {
  const of = { ...BindingKey.onEvent(options.definition), consumer: options.index }
  return Effect.acquireRelease(
    Effect.sync(() => options.hub.emit({ _tag: "SessionStarted", ...of })),
    () => Effect.sync(() => options.hub.emit({ _tag: "SessionClosed", ...of }))
  )
}

/** Waiting records are held in memory, so a fetch of a retry topic's partition is small. */
const waitingBytes = 256 * 1024

const openSession = <R>(options: ConsumerOptions<R>) => {
  const { definition } = options
  return options.broker.consumer({
    ...{ ...options.subscription, groupProtocol: definition.groupProtocol, mayJoin: options.mayJoin },
    sessionTimeout: definition.sessionTimeoutMillis,
    heartbeatInterval: definition.heartbeatIntervalMillis,
    rebalanceTimeout: definition.rebalanceTimeoutMillis,
    fetchMaxWait: definition.fetchMaxWaitMillis,
    maxPartitionFetchBytes: definition.maxPartitionFetchBytes,
    maxRecordBytes: definition.maxBufferedBytes,
    maxBytesByTopic: new Map(Sources.retryTopicsOf(definition).map((topic) => [topic, waitingBytes])),
    ...{ isolationLevel: definition.isolationLevel, ...Units.announced(definition) },
    // No other client is in the group of the retry topics.
    ...(options.subscription.groupId === definition.groupId && {
      partitionAssignmentStrategy: definition.partitionAssignmentStrategy
    }),
    ...(definition.staticMembership
      ? {
          groupInstanceId: DerivedNames.groupInstanceId(definition.name, options.hostname, options.index),
          replacesGroupInstanceIds: [
            DerivedNames.formerGroupInstanceId(definition.name, options.hostname, options.index)
          ]
        }
      : {})
  })
}

const makeContext = Effect.fnUntraced(function* <R>(
  options: ConsumerOptions<R>,
  session: ConsumerSession,
  onDefect: ConsumerContext<R>["onDefect"]
) {
  const { definition, hub, index, failures } = options
  const clock = yield* Clock.Clock
  const about = `consumer ${index}`
  yield* Effect.addFinalizer(() => Effect.sync(() => failures.commits.worked(about)))
  const committer = yield* Committer.make(session, {
    commitIntervalMillis: definition.commitIntervalMillis,
    onDefect,
    onCommitted: (partition) => {
      failures.commits.worked(about)
      if (!hub.active) return
      const { topic, partition: number, generation, committed } = partition
      const at = { ...BindingKey.onEvent(definition), consumer: index, topic, partition: number, generation }
      hub.emit({ _tag: "Committed", ...at, offset: committed })
    },
    onFailed: (error, attempt) => {
      if (error._tag !== "StaleAssignment") failures.commits.failed(about, error)
      hub.emit({ _tag: "CommitFailed", ...BindingKey.onEvent(definition), consumer: index, error, attempt })
    }
  })
  return {
    definition,
    receiver: {
      bindingName: definition.name,
      cluster: definition.cluster,
      consumerInstance: `${options.hostname}-${index}`,
      enrich: definition.enrich,
      retryPosition: RetryState.ofMainTopic
    },
    consumer: index,
    hub,
    metrics: options.metrics,
    failures,
    tracing: yield* Tracing.make,
    interceptors: [...(yield* Interceptors), ...definition.interceptors],
    clock,
    setBackMillis: Clocks.setBack(clock),
    committer,
    copyPublisher: options.copyPublisher,
    onDeadLetter: options.onDeadLetter,
    replayReader: { clusterId: session.clusterId, groupId: definition.groupId, adopts: definition.adopts },
    groupId: options.subscription.groupId,
    onHalted: options.onHalted,
    held: options.held,
    pauseBinding: options.pauseBinding,
    onDefect,
    limits: options.limits.main
  } satisfies ConsumerContext<R>
})

/** The context of each topic and retry topic, made when its first partition is assigned. */
const topicContexts = <R>(options: ConsumerOptions<R>, main: ConsumerContext<R>) => {
  const made = new Map<string, ConsumerContext<R>>()
  const make = (topic: string): ConsumerContext<R> => {
    const definition = Sources.ofTopic(main.definition, topic)
    const tier = definition.tiers.ofTopic(topic)
    if (tier === undefined) return definition === main.definition ? main : { ...main, definition }
    const retryPosition = (record: ConsumerRecord) => RetryState.positionOf(record, tier, definition)
    return {
      ...{ ...main, definition },
      ...{ limits: options.limits.ofTier(tier), receiver: { ...main.receiver, retryPosition } }
    }
  }
  return (topic: string): ConsumerContext<R> => {
    const context = made.get(topic) ?? make(topic)
    made.set(topic, context)
    return context
  }
}

/** Reports a blocked event loop. A timer that is late by half a session timeout means late heartbeats, which explains a lost partition. */
const monitorEventLoop = ({ definition, hub, consumer, clock }: ConsumerContext<unknown>) => {
  const { heartbeatIntervalMillis, sessionTimeoutMillis } = definition
  return Effect.forever(
    Effect.suspend(() => {
      const elapsedMillis = Clocks.stopwatch(clock)
      return Effect.map(Effect.sleep(heartbeatIntervalMillis), () => {
        const blockedMillis = elapsedMillis() - heartbeatIntervalMillis
        if (blockedMillis < sessionTimeoutMillis / 2) return
        hub.emit({
          _tag: "EventLoopBlocked",
          ...BindingKey.onEvent(definition),
          consumer,
          blockedMillis,
          sessionTimeoutMillis
        })
      })
    })
  )
}
