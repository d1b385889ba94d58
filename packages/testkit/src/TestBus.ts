/**
 * A whole event bus for one test: a cluster in memory, the bindings under test on it, and a record of everything that happened.
 *
 * ```ts
 * import { it } from "@effect/vitest"
 * import { Binding, Serde } from "@eventbus/core"
 * import { TestBus } from "@eventbus/testkit"
 * import { Effect } from "effect"
 *
 * const orders = Binding.make("orders", { topic: "orders", groupId: "billing", value: Serde.string, handler: () => Effect.void })
 * const program = TestBus.TestBus.use((bus) => bus.settled)
 *
 * it.effect("handles an order", () => program.pipe(Effect.provide(TestBus.layer([orders], { partitions: 6 }))))
 * ```
 *
 * The test owns the clock: only `TestClock.adjust` moves the pipeline, each delivery at its exact time. `live` runs the same bus on a given cluster
 * and on the real clock.
 */
import {
  type Binding,
  Broker,
  BrokerError,
  type ConsumerRecord,
  type DeadLetterRecord,
  EventBusConnector,
  type EventBusError,
  Kinds,
  Publisher,
  type Serde
} from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as FaultPlan from "./FaultPlan.ts"
import * as OptionKinds from "./internal/broker/optionKinds.ts"
import * as FaultInjection from "./internal/bus/faultInjection.ts"
import * as Process from "./internal/bus/process.ts"
import * as Setup from "./internal/bus/setup.ts"
import * as BrokerTestCluster from "./internal/target/brokerTestCluster.ts"
import * as ClockDriver from "./internal/target/clockDriver.ts"
import * as MemoryTestCluster from "./internal/target/memoryTestCluster.ts"
import type { TestCluster } from "./internal/target/testCluster.ts"
import * as Encoding from "./internal/target/testRecord.ts"
import type * as DeliverySteps from "./internal/trail/deliverySteps.ts"
import { EventRecorder, type RecordedEvent } from "./internal/trail/eventRecorder.ts"
import * as Queries from "./internal/trail/queries.ts"
import * as Sources from "./internal/trail/sources.ts"
import type * as Stuck from "./internal/trail/stuck.ts"
import * as MemoryBroker from "./MemoryBroker.ts"
import type { NotSettled } from "./NotSettled.ts"

/** A record that a handler has handled. */
export type Handled = Queries.Handled
/** One delivery of a record: its time, its place, and how it ended. */
export type DeliveryStep = DeliverySteps.DeliveryStep
/** Selects records of a topic: all with a key, or one by partition and offset. */
export type RecordRef = Queries.RecordRef
/** A record to publish. */
export type TestRecord = Encoding.TestRecord

/** An event of the connector with its time in milliseconds since the bus started. */
export type TimedEvent = RecordedEvent

/** The bus of a test. */
export class TestBus extends Context.Service<
  TestBus,
  {
    /**
     * Publishes a record, encoded with the serdes of the binding that reads the topic, and lets it be processed as far as possible without time
     * passing. In memory, injected faults do not affect this call. Fails with `EncodeFailure` for a value that the serde refuses, and with
     * `UnknownTopic` for a topic or partition that does not exist.
     */
    readonly publish: (
      topic: string,
      record: TestRecord
    ) => Effect.Effect<ConsumerRecord.RecordMetadata, Serde.EncodeFailure | BrokerError.BrokerError>
    /** Lets time pass: moves a `TestClock`, or sleeps on any other clock, so that one scenario runs on both. */
    readonly advance: (duration: Duration.Input) => Effect.Effect<void>
    /**
     * Succeeds when every record of every binding, also in retry tiers, is handled, dead-lettered or skipped, and committed. Fails with `NotSettled`,
     * which lists the unfinished records and the reasons. It does not move a `TestClock`; on a real clock it waits up to `settleWithin`.
     */
    readonly settled: Effect.Effect<void, NotSettled>
    /** The path of a record as text, one line for each delivery: time since it was published, place, and how it ended. */
    readonly trail: (topic: string, record: RecordRef) => Effect.Effect<string>
    /** The same as data, in chronological order. */
    readonly deliverySteps: (topic: string, record: RecordRef) => Effect.Effect<ReadonlyArray<DeliveryStep>>
    /** The records in the dead letter topics of the bindings that read the topic, or in the topic itself if it is a dead letter topic. */
    readonly deadLetters: (topic: string) => Effect.Effect<ReadonlyArray<DeadLetterRecord.DeadLetterRecord>>
    /** The records that handlers have handled, in order: of one binding, or of all. */
    readonly handled: (binding?: string) => Effect.Effect<ReadonlyArray<Handled>>
    /** Every event that the connector reported, in order. */
    readonly events: Effect.Effect<ReadonlyArray<TimedEvent>>
    /** The current state of a binding. Fails with `BindingLookupError` for a name that no binding has. */
    readonly state: (
      binding: string
    ) => Effect.Effect<EventBusError.ContainerState, EventBusConnector.BindingLookupError>
    /** Starts a second process with the same bindings, which joins the groups, gets its share of the partitions, and leaves again. */
    readonly rebalance: Effect.Effect<void>
    /**
     * Drops the connections of a binding's consumers, or of one of them, counted from 0: they commit nothing more, send no LeaveGroup, and running
     * handlers are interrupted. They reconnect after a second and get their partitions back after `sessionTimeout`. In memory only.
     */
    readonly crash: (binding: string, consumer?: number) => Effect.Effect<void>
    /** Adds faults, such as `TestBus.nextProduce`, which count requests from now on. In memory only. */
    readonly fail: (faults: FaultPlan.Fault | ReadonlyArray<FaultPlan.Fault>) => Effect.Effect<void>
    /** Faults of one partition. */
    readonly partition: (
      topic: string,
      partition: number
    ) => {
      /** Takes the partition from its consumer without a revocation, and assigns it again. In memory only. */
      readonly lose: Effect.Effect<void>
    }
  }
