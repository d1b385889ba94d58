/**
 * A whole event bus for one test: a cluster in memory, the bindings under test on it, and everything that happened.
 *
 * ```ts
 * it.effect("…", () => program.pipe(Effect.provide(TestBus.layer([orders], { partitions: 6 }))))
 * ```
 *
 * Time is the test's: on a `TestClock` a plain `TestClock.adjust` moves the pipeline, each hop at its exact time, and nothing else does. `live` is the
 * same bus on a cluster that is given, on the real clock.
 */
import {
  type Binding,
  Broker,
  BrokerError,
  type ConsumerRecord,
  type DeadLetterRecord,
  EventBusConnector,
  type EventBusError,
  type Serde
} from "@eventbus/core"
import { Clock, Context, Duration, Effect, Layer, Scope } from "effect"
import * as FaultPlan from "./FaultPlan.ts"
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
import type * as Stuck from "./internal/trail/stuck.ts"
import * as MemoryBroker from "./MemoryBroker.ts"
import type { NotSettled } from "./NotSettled.ts"

export type Handled = Queries.Handled
export type DeliveryStep = DeliverySteps.DeliveryStep
export type RecordRef = Queries.RecordRef
export type TestRecord = Encoding.TestRecord

/** An event of the connector, and when it happened: milliseconds since the bus began. */
export type TimedEvent = RecordedEvent

export class TestBus extends Context.Service<
  TestBus,
  {
    /**
     * Writes a record, encoded as the binding that reads the topic decodes it, and lets it take its way as far as it gets without time passing.
     * Faults and outages do not hit it in memory. Fails for a value that the serde refuses, and a topic or partition that does not exist.
     */
    readonly publish: (
      topic: string,
      record: TestRecord
    ) => Effect.Effect<ConsumerRecord.RecordMetadata, Serde.EncodeFailure | BrokerError.BrokerError>
    /** Lets time pass: moves a `TestClock`, each thing at its time, or waits on any other clock. So that one scenario runs on both. */
    readonly advance: (duration: Duration.Input) => Effect.Effect<void>
    /**
     * Succeeds when every record of every binding, in its tiers too, is done: handled, dead-lettered or skipped, and committed. Fails with what is not,
     * and why. Moves no `TestClock`; on a running clock it waits up to `settleWithin`.
     */
    readonly settled: Effect.Effect<void, NotSettled>
    /** The way of a record, one line for each delivery: when (since it was published), where, and how it ended. */
    readonly trail: (topic: string, record: RecordRef) => Effect.Effect<string>
    /** The same as data, in the order in which it happened. */
    readonly deliverySteps: (topic: string, record: RecordRef) => Effect.Effect<ReadonlyArray<DeliveryStep>>
    /** What is in the dead letter topics of the bindings that read the topic, or in the topic itself if that is a dead letter topic. */
    readonly deadLetters: (topic: string) => Effect.Effect<ReadonlyArray<DeadLetterRecord.DeadLetterRecord>>
    /** What handlers were done with, in order; of one binding, or of all. */
    readonly handled: (binding?: string) => Effect.Effect<ReadonlyArray<Handled>>
    /** Everything that the connector reported, in order. */
    readonly events: Effect.Effect<ReadonlyArray<TimedEvent>>
    readonly state: (
      binding: string
    ) => Effect.Effect<EventBusError.ContainerState, EventBusConnector.BindingLookupError>
    /** A second process with the same bindings joins the groups, gets its share of the partitions, and leaves again. */
    readonly rebalance: Effect.Effect<void>
    /**
     * The clients of a binding's consumers die (of one of them, counted from 0): nothing more is committed, nobody leaves the group, running handlers are
     * cut off. They come back after a second; their partitions when `sessionTimeout` is over. In memory only.
     */
    readonly crash: (binding: string, consumer?: number) => Effect.Effect<void>
    /** Adds faults, such as `TestBus.nextProduce`; their counting starts now. In memory only. */
    readonly fail: (faults: FaultPlan.Fault | ReadonlyArray<FaultPlan.Fault>) => Effect.Effect<void>
    readonly partition: (
      topic: string,
      partition: number
    ) => {
      /** Takes the partition from its consumer without asking, and assigns it anew. In memory only. */
      readonly lose: Effect.Effect<void>
    }
  }
