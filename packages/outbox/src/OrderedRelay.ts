/**
 * Delivers in order per aggregate. Events of different aggregates run side by side; with leases, several nodes share the work.
 *
 * - **Order.** Insertion order, decided by `seq`. A row is read only when no open transaction could still commit a lower number. So the
 *   rows of a slow transaction are neither skipped nor overtaken (ruling 46).
 * - **A failed event** holds its aggregate back until its retry succeeds or it is DEAD (`hold`, the default). With `passOver`, its
 *   successors go on, and it comes again when due.
 * - **A dead event** ends the hold: the aggregate goes on behind it. A replayed event comes after what was delivered meanwhile.
 *
 * The relay owns the events in memory (at most `maxInMemory`), their lanes, the read positions and the leases.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { EventInterceptor } from "./EventInterceptor.ts"
import { type EventRetryPolicy, exponential } from "./EventRetryPolicy.ts"
import { bucketCount } from "./internal/base/bucketOf.ts"
import { logText } from "./internal/base/failureText.ts"
import { logError, logWarning } from "./internal/base/log.ts"
import { relay as kinds } from "./internal/base/optionKinds.ts"
import { checkOptions, problemsOf, withDefaults } from "./internal/base/options.ts"
import { releaseBounded } from "./internal/base/supervisor.ts"
import { makeCallListener } from "./internal/delivery/callListener.ts"
import { type DeliveryTools, makeDeliveryTools } from "./internal/delivery/deliveryTools.ts"
import { watchTable } from "./internal/delivery/tableWatch.ts"
import {
  type BucketLease,
  type BucketLeases,
  type LeaseOptions,
  makeBucketLeases,
  nodeNameOf
} from "./internal/ordered/bucketLeases.ts"
import { makeBucketReads } from "./internal/ordered/bucketReads.ts"
import { OrderedDelivery } from "./internal/ordered/orderedDelivery.ts"
import { OrderedReading } from "./internal/ordered/orderedReading.ts"
import { makeReadPositions } from "./internal/ordered/readPositions.ts"
import { defaultCodec, type JsonCodec } from "./JsonCodec.ts"
import { ListenerRegistry } from "./ListenerRegistry.ts"
import type { InvalidOutboxConfig, OutboxStoreError } from "./OutboxError.ts"
import { OutboxStore } from "./OutboxStore.ts"

export type { LeaseOptions } from "./internal/ordered/bucketLeases.ts"

/** Settings of an ordered relay. */
export interface OrderedRelayOptions {
  /** How nodes share the buckets. `none` is for a table with one relay. Default `none`. */
  readonly leases?: "none" | LeaseOptions
  /** Listeners that run at once, each for another aggregate, 1 to 10,000. With 1, the order is one over all aggregates. Default 4. */
  readonly workerCount?: number
  /** Deliveries of one event in all before it is DEAD, 1 to 1,000,000. Default 10. */
  readonly maxAttempts?: number
  /** The wait after a failed delivery. Default: exponential from 200 ms to a minute. */
  readonly retryPolicy?: EventRetryPolicy
  /** Whether the successors of a failed event wait for its retry (`hold`) or go on (`passOver`). Default `hold`. */
  readonly afterFailure?: "hold" | "passOver"
  /**
   * Events of one aggregate that are handed to the listener at once, 1 to 10,000. Above 1 only for listeners that keep the order of
   * their calls themselves, as a relay to Kafka does. Default 1.
   */
  readonly pipelining?: number
  /** Work around every delivery, in this order. Default: none. */
  readonly interceptors?: ReadonlyArray<EventInterceptor>
  /**
   * The longest time of a listener, and of each `beforeDispatch` and `afterDispatch`. Above 0. One that runs longer is interrupted and has failed. One that resists its
   * interruption for a second is left behind: it goes on by itself, beside the next delivery of its event. Default: no limit, and one that hangs keeps its worker.
   */
  readonly listenerTimeout?: Duration.Input
  /** Longest time between two reads, above 0. Default 5 seconds. */
  readonly interval?: Duration.Input
  /** The most rows of one bucket in one read, 1 to 10,000. Default 200. */
  readonly batchSize?: number
  /** The most events in memory, 1 to 1,000,000. Default 4000. */
  readonly maxInMemory?: number
  /** How long closing waits for events in flight before it interrupts workers. Above 0. Default 5 seconds. */
  readonly drainTimeout?: Duration.Input
  /** The codec of headers. It must be that of the store. Default: flat JSON. */
  readonly codec?: JsonCodec
}

