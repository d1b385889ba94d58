/**
 * The connector: the bindings of one program, and the commands that move them. `Binding.layer` makes and shares one.
 */
import "./internal/base/nodeVersion.ts"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Broker } from "./Broker.ts"
import type { RecordPosition } from "./ConsumerRecord.ts"
import type {
  AmbiguousBinding,
  BindingAlreadyExists,
  BindingNotFound,
  ConfigurationValidation,
  ConnectorClosed,
  ContainerState,
  InvalidContainerState,
  RecordNotHeld
} from "./EventBusError.ts"
import type { EventBusEvent } from "./EventBusEvent.ts"
import type { Health } from "./Health.ts"
import { keepRunning } from "./internal/base/keepRunning.ts"
import * as LogLine from "./internal/base/logLine.ts"
import * as Failures from "./internal/failure/failure.ts"
import { failureText } from "./internal/failure/failureText.ts"
import { Membership } from "./internal/fleet/membership.ts"
import type * as Container from "./internal/lifecycle/container.ts"
import * as EventLog from "./internal/lifecycle/eventLog.ts"
import * as HealthReport from "./internal/lifecycle/health.ts"
import * as HealthLog from "./internal/lifecycle/healthLog.ts"
import * as LagPoller from "./internal/lifecycle/lagPoller.ts"
import * as Registrations from "./internal/lifecycle/registrations.ts"
import * as Registry from "./internal/lifecycle/registry.ts"
import * as DeadLetterDepth from "./internal/observe/deadLetterDepth.ts"
import * as EventHub from "./internal/observe/eventHub.ts"
import * as EventStreams from "./internal/observe/eventStreams.ts"
import * as RetryTopics from "./internal/publish/retryTopics.ts"
import * as Arguments from "./internal/replay/arguments.ts"
import * as Requests from "./internal/requests/requestJournal.ts"
import * as BindingAnnotations from "./internal/settings/bindingAnnotations.ts"
import type { Described } from "./internal/settings/bindingDefinition.ts"
import * as BindingKey from "./internal/settings/bindingKey.ts"
import type { NotOrderedPerKey, ParkedKeys } from "./ParkedKeys.ts"
import * as Ranges from "./Ranges.ts"
import type { DeadLetters, InvalidArgument, UnknownTier } from "./Replay.ts"
import type { Runs } from "./ReplayRun.ts"
import type { RequestJournal } from "./RequestJournal.ts"
import { type BindingSnapshot, type Decision, LagPollInterval } from "./Snapshot.ts"

/** An event that says what a binding shows now, and why. */
export type StateChanged = Extract<EventBusEvent, { readonly _tag: "StateChanged" }>

/** No binding has the name, or bindings of several clusters do. Then their keys, `{cluster}:{binding}`, name them. */
export type BindingLookupError = BindingNotFound | AmbiguousBinding

/**
 * Commands take a binding's name, or `{cluster}:{binding}`. They fail with `BindingNotFound`, with `AmbiguousBinding` when bindings of several clusters
 * have the name, and with `InvalidContainerState` when the binding's state does not allow them.
 */
export type Command = (name: string) => Effect.Effect<void, BindingLookupError | InvalidContainerState>

/**
 * A command for the whole binding, or for one of its retry tiers (from 1). Fails with `UnknownTier` for a tier that the binding does not have, and with `InvalidArgument` for
 * options or a tier of a wrong kind.
 */
export type TierCommand = (
  name: string,
  options?: TierOptions
) => Effect.Effect<void, BindingLookupError | InvalidContainerState | InvalidArgument | UnknownTier>

/** Options of a command for a binding or one of its tiers. */
export interface TierOptions {
  /** The number of a retry tier, from 1. Default: the whole binding. */
  readonly tier?: number
}

/**
 * A decision about a record that holds its partition, or about the only candidate of a half-open circuit breaker, and why. A partition that an operator has paused stays
 * paused. Fails with `InvalidArgument` without a reason, and with `RecordNotHeld` when this process holds no such record: another member of the group may. A trial
 * call of the record that runs is waited for, 5 seconds at most.
 */
export type DecisionCommand = (
  name: string,
  record: RecordPosition,
  reason: string
) => Effect.Effect<void, BindingLookupError | RecordNotHeld | InvalidArgument>

