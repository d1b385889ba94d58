/**
 * Delivers in order per aggregate. Events of different aggregates run side by side; with leases, several nodes share the work.
 *
 * - **Order.** Insertion order, decided by `seq`. A row is read only when no transaction is left that could still commit a lower
 *   number, so the rows of a slow transaction are neither skipped nor overtaken.
 * - **A failed event** holds its aggregate back until its retry succeeds or it is DEAD (`hold`, default), or is passed over
 *   (`passOver`): its successors go on, and it comes again when due.
 * - **A dead event** ends the hold: the aggregate goes on behind it. Replayed later, it comes after what was delivered meanwhile.
 *
 * Owns the events in memory (at most `maxInMemory`), their lanes and the cursors.
 */
import { Clock, Context, type Duration, Effect, Fiber, Layer, Scope } from "effect"
import type { SqlClient } from "effect/sql"
import type { EventInterceptor } from "./EventInterceptor.ts"
import { defaultPolicy, type EventRetryPolicy } from "./EventRetryPolicy.ts"
import { bucketCount } from "./internal/base/bucketOf.ts"
import { checkOptions, positive, text, whole } from "./internal/base/options.ts"
import { makeDelivery } from "./internal/dispatch/delivery.ts"
import * as BucketLeases from "./internal/ordered/bucketLeases.ts"
import { makeBucketReads } from "./internal/ordered/bucketReads.ts"
import { OrderedDelivery } from "./internal/ordered/delivery.ts"
import { OrderedReading } from "./internal/ordered/reading.ts"
import { makeReadPositions } from "./internal/ordered/readPositions.ts"
import { defaultCodec, type JsonCodec } from "./JsonCodec.ts"
import { ListenerRegistry } from "./ListenerRegistry.ts"
import * as MetricsExporter from "./MetricsExporter.ts"
import type { InvalidOutboxConfig, OutboxStoreError } from "./OutboxError.ts"
import { OutboxStore } from "./OutboxStore.ts"

export interface OrderedRelayOptions {
  /** Nodes share the buckets by leases; `none` is for a table with one relay. Default `none`. */
  readonly leases?: "none" | BucketLeases.LeaseOptions
  /** Listeners that run at once, each for another aggregate. Default 4. */
  readonly workerCount?: number
  /** Deliveries in all before DEAD. Default 10. */
  readonly maxAttempts?: number
  readonly retryPolicy?: EventRetryPolicy
  /** What a failed event means for its successors until it is retried. Default `hold`. */
  readonly afterFailure?: "hold" | "passOver"
  /**
   * Events of one aggregate that are handed to the listener without waiting for one another's result. Only for listeners that keep the
   * order of their calls themselves, as a relay to Kafka does. Default 1: one at a time.
   */
  readonly pipelining?: number
  readonly interceptors?: ReadonlyArray<EventInterceptor>
  readonly listenerTimeout?: Duration.Input
  /** Longest time between two reads. Default 5 seconds. */
  readonly interval?: Duration.Input
  /** Rows of one bucket in one read. Default 200. */
  readonly batchSize?: number
  /** Events in memory at once. Default 4000. */
  readonly maxInMemory?: number
  /** How long closing waits for events under way. Default 5 seconds. */
  readonly drainTimeout?: Duration.Input
  readonly codec?: JsonCodec
}

export class OrderedRelay extends Context.Service<
  OrderedRelay,
  {
    /** Reads soon, without waiting for the interval. */
    readonly wake: () => void
    /** Reads every bucket from its start again, for rows that became pending once more (replayed dead events). */
    readonly rescan: () => void
    /** Buckets that this node delivers from at present. */
    readonly heldBuckets: () => number
    readonly inFlight: () => number
  }
>()("@eventbus/outbox/OrderedRelay") {}

export type Shape = OrderedRelay["Service"]

const defaults = {
  leases: "none" as NonNullable<OrderedRelayOptions["leases"]>,
  workerCount: 4,
  maxAttempts: 10,
  retryPolicy: defaultPolicy,
  afterFailure: "hold" as NonNullable<OrderedRelayOptions["afterFailure"]>,
  interval: "5 seconds" as Duration.Input,
  batchSize: 200,
  maxInMemory: 4000,
  pipelining: 1,
  drainTimeout: "5 seconds" as Duration.Input
}

const check = (o: OrderedRelayOptions & typeof defaults) =>
  checkOptions("OrderedRelay", [
    whole("workerCount", o.workerCount, 1, 10_000),
    whole("maxAttempts", o.maxAttempts, 1, 1_000_000),
    whole("batchSize", o.batchSize, 1, 10_000),
    whole("maxInMemory", o.maxInMemory, 1, 1_000_000),
    whole("pipelining", o.pipelining, 1, 10_000),
    positive("interval", o.interval),
    positive("drainTimeout", o.drainTimeout),
    ...(o.leases === "none"
      ? []
      : [positive("leases.lease", o.leases.lease), text("leases.owner", o.leases.owner, 128)])
  ])