>()("@eventbus/testkit/TestBus") {}

/** Options of `layer` and `live`. */
export interface CommonOptions {
  /** Partitions of each topic that a binding reads. Default 1. An existing topic is not changed. */
  readonly partitions?: number
  /** Further topics with their partitions, such as topics that handlers publish to. Default none. */
  readonly topics?: Readonly<Record<string, number>>
  /** Seed of the connector's random choices, such as the jitter of retries. Default 1. */
  readonly seed?: number
  /** The longest time that `settled` waits on a real clock. Default 30 seconds. */
  readonly settleWithin?: Duration.Input
}

/** Options of `layer`. */
export interface Options extends CommonOptions {
  /** Options of the cluster, such as latencies, rebalance protocol and faults. Default none. */
  readonly broker?: MemoryBroker.Options
}

type Refusal =
  | EventBusError.BindingAlreadyExists
  | EventBusError.ConfigurationValidation
  | EventBusError.ConnectorClosed

/**
 * A binding with any requirements. It is not `Binding<unknown>`: TypeScript would infer `unknown` as the requirement of a binding that is made inline.
 */
export interface AnyBinding {
  /** Name of the binding. */
  readonly name: string
  /** The settings that tell a binding from other objects. */
  readonly definition: {
    /** The topic that the binding reads. */
    readonly topic: string
    /** The group of the binding. */
    readonly groupId: string
    /** The handler of the binding. */
    readonly handler: object
  }
}

/** The services of a cluster in memory: its broker, and the producers of publishers. */
type Cluster = MemoryBroker.MemoryBroker | Broker.Broker | Publisher.Producers

/** The services that the handlers of some bindings require. */
type Requirements<B> = B extends Binding.Binding<infer R> ? R : never

/**
 * Runs the bindings on a cluster in memory: it creates the topics, starts the bindings and waits until their partitions are assigned. The layer
 * requires what the handlers require, except for the broker and the producers of publishers. Closing it drains the bindings and moves a `TestClock` as far as that takes. Throws
 * `ConfigurationValidation` for options of another kind.
 */
export function layer<const B extends ReadonlyArray<AnyBinding>>(
  bindings: B,
  options?: Options
): Layer.Layer<
  TestBus | Cluster | EventBusConnector.EventBusConnector,
  Refusal,
  Exclude<Requirements<B[number]>, Cluster>
>
export function layer<R>(
  bindings: ReadonlyArray<Binding.Binding<R>>,
  options: Options = {}
): Layer.Layer<TestBus | Cluster | EventBusConnector.EventBusConnector, Refusal, Exclude<R, Cluster>> {
  Kinds.refuse(OptionKinds.ofBus("TestBus", options))
  const { broker = {} } = options
  let journaled = 0
  const onEvent: MemoryBroker.Journal = (entry, atMillis) => {
    journaled++
    broker.onEvent?.(entry, atMillis)
  }
  const bus = Layer.effectContext(
    Effect.gen(function* () {
      const memory = yield* MemoryBroker.MemoryBroker
      return yield* make(bindings, MemoryTestCluster.make(memory), options, () => journaled, memory)
    })
  )
  // Only options can be refused, and there are none.
  const producers = Layer.orDie(Publisher.layer())
  const cluster = Layer.provideMerge(producers, MemoryBroker.layer({ ...broker, onEvent }))
  return Layer.provideMerge(bus, cluster)
}

