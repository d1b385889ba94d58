/**
 * A registered binding: its state, its consumers, and the commands that move it (connector seed §4.3 and §4.11).
 *
 * Every transition is decided and written in one synchronous step; what takes time (draining, joining) happens afterwards. So the commands of a
 * binding are serialised without a lock, and none is held while a handler runs.
 */
import { Clock, Deferred, Effect, Exit, Fiber, Scope } from "effect"
import type { Broker } from "../../Broker.ts"
import * as CircuitBreaker from "../../CircuitBreaker.ts"
import type { ContainerState, InvalidContainerState } from "../../EventBusError.ts"
import { Hostname } from "../../Hostname.ts"
import type { DeadLetters } from "../../Replay.ts"
import type { BindingSnapshot } from "../../Snapshot.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import * as DeadLetterCommands from "../deadLetters/commands.ts"
import * as DeadLetterStrategy from "../deadLetters/strategy.ts"
import type { OnEvent } from "../deadLetters/strategyEvents.ts"
import { type Consumer, subscriptions } from "../group/consumer.ts"
import { CurrentHandler } from "../group/currentHandler.ts"
import * as Supervisor from "../group/supervisor.ts"
import * as BindingMetrics from "../observe/bindingMetrics.ts"
import type { DeadLetterDepth } from "../observe/deadLetterDepth.ts"
import type { EventHub } from "../observe/eventHub.ts"
import type { Partition } from "../partition/partition.ts"
import * as CopyPublisher from "../publish/copyPublisher.ts"
import type * as RetryTopics from "../publish/retryTopics.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"
import * as BreakerGate from "../slots/breakerGate.ts"
import * as ConcurrencyLimits from "../slots/concurrencyLimits.ts"
import type * as LagPoller from "./lagPoller.ts"
import * as Pausing from "./pausing.ts"
import * as Snapshots from "./snapshots.ts"

/** The interruptibility of whoever gave the command: a finalizer of an interrupted program waits for the drain, a caller need not. */
type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

type Command = Effect.Effect<void, InvalidContainerState>

export interface Container {
  readonly definition: BindingDefinition<unknown>
  readonly broker: Broker["Service"]
  readonly hostname: string
  readonly deadLetterDepth: DeadLetterDepth
  readonly clusterStatus: LagPoller.ClusterStatus
  readonly deadLetters: DeadLetters
  readonly state: () => ContainerState
  /** The partitions that its consumers own. */
  readonly partitions: () => ReadonlyArray<Partition>
  /** How it is now. Asks no broker. */
  readonly snapshot: Effect.Effect<BindingSnapshot>
  readonly start: Command
  readonly stop: Command
  readonly pause: Command
  readonly resume: Command
  /** The same for one tier; the rest of the binding goes on. */
  readonly pauseTier: (tier: number) => Command
  readonly resumeTier: (tier: number) => Command
  readonly destroy: Command
}

/** One start of a binding, until its stop has ended. */
interface Run {
  readonly scope: Scope.Closeable
  readonly ended: Deferred.Deferred<void>
}

/** How long closing sessions may take after the drain: the group is left, sockets are closed. */
const closeBoundMillis = 10_000

/** Runs the binding's strategy for dead letters; answers what is to be told of each, if it wants to know. */
const onDeadLetters = <R>(
  definition: BindingDefinition<R>,
  broker: Broker["Service"],
  replays: DeadLetterCommands.DeadLetterCommands,
  hub: EventHub
) => {
  const { deadLetter, deadLetterTopic, groupId } = definition
  if (deadLetter._tag === "StoreOnly") return Effect.succeed(undefined)
  const onEvent: OnEvent = (event) => hub.emit({ ...BindingKey.onEvent(definition), ...event })
  return Effect.map(
    DeadLetterStrategy.run({ deadLetter, broker, groupId, deadLetterTopic, replays, onEvent }),
    ({ onStored }) => (deadLetter._tag === "AlertAndStore" ? onStored : undefined)
  )
}

/** Leaves the group and closes the sessions. Not in the binding's scope, which may be closing already. */
const close = Effect.fnUntraced(function* (ending: Run) {
  const closing = yield* Effect.forkDetach(Scope.close(ending.scope, Exit.void), { startImmediately: true })
  yield* awaitAtMost(Fiber.await(closing), closeBoundMillis)
})

/** A command that comes from inside a handler of its own binding must not wait for that handler. */
const fromInside = <E>(key: string, inside: Effect.Effect<void>, outside: Effect.Effect<void, E>) =>
  Effect.flatMap(CurrentHandler, (current): Effect.Effect<void, E> => (current === key ? inside : outside))