/** Without leases one node holds every bucket for ever. */
const allBuckets: ReadonlyArray<BucketLeases.BucketLease> = Array.from({ length: bucketCount }, (_, bucket) => ({
  bucket,
  epoch: 0,
  validUntilNanos: 2n ** 63n,
  stopped: false,
  lost: false
}))

type Requirements = OutboxStore | ListenerRegistry | SqlClient.SqlClient | Scope.Scope

/** Reading and delivering, wired to each other. */
const makeHalves = Effect.fnUntraced(function* (
  settings: OrderedRelayOptions & typeof defaults,
  tenures: () => ReadonlyArray<BucketLeases.BucketLease>
) {
  const store = yield* OutboxStore
  const metrics = yield* MetricsExporter.Current
  const clock = yield* Clock.Clock
  const reads = yield* makeBucketReads(store.dialect, store.names, settings.codec ?? defaultCodec)
  const reader = makeReadPositions()
  const deliver = makeDelivery({
    registry: yield* ListenerRegistry,
    interceptors: settings.interceptors ?? [],
    listenerTimeout: settings.listenerTimeout
  })
  const lowWater = Math.floor(settings.maxInMemory / 2)
  let wake = () => {}
  const onChange = (what: "left" | "waiting") => {
    if (what === "waiting" || delivery.size === lowWater || delivery.size === 0) wake()
  }
  const delivery = new OrderedDelivery(
    { store, metrics, clock, reader, deliver, onChange },
    { ...settings, owner: settings.leases === "none" ? undefined : settings.leases.owner }
  )
  const order = settings.workerCount === 1 ? "all" : "aggregate"
  const reading = new OrderedReading({ store, metrics, reads, reader, delivery, tenures }, { ...settings, order })
  wake = reading.signal.raise
  return { delivery, reading }
})

/** Keeps the leases. */
const leaseLoop = (
  holder: BucketLeases.BucketLeases,
  { delivery, reading }: { readonly delivery: OrderedDelivery; readonly reading: OrderedReading }
): Effect.Effect<never> => {
  const round = Effect.gen(function* () {
    const before = holder.held()
    const waitMillis = yield* holder.round((tenure) => delivery.isIdle(tenure))
    const after = holder.held()
    if (after.length !== before.length || after.some((tenure, i) => tenure !== before[i])) reading.signal.raise()
    yield* Effect.sleep(waitMillis)
  })
  return Effect.forever(
    Effect.catchCause(round, (cause) =>
      Effect.andThen(Effect.logError("outbox: bucket leases failed", cause), Effect.sleep("500 millis"))
    )
  )
}

/** Starts the relay. Closing the scope drains for `drainTimeout`, then interrupts, and gives the leases back. */
export const make: (
  options?: OrderedRelayOptions
) => Effect.Effect<Shape, InvalidOutboxConfig | OutboxStoreError, Requirements> = Effect.fnUntraced(function* (
  options = {}
) {
  const settings = { ...defaults, ...options }
  yield* check(settings)
  const leases = settings.leases
  const holder = leases === "none" ? undefined : yield* BucketLeases.make(yield* OutboxStore, leases)
  const tenures = () => holder?.held() ?? allBuckets
  const halves = yield* makeHalves(settings, tenures)
  const { delivery, reading } = halves

  const scope = yield* Scope.fork(yield* Effect.scope)
  yield* Effect.forkIn(delivery.doneMarker.run, scope)
  const workers = yield* Effect.forEach(Array.from({ length: settings.workerCount }), () =>
    Effect.forkIn(delivery.worker, scope)
  )
  const reader = yield* Effect.forkIn(reading.loop, scope)
  const keeper = holder === undefined ? undefined : yield* Effect.forkIn(leaseLoop(holder, halves), scope)

  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      yield* Fiber.interrupt(reader)
      delivery.close()
      const drained = Effect.andThen(Fiber.awaitAll(workers), delivery.doneMarker.flush)
      yield* Effect.timeoutOption(Effect.interruptible(drained), settings.drainTimeout)
      yield* Fiber.interruptAll(workers)
      yield* Effect.timeoutOption(Effect.interruptible(delivery.doneMarker.flush), "1 second")
      if (delivery.size > 0)
        yield* Effect.logWarning(`outbox: closed with ${delivery.size} events unfinished; they stay pending`)
      if (keeper !== undefined) yield* Fiber.interrupt(keeper)
      if (holder !== undefined) yield* Effect.ignore(holder.leave)
    })
  )
  return OrderedRelay.of({
    wake: reading.signal.raise,
    rescan: () => reading.rescan(),
    heldBuckets: () => tenures().length,
    inFlight: () => delivery.size
  })
})

export const layer = (
  options?: OrderedRelayOptions
): Layer.Layer<
  OrderedRelay,
  InvalidOutboxConfig | OutboxStoreError,
  OutboxStore | ListenerRegistry | SqlClient.SqlClient
> => Layer.effect(OrderedRelay, make(options))