/** The ordered relay of one process. */
export class OrderedRelay extends Context.Service<
  OrderedRelay,
  {
    /** Reads soon, without waiting for the interval. */
    readonly wake: () => void
    /** Reads every bucket from its start again, for rows that became pending once more, such as replayed dead events. */
    readonly rescan: () => void
    /** The number of buckets that this node delivers from now, 0 to 64. */
    readonly heldBuckets: () => number
    /** The number of events in memory. */
    readonly inFlight: () => number
  }
>()("@eventbus/outbox/OrderedRelay") {}

const defaults = {
  leases: "none" as NonNullable<OrderedRelayOptions["leases"]>,
  workerCount: 4,
  maxAttempts: 10,
  retryPolicy: exponential(),
  afterFailure: "hold" as NonNullable<OrderedRelayOptions["afterFailure"]>,
  interval: "5 seconds" as Duration.Input,
  batchSize: 200,
  maxInMemory: 4000,
  pipelining: 1,
  drainTimeout: "5 seconds" as Duration.Input
}

/** Without leases, one node holds every bucket for ever. */
const allBuckets: ReadonlyArray<BucketLease> = Array.from({ length: bucketCount }, (_, bucket) => ({
  bucket,
  epoch: 0,
  validUntilNanos: 2n ** 63n,
  stopped: false,
  lost: false
}))

/** The reading and the delivering half, wired to each other. */
interface Halves {
  readonly delivery: OrderedDelivery
  readonly reading: OrderedReading
}

const makeHalves = Effect.fnUntraced(function* (
  settings: OrderedRelayOptions & typeof defaults,
  tools: DeliveryTools,
  currentLeases: () => ReadonlyArray<BucketLease>
) {
  const store = yield* OutboxStore
  const reads = yield* makeBucketReads(store.dialect, store.names, settings.codec ?? defaultCodec)
  const positions = makeReadPositions()
  const callListener = makeCallListener({
    registry: yield* ListenerRegistry,
    interceptors: settings.interceptors ?? [],
    listenerTimeout: settings.listenerTimeout
  })
  const lowWater = Math.floor(settings.maxInMemory / 2)
  let wake = () => {}
  const onChange = (change: "left" | "delayed") => {
    if (change === "delayed" || delivery.size === lowWater || delivery.size === 0) wake()
  }
  const delivery = new OrderedDelivery(
    { store, tools, positions, callListener, onChange },
    { ...settings, leases: leaseSettings(settings.leases) }
  )
  const order = settings.workerCount === 1 ? "all" : "aggregate"
  const reading = new OrderedReading(
    { store, tools, reads, positions, delivery, currentLeases },
    { ...settings, order }
  )
  wake = reading.signal.raise
  const halves: Halves = { delivery, reading }
  return halves
})

const leaseSettings = (leases: "none" | LeaseOptions) =>
  leases === "none"
    ? undefined
    : {
        owner: nodeNameOf(leases.owner),
        leaseMillis: Duration.toMillis(Duration.fromInputUnsafe(leases.lease))
      }