/** The bindings of one program, by name, and their commands. */
export class EventBusConnector extends Context.Service<
  EventBusConnector,
  {
    /** Checks the binding's settings, adds it, and starts it unless `autoStartup` is false. Joining the group goes on in the background. */
    readonly register: <R>(
      binding: Described<R>
    ) => Effect.Effect<void, BindingAlreadyExists | ConfigurationValidation | ConnectorClosed, R | Broker>
    /** Removes a binding that is CREATED or STOPPED, and answers what it was; its name is free afterwards. */
    readonly unregister: (name: string) => Effect.Effect<BindingSnapshot, BindingLookupError | InvalidContainerState>
    /** CREATED or STOPPED to RUNNING. */
    readonly start: Command
    /** RUNNING or PAUSED to STOPPED: waits for running handlers and pending copies, commits, leaves the group, within `shutdownTimeout`. Inside a handler of the binding it returns at once. */
    readonly stop: Command
    /** Holds the binding for reason `operator`: it stays in the group, fetches and handles nothing. With `tier`, only that retry tier. */
    readonly pause: TierCommand
    /** Lifts reason `operator`, and no other: a hold of the fleet stays, and the error of a binding that only the fleet holds says who can release it. A halted partition tries its record again. A tier that was paused by itself is resumed by itself. */
    readonly resume: TierCommand
    /**
     * Drops a record that holds its partition (`BindingSnapshot.held`), or that is the only one for the breaker to try (`trials.only`). Or passes the batch that cannot be
     * read at this position (`PartitionSnapshot.unreadable`), all of it: event `BatchSkipped` names its offsets. The reason stands in the log, and the partition goes on. So
     * does the partition of a dead letter topic whose custom handler is held by such a batch (event `UnreadableLettersSkipped`).
     */
    readonly skip: DecisionCommand
    /** Sends such a record to the dead letter topic, with dlt reason `MANUAL` and the given reason. The partition goes on. */
    readonly deadLetter: DecisionCommand
    /** Stops the binding, from any state, and removes it. */
    readonly destroy: Command
    /** The state of a binding. */
    readonly getState: (name: string) => Effect.Effect<ContainerState, BindingLookupError>
    /** Every binding as it is now, its partitions with their lag included. Asks no broker. */
    readonly listBindings: Effect.Effect<ReadonlyArray<BindingSnapshot>>
    /** One binding as it is now. */
    readonly snapshot: (name: string) => Effect.Effect<BindingSnapshot, BindingLookupError>
    /** The commands of operators on a binding's dead letters: replays, statistics, purge. `DeadLetters.ofTopic` has those of one of several topics. */
    readonly deadLetters: (name: string) => Effect.Effect<DeadLetters, BindingLookupError>
    /** The parked keys of a binding's group, and the decisions about those that are held. Fails with `NotOrderedPerKey` for a binding that cannot have any. */
    readonly parked: (name: string) => Effect.Effect<ParkedKeys, BindingLookupError | NotOrderedPerKey>
    /** Plans over a binding's dead letters, and their runs: preview, apply, receipt. `Runs.ofTopic` has those of one of several topics. */
    readonly runs: (name: string) => Effect.Effect<Runs, BindingLookupError>
    /** Requests whose work is done once in the group of a binding. */
    readonly requests: (name: string) => Effect.Effect<RequestJournal, BindingLookupError>
    /** The bindings that read a topic, on whatever cluster, in their main container or in a retry tier. */
    readonly getByTopic: (topic: string) => Effect.Effect<ReadonlyArray<BindingSnapshot>>
    /** How all bindings are, and why not better. Costs no I/O. */
    readonly health: Effect.Effect<Health>
    /** Changes of what bindings show, from now on. */
    readonly changes: Stream.Stream<StateChanged>
    /** Everything that happens from now on. A reader that falls more than 16 384 events behind misses the oldest. */
    readonly events: Stream.Stream<EventBusEvent>
    /** Calls `listener` synchronously with everything that happens, until the scope closes. It must be quick. */
    readonly subscribe: (listener: (event: EventBusEvent) => void) => Effect.Effect<void, never, Scope.Scope>
  }
>()("@eventbus/core/EventBusConnector") {}

const tierCommandBy =
  ({ find }: Pick<Registry.Registry, "find">) =>
  (operation: "pause" | "resume"): TierCommand =>
    Effect.fnUntraced(function* (name, options = {}) {
      const { tier } = yield* Arguments.options(operation, "options", options, ["tier"])
      const { container } = yield* find(name)
      const ofTier = operation === "pause" ? container.pauseTier : container.resumeTier
      yield* tier === undefined ? container[operation] : ofTier(tier)
    })

const decisionBy =
  ({ find }: Pick<Registry.Registry, "find">) =>
  (kind: Decision["kind"]): DecisionCommand =>
  (name, record, reason) =>
    Arguments.reason(kind === "skip" ? "skip" : "deadLetter", reason).pipe(
      Effect.andThen(find(name)),
      Effect.flatMap(({ container }) => container.decide(record, { kind, reason }))
    )

type OnClusters = Pick<EventBusConnector["Service"], "deadLetters" | "parked" | "runs" | "requests">

