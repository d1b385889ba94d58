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
import { type Cause, Clock, Context, Duration, Effect, Exit, Fiber, Layer, Random, Scope } from "effect"
import type { SqlClient } from "effect/sql"
import * as BucketLeases from "./BucketLeases.ts"
import type { EventInterceptor } from "./EventInterceptor.ts"
import { aggregateKey, bucketCount } from "./internal/bucketOf.ts"
import { makeBucketReads } from "./internal/bucketReads.ts"
import { decideFailure, type FailureOutcome, makeDelivery } from "./internal/delivery.ts"
import { makeFinisher, patience } from "./internal/finisher.ts"
import { type Lane, Lanes } from "./internal/lanes.ts"
import { checkOptions, positive, text, whole } from "./internal/options.ts"
import { makeOrderedReader } from "./internal/orderedReader.ts"
import { makeSignal } from "./internal/signal.ts"
import { defaultCodec, type JsonCodec } from "./JsonCodec.ts"
import { ListenerRegistry } from "./ListenerRegistry.ts"
import * as MetricsExporter from "./MetricsExporter.ts"
import type { InvalidOutboxConfig, OutboxStoreError } from "./OutboxError.ts"
import { type OutboxEvent, OutboxStore, openFence, type PolledEvent, partition } from "./OutboxStore.ts"
import { defaultPolicy, type RetryPolicy } from "./RetryPolicy.ts"