/** Keeps the leases, and the row locks of events whose buckets were handed over, for as long as it runs. */
const keepLeases = (
  leases: BucketLeases,
  store: OutboxStore["Service"],
  { delivery, reading }: Halves
): Effect.Effect<never> => {
  const inFlight = {
    isIdle: (lease: BucketLease) => delivery.isIdle(lease),
    beginHandover: (given: ReadonlyArray<BucketLease>) => delivery.beginHandover(given)
  }
  const round = Effect.gen(function* () {
    const before = leases.current()
    const waitMillis = yield* leases.round(inFlight)
    const { handedOver } = delivery
    if (handedOver.length > 0) yield* store.renewClaims(leases.owner, handedOver)
    const after = leases.current()
    if (after.length !== before.length || after.some((lease, i) => lease !== before[i])) reading.signal.raise()
    yield* Effect.sleep(waitMillis)
  })
  return Effect.forever(
    Effect.catchCause(round, (cause) =>
      Effect.andThen(logError(`outbox: renewing bucket leases failed: ${logText(cause)}`), Effect.sleep("500 millis"))
    )
  )
}

/**
 * Starts the relay. Fails with all wrong settings at once, or when the bucket rows cannot be created. Closing the scope drains events
 * in flight for `drainTimeout`, then interrupts the workers and releases the leases.
 */
export const make: (
  options?: OrderedRelayOptions
) => Effect.Effect<
  OrderedRelay["Service"],
  InvalidOutboxConfig | OutboxStoreError,
  OutboxStore | ListenerRegistry | SqlClient.SqlClient | Scope.Scope
> = Effect.fnUntraced(function* (options = {}) {
  yield* checkOptions("OrderedRelay", [problemsOf(options, kinds)])
  const settings = withDefaults(defaults, options)
  const leases = settings.leases === "none" ? undefined : yield* makeBucketLeases(yield* OutboxStore, settings.leases)
  const currentLeases = () => leases?.current() ?? allBuckets
  const tools = yield* makeDeliveryTools(yield* OutboxStore)
  const halves = yield* makeHalves(settings, tools, currentLeases)
  const { delivery, reading } = halves
  const endDepths = tools.metrics.observeQueueDepths(() => ({ hot: 0, cold: delivery.size }))
  yield* watchTable(yield* OutboxStore, tools)

  const scope = yield* Scope.fork(yield* Effect.scope)
  yield* Effect.forkIn(tools.supervise("done marker", delivery.doneMarker.run), scope)
  const workers = yield* Effect.forEach(Array.from({ length: settings.workerCount }), (_, index) => {
    const worker = delivery.makeWorker()
    return Effect.forkIn(tools.supervise(`worker ${index + 1}`, worker.run, { repair: worker.repair }), scope)
  })
  const reader = yield* Effect.forkIn(tools.supervise("bucket reader", reading.loop), scope)
  const keeper =
    leases === undefined
      ? undefined
      : yield* Effect.forkIn(tools.supervise("lease keeper", keepLeases(leases, yield* OutboxStore, halves)), scope)

  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      yield* Fiber.interrupt(reader)
      delivery.close()
      const drained = Effect.andThen(Fiber.awaitAll(workers), delivery.doneMarker.flush)
      yield* Effect.timeoutOption(Effect.interruptible(drained), settings.drainTimeout)
      yield* Fiber.interruptAll(workers)
      yield* Effect.timeoutOption(Effect.interruptible(delivery.doneMarker.flush), "1 second")
      endDepths()
      if (delivery.size > 0)
        yield* logWarning(`outbox: closed with ${delivery.size} events unfinished; they stay pending`)
      if (keeper !== undefined) yield* Fiber.interrupt(keeper)
      if (leases !== undefined) yield* releaseBounded("release of bucket leases", () => leases.leave)
    })
  )
  return OrderedRelay.of({
    wake: reading.signal.raise,
    rescan: () => reading.rescan(),
    heldBuckets: () => currentLeases().length,
    inFlight: () => delivery.size
  })
})

/** A started relay as a layer. */
export const layer = (
  options?: OrderedRelayOptions
): Layer.Layer<
  OrderedRelay,
  InvalidOutboxConfig | OutboxStoreError,
  OutboxStore | ListenerRegistry | SqlClient.SqlClient
> => Layer.effect(OrderedRelay, make(options))