/** The operations on what lies in Kafka, in whatever state a binding is. */
const onClustersBy = ({ find }: Pick<Registry.Registry, "find">): OnClusters => ({
  deadLetters: (name) => Effect.map(find(name), ({ container }) => container.deadLetters),
  parked: (name) => Effect.flatMap(find(name), ({ container }) => container.parked),
  runs: (name) => Effect.map(find(name), ({ container }) => container.runs),
  requests: (name) =>
    Effect.map(find(name), ({ container: { definition, broker, hostname } }) => {
      const { groupId, deadLetterTopic } = definition
      return Requests.make({ broker, groupId, deadLetterTopic, hostname })
    })
})

const make = Effect.gen(function* () {
  const fork = Effect.runForkWith(yield* Effect.context())
  const hub = EventHub.make(({ _tag, cluster, binding }, error) => {
    const why = failureText(Failures.fromUnknown(error))
    const line = LogLine.error(`A listener threw at event ${_tag}: ${why}`)
    fork(Effect.annotateLogs(line, BindingAnnotations.ofKey({ cluster, name: binding })))
  })
  const registry = Registry.make()
  const background = yield* Scope.make()
  const containers = () => registry.list().map(({ container }) => container)
  const join = yield* Membership
  // It leaves the fleet behind the last binding, since finalizers run in the opposite order.
  const fleet = join === undefined ? undefined : yield* join(containers)
  const registrations = Registrations.make(registry, hub, RetryTopics.perCluster(background), fleet?.holdsOf)
  const containerOf = ({ cluster, binding }: Pick<EventBusEvent, "cluster" | "binding">) =>
    registry.get(BindingKey.of({ cluster, name: binding }))?.container
  yield* EventLog.attach(hub, containerOf)

  const command =
    (pick: (container: Container.Container) => Effect.Effect<void, InvalidContainerState>): Command =>
    (name) =>
      Effect.flatMap(registry.find(name), ({ container }) => pick(container))

  // Phase 1 of the shutdown: no new registrations. Phases 2 to 5 are each container's own. A broker that does not answer holds up the end of a background loop, and must
  // not hold the bindings up with it (ruling 83).
  yield* Effect.addFinalizer(() =>
    Effect.all([registrations.close, Scope.close(background, Exit.void)], { concurrency: 2, discard: true })
  )
  const runInBackground = (name: string, loop: Effect.Effect<never>) =>
    Effect.forkIn(keepRunning(name, loop), background)

  const listBindings = Effect.suspend(() => Effect.forEach(containers(), ({ snapshot }) => snapshot))

  const lagPollInterval = yield* LagPollInterval
  Ranges.check("Snapshot", { lagPollInterval }, Ranges.connector)
  yield* runInBackground("lag poller", LagPoller.run(containers, Ranges.millisOf(lagPollInterval)))
  yield* runInBackground("dead letter depth", DeadLetterDepth.run(containers))
  const health = Effect.gen(function* () {
    const now = {
      nowMillis: yield* Clock.currentTimeMillis,
      isClosing: registrations.isClosed(),
      hasBindings: registrations.hasRegistered()
    }
    return HealthReport.fromSnapshots(yield* listBindings, now)
  })
  const groupOf = (of: Parameters<typeof containerOf>[0]) => containerOf(of)?.definition.groupId
  yield* runInBackground("health log", HealthLog.run(health, groupOf))

  return EventBusConnector.of({
    register: registrations.register,
    unregister: registrations.unregister,
    destroy: registrations.destroy,
    start: command((container) => container.start),
    stop: command((container) => container.stop),
    pause: tierCommandBy(registry)("pause"),
    resume: tierCommandBy(registry)("resume"),
    skip: decisionBy(registry)("skip"),
    deadLetter: decisionBy(registry)("dead-letter"),
    getState: (name) => Effect.map(registry.find(name), ({ container }) => container.state()),
    listBindings,
    ...onClustersBy(registry),
    getByTopic: (topic) =>
      Effect.map(listBindings, (all) =>
        all.filter(({ containers }) => containers.some(({ topics }) => topics.includes(topic)))
      ),
    health,
    snapshot: (name) => Effect.flatMap(registry.find(name), ({ container }) => container.snapshot),
    changes: Stream.filter(EventStreams.events(hub, "rare"), (event) => event._tag === "StateChanged"),
    events: EventStreams.events(hub, "all"),
    subscribe: (listener) => EventStreams.listen(hub, listener, "all")
  })
})

/** The connector of a program. Closing it refuses new bindings, then drains, commits and closes all that are left, side by side. */
export const layer: Layer.Layer<EventBusConnector> = Layer.effect(EventBusConnector, make)