export interface OrderedRelayOptions {
  /** Nodes share the buckets by leases; `none` is for a table with one relay. Default `none`. */
  readonly leases?: "none" | BucketLeases.LeaseOptions
  /** Listeners that run at once, each for another aggregate. Default 4. */
  readonly workerCount?: number
  /** Deliveries in all before DEAD. Default 10. */
  readonly maxAttempts?: number
  readonly retryPolicy?: RetryPolicy
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

interface Held {
  readonly event: OutboxEvent
  readonly key: string
  readonly tenure: BucketLeases.Tenure
}

/** Aggregates that may be held back at once; beyond that nothing new is read until retries succeed. */
const maxWaiting = 20_000
/** Events of one aggregate that a worker handles before other aggregates get their turn. */
const laneTurn = 100
/** Every so often all buckets are read from the start: rows may have become pending behind the cursors by other hands. */
const rescanNanos = 30_000_000_000n

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
const allBuckets: ReadonlyArray<BucketLeases.Tenure> = Array.from({ length: bucketCount }, (_, bucket) => ({
  bucket,
  epoch: 0,
  validUntilNanos: 2n ** 63n,
  lost: false
}))

type Requirements = OutboxStore | ListenerRegistry | SqlClient.SqlClient | Scope.Scope

/** Starts the relay. Closing the scope drains for `drainTimeout`, then interrupts, and gives the leases back. */
export const make: (
  options?: OrderedRelayOptions
) => Effect.Effect<Shape, InvalidOutboxConfig | OutboxStoreError, Requirements> = Effect.fnUntraced(function* (
  options = {}
) {
  const settings = { ...defaults, ...options }
  yield* check(settings)
  const store = yield* OutboxStore
  const metrics = yield* MetricsExporter.Current
  const clock = yield* Clock.Clock
  const deliver = makeDelivery({
    registry: yield* ListenerRegistry,
    interceptors: settings.interceptors ?? [],
    listenerTimeout: settings.listenerTimeout
  })
  const reads = yield* makeBucketReads(store.dialect, store.names, settings.codec ?? defaultCodec)
  const leases = settings.leases === "none" ? undefined : yield* BucketLeases.make(store, settings.leases)
  const owner = settings.leases === "none" ? "" : settings.leases.owner
  const tenures = () => leases?.held() ?? allBuckets

  const reader = makeOrderedReader()
  const lanes = new Lanes<Held>()
  const held = new Map<string, Held>()
  const signal = makeSignal()
  const finishedDuringRead = new Set<string>()
  let reading = false
  let closing = false
  let rescanWanted = false
  const known = new Set<BucketLeases.Tenure>()

  const now = () => clock.monotonicTimeNanosUnsafe()
  const valid = (tenure: BucketLeases.Tenure) => !tenure.lost && now() < tenure.validUntilNanos

  const settled = (item: Held): void => {
    held.delete(item.event.eventId)
    if (reading) finishedDuringRead.add(item.event.eventId)
    if (held.size === Math.floor(settings.maxInMemory / 2) || held.size === 0) signal.raise()
  }

  /** What a late tenure finished is left as it is: the bucket's new owner decides. */
  const fenceOf = (items: ReadonlyArray<Held>) =>
    leases === undefined
      ? openFence
      : ({ _tag: "Buckets", owner, epochs: new Map(items.map(({ tenure }) => [tenure.bucket, tenure.epoch])) } as const)

  const finisher = yield* makeFinisher<Held>({
    mark: (items) => {
      const current = items.filter((item) => !item.tenure.lost)
      return store.markDone(
        current.map((item) => item.event.eventId),
        fenceOf(current)
      )
    },
    settled
  })

  /** A retried event waits; with `hold` its whole aggregate does. */
  const waitFor = (item: Pick<Held, "event" | "key">, delayMillis: number) =>
    reader.wait(settings.afterFailure === "hold" ? item.key : item.event.eventId, {
      bucket: item.event.bucket,
      seq: item.event.seq,
      dueNanos: now() + BigInt(Math.ceil(delayMillis * 1e6))
    })

  const holdBack = (lane: Lane<Held>, item: Held, delayMillis: number): void => {
    waitFor(item, delayMillis)
    if (settings.afterFailure === "hold") {
      for (const behind of lanes.remove(lane, (other) => other.key === item.key)) settled(behind)
    }
    signal.raise()
  }

  const markFailed = Effect.fnUntraced(function* (item: Held, outcome: Exclude<FailureOutcome, { _tag: "Postpone" }>) {
    const { eventId, envelope, attempts } = item.event
    const fence = fenceOf([item])
    if (outcome._tag === "Dead") {
      const after = `${attempts + 1} deliveries: ${outcome.error}`
      yield* Effect.logError(`outbox: ${envelope.eventType} ${eventId} is DEAD after ${after}`)
    }
    const mark =
      outcome._tag === "Dead"
        ? store.markDead(eventId, outcome.error, fence)
        : store.markRetry(eventId, outcome.delayMillis, outcome.error, fence)
    const marked = yield* Effect.result(Effect.retry(mark, patience))
    if (marked._tag === "Success") return true
    yield* Effect.logError(`outbox: marking ${eventId} as ${outcome._tag} failed`, marked.failure)
    return false
  })

  const onFailure = Effect.fnUntraced(function* (lane: Lane<Held>, item: Held, cause: Cause.Cause<unknown>) {
    const outcome = decideFailure(cause, item.event.attempts, settings, yield* Random.next)
    if (outcome._tag === "Postpone") {
      yield* Effect.logWarning(`outbox: ${item.event.envelope.eventType} ${item.event.eventId} waits: ${outcome.error}`)
      holdBack(lane, item, outcome.delayMillis)
      settled(item)
      return
    }
    const marked = yield* markFailed(item, outcome)
    if (outcome._tag === "Retry") holdBack(lane, item, outcome.delayMillis)
    else if (!marked) holdBack(lane, item, 1000)
    if (outcome._tag === "Dead") metrics.incrementDispatchDead()
    else metrics.incrementDispatchFailure()
    settled(item)
  })

  /** An event of a lease that ran out is not started, and neither is anything behind it: the lease stays lost. */
  const startable = (item: Held): boolean => {
    if (valid(item.tenure)) return true
    item.tenure.lost = true
    settled(item)
    return false
  }

  const succeeded = (item: Held): void => {
    metrics.incrementDispatchSuccess()
    finisher.add(item)
  }

  const handle = (lane: Lane<Held>, item: Held): Effect.Effect<void> => {
    if (!startable(item)) return Effect.void
    return Effect.matchCauseEffect(deliver(item.event.envelope), {
      onSuccess: () => {
        succeeded(item)
        return finisher.awaitRoom
      },
      onFailure: (cause) => onFailure(lane, item, cause)
    })
  }

  /**
   * Several events of one lane at once, started in order. What succeeded behind a failure is done all the same; what failed behind it is
   * read again in its place.
   */
  const handleTogether = (lane: Lane<Held>): Effect.Effect<void> => {
    const items = lane.events.splice(0, settings.pipelining).filter(startable)
    return Effect.flatMap(
      Effect.forEach(items, (item) => Effect.exit(deliver(item.event.envelope)), { concurrency: "unbounded" }),
      (exits) =>
        Effect.gen(function* () {
          const stopped = new Set<string>()
          for (const [i, item] of items.entries()) {
            const exit = exits[i]!
            if (Exit.isSuccess(exit)) succeeded(item)
            else if (stopped.has(item.key)) settled(item)
            else {
              yield* onFailure(lane, item, exit.cause)
              if (reader.isWaiting(item.key)) stopped.add(item.key)
            }
          }
          yield* finisher.awaitRoom
        })
    )
  }

  const step = (lane: Lane<Held>) =>
    settings.pipelining > 1 ? handleTogether(lane) : handle(lane, lane.events.shift()!)

  const runLane = (lane: Lane<Held>): Effect.Effect<void> => {
    let left = laneTurn
    return Effect.ensuring(
      Effect.whileLoop({
        while: () => left-- > 0 && lane.events.length > 0,
        body: () => step(lane),
        step: () => {}
      }),
      Effect.sync(() => lanes.done(lane))
    )
  }

  const awaitLane = Effect.callback<void>((resume) => Effect.sync(lanes.onReady(() => resume(Effect.void))))
  const worker = Effect.whileLoop({
    while: () => !closing || lanes.hasWork,
    body: () => {
      const lane = lanes.take()
      return lane === undefined ? awaitLane : runLane(lane)
    },
    step: () => {}
  })

  const bury = (row: { readonly eventId: string; readonly envelope: Error }) =>
    Effect.andThen(
      Effect.logFatal(`outbox: ${row.eventId} cannot be decoded and is DEAD: ${row.envelope.message}`),
      store.markDead(row.eventId, row.envelope.message)
    )

  const accept = (event: OutboxEvent, tenure: BucketLeases.Tenure): void => {
    const key = aggregateKey(event.envelope)
    reader.advance(event.bucket, event.seq)
    if (reader.isWaiting(key) || reader.isWaiting(event.eventId)) return
    if (held.has(event.eventId) || finishedDuringRead.has(event.eventId)) return
    if (event.dueInMillis > 0) {
      waitFor({ event, key }, event.dueInMillis)
      return
    }
    const item = { event, key, tenure }
    held.set(event.eventId, item)
    metrics.incrementColdEnqueued()
    // With one worker all aggregates share a lane: the order is the insertion order over all of them.
    lanes.push(settings.workerCount === 1 ? "" : key, item)
  }

  /** One bucket's share of the free memory. */
  const limitFor = (buckets: number) =>
    Math.min(settings.batchSize, Math.max(1, Math.floor((settings.maxInMemory - held.size) / buckets)))

  /** Buckets that came new start from the beginning; those that went are forgotten. */
  const follow = (current: ReadonlyArray<BucketLeases.Tenure>): boolean => {
    const before = [...known]
    const gone = before.filter((tenure) => !current.includes(tenure))
    const come = current.filter((tenure) => !known.has(tenure))
    for (const tenure of gone) known.delete(tenure)
    for (const tenure of come) known.add(tenure)
    for (const tenure of gone) reader.forget(tenure.bucket)
    for (const tenure of come) reader.rewind(tenure.bucket)
    return come.length > 0
  }

  let lastRescan = now()
  const rescanIfWanted = (current: ReadonlyArray<BucketLeases.Tenure>): boolean => {
    if (!rescanWanted && now() - lastRescan < rescanNanos) return false
    rescanWanted = false
    lastRescan = now()
    for (const { bucket } of current) reader.rewind(bucket)
    return true
  }

  const takeIn = (rows: ReadonlyArray<PolledEvent>, byBucket: ReadonlyMap<number, BucketLeases.Tenure>) =>
    Effect.gen(function* () {
      const { events, undecodable } = partition(rows)
      yield* Effect.forEach(undecodable, bury, { discard: true })
      if (settings.workerCount === 1) events.sort((a, b) => a.seq - b.seq)
      for (const event of events) {
        const tenure = byBucket.get(event.bucket)
        if (tenure !== undefined) accept(event, tenure)
      }
    })

  let lastHorizon = -1
  let unread = true

  /** Reads once; says when to read again. */
  const read: Effect.Effect<"now" | "soon" | "later", OutboxStoreError> = Effect.gen(function* () {
    const current = tenures().filter(valid)
    const reasons = [follow(current), reader.wakeDue(now()), rescanIfWanted(current)]
    if (reasons.includes(true)) unread = true
    const room = settings.maxInMemory - held.size
    if (current.length === 0 || room < settings.maxInMemory / 2 || reader.waitingCount() >= maxWaiting) return "later"
    const horizon = yield* reads.horizon
    if (!unread && horizon.seq === lastHorizon) return horizon.open ? "soon" : "later"
    const limit = limitFor(current.length)
    const { rows, cut } = yield* reads.read(reader.cursors(current.map((t) => t.bucket)), horizon.seq, limit)
    lastHorizon = horizon.seq
    if (rows.length > 0) metrics.recordOldestLagMs(Math.max(...rows.map((row) => row.ageMillis)))
    const taken = settings.workerCount === 1 ? globalOrder(rows, limit) : rows
    yield* takeIn(taken, new Map(current.map((t) => [t.bucket, t])))
    metrics.recordQueueDepths(0, held.size)
    const more = someFull(rows, limit)
    unread = more || cut
    return more ? "now" : cut || horizon.open ? "soon" : "later"
  })

  const readGuarded = Effect.suspend(() => {
    reading = true
    return Effect.ensuring(
      read,
      Effect.sync(() => {
        reading = false
        finishedDuringRead.clear()
      })
    )
  })

  const pause = Effect.suspend(() => {
    const due = reader.nextDue()
    const interval = Duration.toMillis(Duration.fromInputUnsafe(settings.interval))
    const untilDue = due === undefined ? interval : Number(due - now()) / 1e6
    return Effect.timeoutOption(signal.await, Math.max(1, Math.min(interval, Math.ceil(untilDue))))
  })

  /** Numbers are given out whose transactions still run: most end within milliseconds, so the waits begin short. */
  let soonMillis = 2
  const soon = Effect.suspend(() => {
    soonMillis = Math.min(200, soonMillis * 2)
    return Effect.sleep(soonMillis)
  })
  const after = (next: "now" | "soon" | "later"): Effect.Effect<unknown> => {
    if (next === "soon") return soon
    soonMillis = 2
    return next === "now" ? Effect.yieldNow : pause
  }
  const readLoop = Effect.forever(
    Effect.flatMap(readGuarded, after).pipe(
      Effect.catchCause((cause) =>
        Effect.andThen(Effect.logError("outbox: reading buckets failed", cause), Effect.sleep("1 second"))
      )
    )
  )

  /** Waits until nothing of these buckets is under way, but not for longer than a third of the lease. */
  const drain = (leaving: ReadonlyArray<BucketLeases.Tenure>) => {
    const leavingSet = new Set(leaving)
    for (const tenure of leaving) tenure.validUntilNanos = 0n
    const busy = () => [...held.values()].some((item) => leavingSet.has(item.tenure))
    const third =
      settings.leases === "none" ? 0 : Duration.toMillis(Duration.fromInputUnsafe(settings.leases.lease)) / 3
    return Effect.sleep("5 millis").pipe(Effect.repeat({ while: busy }), Effect.timeoutOption(third), Effect.asVoid)
  }

  const leaseLoop = (holder: BucketLeases.BucketLeases) =>
    Effect.forever(
      Effect.gen(function* () {
        const before = holder.held().length
        const waitMillis = yield* holder.round(drain)
        if (holder.held().length !== before) signal.raise()
        yield* Effect.sleep(waitMillis)
      }).pipe(
        Effect.catchCause((cause) =>
          Effect.andThen(Effect.logError("outbox: bucket leases failed", cause), Effect.sleep("500 millis"))
        )
      )
    )

  const scope = yield* Scope.fork(yield* Effect.scope)
  const workers = yield* Effect.forEach(Array.from({ length: settings.workerCount }), () =>
    Effect.forkIn(worker, scope)
  )
  const readFiber = yield* Effect.forkIn(readLoop, scope)
  const leasing = leases === undefined ? undefined : yield* Effect.forkIn(leaseLoop(leases), scope)

  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      yield* Fiber.interrupt(readFiber)
      closing = true
      lanes.wakeAll()
      const drained = Effect.andThen(Fiber.awaitAll(workers), finisher.flush)
      yield* Effect.timeoutOption(Effect.interruptible(drained), settings.drainTimeout)
      yield* Fiber.interruptAll(workers)
      yield* Effect.timeoutOption(Effect.interruptible(finisher.flush), "1 second")
      if (held.size > 0)
        yield* Effect.logWarning(`outbox: closed with ${held.size} events unfinished; they stay pending`)
      if (leasing !== undefined) yield* Fiber.interrupt(leasing)
      if (leases !== undefined) yield* Effect.ignore(leases.leave)
    })
  )

  return OrderedRelay.of({
    wake: signal.raise,
    rescan: () => {
      rescanWanted = true
      signal.raise()
    },
    heldBuckets: () => tenures().length,
    inFlight: () => held.size
  })
})

/** Whether some bucket has more rows than were asked for. */
const someFull = (rows: ReadonlyArray<PolledEvent>, limit: number): boolean => {
  const counts = new Map<number, number>()
  for (const { bucket } of rows) counts.set(bucket, (counts.get(bucket) ?? 0) + 1)
  return [...counts.values()].some((count) => count >= limit)
}

/** Rows that are in order over all buckets: none behind the last row of a bucket that may have more. */
const globalOrder = (rows: ReadonlyArray<PolledEvent>, limit: number): ReadonlyArray<PolledEvent> => {
  const perBucket = new Map<number, Array<number>>()
  for (const { bucket, seq } of rows) perBucket.set(bucket, [...(perBucket.get(bucket) ?? []), seq])
  const full = [...perBucket.values()].filter((seqs) => seqs.length >= limit)
  const upTo = Math.min(...full.map((seqs) => Math.max(...seqs)))
  return rows.filter((row) => row.seq <= upTo)
}

export const layer = (
  options?: OrderedRelayOptions
): Layer.Layer<
  OrderedRelay,
  InvalidOutboxConfig | OutboxStoreError,
  OutboxStore | ListenerRegistry | SqlClient.SqlClient
> => Layer.effect(OrderedRelay, make(options))