export const make = Effect.fnUntraced(function* <R>(
  definition: BindingDefinition<R>,
  broker: Broker["Service"],
  hub: EventHub,
  prepareRetryTopics: RetryTopics.Prepare
): Effect.fn.Return<Container, never, R | Scope.Scope> {
  const key = BindingKey.of(definition)
  const scope = yield* Effect.scope
  const context = yield* Effect.context<R>()
  const hostname = yield* Hostname
  const clock = yield* Clock.Clock
  const copyPublisher = yield* CopyPublisher.make(definition, broker, prepareRetryTopics)
  const deadLetters = DeadLetterCommands.make(definition, broker)
  const breaker =
    definition.circuitBreaker === undefined
      ? undefined
      : yield* Effect.orDie(CircuitBreaker.make(definition.circuitBreaker))
  const gate = breaker === undefined ? undefined : BreakerGate.make(breaker, clock)
  const { slots, slotsOf } = ConcurrencyLimits.make(definition, gate, clock)
  const clusterStatus: LagPoller.ClusterStatus = { unreachable: undefined, unreadable: undefined }
  const statuses = new Map<number, Supervisor.ConsumerStatus>()
  let lifecycle: "CREATED" | "STARTED" | "STOPPED" | "DESTROYED" = "CREATED"
  let run: Run | undefined
  let shown: ContainerState = "CREATED"
  let shownSinceMillis = clock.currentTimeMillisUnsafe()

  const live = () => Array.from(statuses.values()).flatMap((status) => status.consumer ?? [])
  const onLive = (each: (consumer: Consumer) => Effect.Effect<void>) =>
    Effect.suspend(() => Effect.forEach(live(), each, { concurrency: "unbounded", discard: true }))

  const state = (): ContainerState => {
    if (lifecycle !== "STARTED") return lifecycle
    return pausing.pausedBy().length > 0 ? "PAUSED" : "RUNNING"
  }

  const metrics = yield* BindingMetrics.make(definition, { state, breaker, consumersRunning: () => live().length })

  const announce = Effect.sync(() => {
    const to = state()
    if (to === shown) return
    hub.emit({ _tag: "StateChanged", ...BindingKey.onEvent(definition), from: shown, to, reasons: pausing.pausedBy() })
    shown = to
    shownSinceMillis = clock.currentTimeMillisUnsafe()
  })

  const pausing: Pausing.Pausing = Pausing.make({
    ...{ definition, breaker, hub, live, state, announce },
    isStarted: () => lifecycle === "STARTED",
    fork: Effect.runForkWith(context)
  })

  const { refuse } = pausing

  const begin = Effect.gen(function* () {
    const current: Run = { scope: yield* Scope.make(), ended: Deferred.makeUnsafe() }
    run = current
    metrics.begin()
    const onDeadLetter = yield* onDeadLetters(definition, broker, deadLetters, hub).pipe(
      Scope.provide(current.scope),
      Effect.provideContext(context)
    )
    for (const [index, subscription] of subscriptions(definition).entries()) {
      const consumer = Supervisor.supervise(
        {
          definition,
          index,
          hostname,
          broker,
          hub,
          metrics,
          copyPublisher,
          onDeadLetter,
          breaker: gate,
          subscription,
          bindingReasons: pausing.reasonsFor,
          onHalted: pausing.halt,
          announce,
          pauseBinding: pausing.pauseByOperator,
          slots,
          slotsOf
        },
        (status) => statuses.set(index, status)
      )
      yield* Effect.forkIn(Effect.provideContext(consumer, context), current.scope)
    }
  })

  /** Drain, final commit, then leave the group and close. From inside a handler of this binding it goes on behind the caller's back. */
  const finish = (ending: Run, restore: Restore) => {
    pausing.end()
    const drained = onLive((consumer) => consumer.drain(definition.shutdownTimeoutMillis))
    return Effect.andThen(drained, close(ending)).pipe(
      Effect.andThen(
        Effect.sync(() => {
          statuses.clear()
          metrics.end()
          run = undefined
          Deferred.doneUnsafe(ending.ended, Effect.void)
        })
      ),
      Effect.uninterruptible,
      // Started at once: closing the binding's scope waits for what has begun, and drops what has not.
      Effect.forkIn(scope, { startImmediately: true }),
      Effect.andThen(ended(ending, restore))
    )
  }

  const ended = (ending: Run, restore: Restore) => fromInside(key, Effect.void, restore(Deferred.await(ending.ended)))

  /** Goes on when the run has ended; from inside a handler of this binding, behind the caller's back. */
  const afterwards = (ending: Run, next: Command): Command => {
    const rest = Effect.andThen(Deferred.await(ending.ended), next)
    return fromInside(key, Effect.asVoid(Effect.forkIn(Effect.ignore(rest), scope)), rest)
  }

  const start: Command = Effect.suspend(() => {
    if (lifecycle !== "CREATED" && lifecycle !== "STOPPED") return refuse("start", ["CREATED", "STOPPED"])
    if (run !== undefined) return afterwards(run, start)
    lifecycle = "STARTED"
    pausing.begin()
    return Effect.uninterruptible(Effect.andThen(begin, announce))
  })

  const stop: Command = Effect.suspend(() => {
    if (lifecycle !== "STARTED" || run === undefined) return refuse("stop", ["RUNNING", "PAUSED"])
    lifecycle = "STOPPED"
    const ending = run
    return Effect.uninterruptibleMask((restore) => Effect.andThen(announce, finish(ending, restore)))
  })

  const destroy: Command = Effect.suspend(() => {
    if (lifecycle === "DESTROYED") return refuse("destroy", ["CREATED", "RUNNING", "PAUSED", "STOPPED"])
    const started = lifecycle === "STARTED"
    lifecycle = "DESTROYED"
    const ending = run
    return Effect.uninterruptibleMask((restore) =>
      Effect.andThen(
        announce,
        ending === undefined ? Effect.void : started ? finish(ending, restore) : ended(ending, restore)
      )
    )
  })

  return {
    ...{ definition, broker, hostname, clusterStatus, state, deadLetters, deadLetterDepth: metrics.deadLetterDepth },
    partitions: () => live().flatMap((consumer) => consumer.partitions()),
    snapshot: Snapshots.take({
      ...{ definition, pausing, copyPublisher, clusterStatus, breaker, statuses, state },
      sinceMillis: () => shownSinceMillis
    }),
    start,
    stop,
    pause: pausing.pause,
    resume: pausing.resume,
    pauseTier: pausing.pauseTier,
    resumeTier: pausing.resumeTier,
    destroy
  }
})