>()("@eventbus/testkit/TestBus") {}

export interface CommonOptions {
  /** Partitions of each topic that a binding reads. Default 1. A topic that exists stays as it is. */
  readonly partitions?: number
  /** Further topics, with their partitions: such as handlers publish to. */
  readonly topics?: Readonly<Record<string, number>>
  /** Decides what the connector leaves to chance, such as the jitter of retries. Default 1. */
  readonly seed?: number
  /** How long `settled` waits on a clock that runs. Default 30 seconds. */
  readonly settleWithin?: Duration.Input
}

export interface Options extends CommonOptions {
  /** The cluster: its latencies, assignment, faults. */
  readonly broker?: MemoryBroker.Options
}

type Refusal =
  | EventBusError.BindingAlreadyExists
  | EventBusError.ConfigurationValidation
  | EventBusError.ConnectorClosed

/**
 * A binding, whatever it requires. Not `Binding<unknown>`: a binding that is made in its place would take `unknown` for what it requires.
 */
export interface AnyBinding {
  readonly name: string
  readonly definition: { readonly topic: string; readonly groupId: string; readonly handler: object }
}

/** What the handlers of some bindings require. */
type Requirements<B> = B extends Binding.Binding<infer R> ? R : never

/**
 * The bindings on a cluster in memory: topics made, bindings started, partitions assigned. What the handlers require is what the layer requires, except
 * for the broker. Closing it drains; a `TestClock` is moved as far as that takes.
 */
export function layer<const B extends ReadonlyArray<AnyBinding>>(
  bindings: B,
  options?: Options
): Layer.Layer<
  TestBus | MemoryBroker.MemoryBroker | Broker.Broker | EventBusConnector.EventBusConnector,
  Refusal,
  Exclude<Requirements<B[number]>, Broker.Broker | MemoryBroker.MemoryBroker>
>
export function layer<R>(
  bindings: ReadonlyArray<Binding.Binding<R>>,
  options: Options = {}
): Layer.Layer<
  TestBus | MemoryBroker.MemoryBroker | Broker.Broker | EventBusConnector.EventBusConnector,
  Refusal,
  Exclude<R, MemoryBroker.MemoryBroker | Broker.Broker>
> {
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
  return Layer.provideMerge(bus, MemoryBroker.layer({ ...broker, onEvent }))
}

/** The bindings on the cluster that is given as `Broker`. Waits until their partitions are assigned. Missing topics are made, and stay. */
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
  return Layer.effectContext(
    Effect.gen(function* () {
      const cluster = yield* BrokerTestCluster.make(yield* Broker.Broker)
      return yield* make(bindings, cluster, options, () => 0, undefined)
    })
  )
}

/** The next `count` requests of a kind are refused: the caller gets `BrokerUnavailable`, or what `effect` says. */
export const next = (
  count: number,
  match: FaultPlan.Operation | FaultPlan.Match,
  effect: FaultPlan.RequestEffect = { _tag: "Refuse", error: unavailable }
): ReadonlyArray<FaultPlan.Fault> =>
  Array.from({ length: count }, (_, index) =>
    FaultPlan.nth(index + 1, typeof match === "string" ? { operation: match } : match, effect)
  )

const unavailable = new BrokerError.BrokerUnavailable({ brokers: ["memory"], detail: "the test wants it so" })

/** The next publish of the application is refused once. */
export const nextProduce: ReadonlyArray<FaultPlan.Fault> = next(1, "produce")

/** The next commit of the application is refused once. */
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
      const reader = bindings.find(({ definition }) => definition.topic === topic)
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