/** Runs the bindings on the cluster behind the given `Broker` and waits until their partitions are assigned. Missing topics are created and not deleted. Throws `ConfigurationValidation` for options of another kind. */
export function live<const B extends ReadonlyArray<AnyBinding>>(
  bindings: B,
  options?: CommonOptions
): Layer.Layer<
  TestBus | EventBusConnector.EventBusConnector,
  Refusal | BrokerError.BrokerError,
  Requirements<B[number]> | Broker.Broker
>
export function live<R>(
  bindings: ReadonlyArray<Binding.Binding<R>>,
  options: CommonOptions = {}
): Layer.Layer<TestBus | EventBusConnector.EventBusConnector, Refusal | BrokerError.BrokerError, R | Broker.Broker> {
  Kinds.refuse(OptionKinds.ofBus("TestBus", options))
  return Layer.effectContext(
    Effect.gen(function* () {
      const cluster = yield* BrokerTestCluster.make(yield* Broker.Broker)
      return yield* make(bindings, cluster, options, () => 0, undefined)
    })
  )
}

/** Faults for the next `count` requests of a kind. Default effect: the broker refuses the request with `BrokerUnavailable`. */
export const next = (
  count: number,
  match: FaultPlan.Operation | FaultPlan.Match,
  effect: FaultPlan.RequestEffect = { _tag: "Refuse", error: unavailable }
): ReadonlyArray<FaultPlan.Fault> =>
  Array.from({ length: count }, (_, index) =>
    FaultPlan.nth(index + 1, typeof match === "string" ? { operation: match } : match, effect)
  )

const unavailable = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "refused by the test" })

/** The broker refuses the next publish of the application once. */
export const nextProduce: ReadonlyArray<FaultPlan.Fault> = next(1, "produce")

/** The broker refuses the next commit of the application once. */
export const nextCommit: ReadonlyArray<FaultPlan.Fault> = next(1, "commit")

const make = Effect.fnUntraced(function* <R>(
  bindings: ReadonlyArray<Binding.Binding<R>>,
  cluster: TestCluster,
  options: CommonOptions,
  journaled: () => number,
  memory: MemoryBroker.Service | undefined
): Effect.fn.Return<
  Context.Context<TestBus | EventBusConnector.EventBusConnector>,
  Refusal,
  R | Broker.Broker | Scope.Scope
> {
  const begunMillis = yield* Clock.currentTimeMillis
  const withinMillis = Duration.toMillis(options.settleWithin ?? "30 seconds")
  const clockDriver = yield* ClockDriver.make(() => recorder.events.length + journaled(), withinMillis)
  const recorder = new EventRecorder(clockDriver.elapsedMillis)
  const state: Stuck.BusState = { cluster, recorder, nowMillis: clockDriver.elapsedMillis, begunMillis }
  yield* Setup.createTopics(cluster, bindings, options)
  const context = yield* Effect.context<R | Broker.Broker>()
  const scope = yield* Effect.scope
  const startProcess = (name: string) =>
    Process.start(bindings, { name, recorder, seed: options.seed ?? 1 }).pipe(
      Scope.provide(scope),
      Effect.provideContext(context)
    )
  const process = yield* startProcess("app")
  yield* Effect.addFinalizer(() => clockDriver.runToEnd(process.close))
  const areAssigned = Setup.areAssigned(cluster, recorder, bindings)
  yield* clockDriver.waitUntil(areAssigned)
  const { connector } = process
  const bus = TestBus.of({
    publish: Effect.fnUntraced(function* (topic, record) {
      const reader = bindings.find(({ definition }) => Sources.reads(definition, topic))
      const metadata = yield* cluster.publish(yield* Encoding.encode(topic, record, reader))
      yield* clockDriver.untilIdle
      return metadata
    }),
    advance: clockDriver.advance,
    settled: Queries.settled(state, clockDriver, bindings, connector.listBindings),
    trail: (topic, ref) => Queries.trail(state, bindings, topic, ref),
    deliverySteps: (topic, ref) => Queries.deliverySteps(state, bindings, topic, ref),
    deadLetters: (topic) => Queries.deadLetters(state, bindings, topic),
    handled: (binding) => Effect.sync(() => Queries.handled(state, bindings, binding)),
    events: Effect.sync(() => [...recorder.events]),
    state: connector.getState,
    rebalance: FaultInjection.forceRebalance(clockDriver, scope, startProcess("second"), areAssigned),
    ...FaultInjection.injectors(clockDriver, process, memory)
  })
  return Context.make(TestBus, bus).pipe(Context.add(EventBusConnector.EventBusConnector, connector))
})
