/**
 * The outbox as one layer, in five shapes (outbox seed §20). Each shape wires its parts and closes them in order: purge, poller, dispatcher.
 *
 * | | hot path | cold path | order |
 * |---|---|---|---|
 * | `singleNode` | yes | plain polling | none |
 * | `multiNode` | yes | claims | none |
 * | `ordered` | no | one relay with one worker | insertion order |
 * | `orderedNodes` | no | relays that share buckets by leases | insertion order per aggregate |
 * | `writerOnly` | no | none: change data capture, or a relay elsewhere | |
 *
 * The types of the layers say what they need: a `SqlClient`, and a `ListenerRegistry` where events are delivered in this process.
 */
import { hostname } from "node:os"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as SqlClient from "effect/sql/SqlClient"
import * as DeadEvents from "./DeadEventManager.ts"
import * as DispatcherWriterHook from "./DispatcherWriterHook.ts"
import type { Input } from "./EventEnvelope.ts"
import type { EventInterceptor } from "./EventInterceptor.ts"
import type { TypeName } from "./EventType.ts"
import { checkShape } from "./internal/base/options.ts"
import { releaseBounded } from "./internal/base/supervisor.ts"
import { ulid } from "./internal/base/ulid.ts"
import { makeDeliveryTools } from "./internal/delivery/deliveryTools.ts"
import { watchTable } from "./internal/delivery/tableWatch.ts"
import { listenForWakeups, notifyHook } from "./internal/delivery/wakeup.ts"
import type { ListenerRegistry } from "./ListenerRegistry.ts"
import * as Ordered from "./OrderedRelay.ts"
import * as Dispatcher from "./OutboxDispatcher.ts"
import {
  type InvalidIdentifier,
  type InvalidOutboxConfig,
  InvalidState,
  type OutboxStoreError,
  type SchemaMismatch
} from "./OutboxError.ts"
import * as OutboxHealth from "./OutboxHealth.ts"
import * as Poller from "./OutboxPoller.ts"
import * as OutboxSchema from "./OutboxSchema.ts"
import * as Store from "./OutboxStore.ts"
import * as Writer from "./OutboxWriter.ts"
import * as Purge from "./PurgeScheduler.ts"
import * as TxContext from "./TxContext.ts"
import { combine, noop, type WriterHook } from "./WriterHook.ts"

/** Settings of all shapes that deliver; `ordered` has no others (outbox seed §20). */
export interface CommonOptions extends Store.StoreOptions {
  /** Work around every delivery, in this order. Default: none. */
  readonly interceptors?: ReadonlyArray<EventInterceptor>
  /** Longest time between two reads of the table, above 0. Default 5 seconds. */
  readonly interval?: Duration.Input
  /** Rows of one read. Default 50 for the poller, 200 per bucket for an ordered relay. */
  readonly batchSize?: number
  /** How long closing waits for events in flight before it interrupts listeners. Above 0. Default 5 seconds. */
  readonly drainTimeout?: Duration.Input
  /** The longest time of a listener and of each hook of an interceptor; see `OutboxDispatcher.DispatcherOptions`. Default: no limit. */
  readonly listenerTimeout?: Duration.Input
  /** Purges terminal rows with these settings. Default: no purge. */
  readonly purge?: Purge.PurgeOptions
}

/** Settings of `singleNode`. */
export interface SingleNodeOptions
  extends CommonOptions,
    Pick<
      Dispatcher.DispatcherOptions,
      "workerCount" | "hotQueueCapacity" | "coldQueueCapacity" | "maxAttempts" | "retryPolicy"
    > {
  /** Events younger than this are left to the hot path. Default 0: the poller takes all. */
  readonly skipRecent?: Duration.Input
  /** The user's own hook. It runs before that of the hot path. Default: none. */
  readonly hook?: WriterHook
}

/** Settings of `multiNode`. */
export interface MultiNodeOptions extends SingleNodeOptions {
  /** How nodes share rows. Required (outbox seed §20). Claims of events in flight are renewed at a third of `lockTimeout`. */
  readonly claimLocking: {
    /** After this long without renewal, another node may take the row. Above 0. */
    readonly lockTimeout: Duration.Input
    /** The node's name, 1 to 100 characters, of which the tables show 93. A suffix makes it unique to this process. Default: the host's name. */
    readonly owner?: string
  }
}

/** Settings of `orderedNodes`; see `OrderedRelay.OrderedRelayOptions`. */
export interface OrderedNodesOptions
  extends CommonOptions,
    Pick<
      Ordered.OrderedRelayOptions,
      "workerCount" | "maxAttempts" | "retryPolicy" | "afterFailure" | "maxInMemory" | "pipelining"
    > {
  /** How nodes share the buckets. */
  readonly leases?: {
    /** How long a node's aggregates wait after the node died. Above 0. Default 20 seconds. */
    readonly lease?: Duration.Input
    /** The node's name, 1 to 100 characters, of which the tables show 93. A suffix makes it unique to this process. Default: the host's name. */
    readonly owner?: string
  }
}

/** Settings of `writerOnly`. */
export interface WriterOnlyOptions extends Store.StoreOptions {
  /** Purges rows with these settings. Default: no purge. */
  readonly purge?: Purge.PurgeOptions & {
    /** `terminal` removes DONE and DEAD rows. `age` removes whatever is old enough, for tables that nothing marks. Default `terminal`. */
    readonly by?: "terminal" | "age"
  }
}

type Provides =
  | Writer.OutboxWriter
  | Store.OutboxStore
  | TxContext.TxContext
  | DeadEvents.DeadEventManager
  | OutboxHealth.OutboxHealth

type Failure = InvalidOutboxConfig | InvalidIdentifier | OutboxStoreError | SchemaMismatch

/** Writes one event in the caller's transaction. Returns its id, or undefined when a hook suppressed the write. */
export const write = (event: Input): Effect.Effect<string | undefined, Writer.WriteError, Writer.OutboxWriter> =>
  Writer.OutboxWriter.use((writer) => writer.write(event))

/** Writes JSON text under an event type, in the caller's transaction. Returns the event's id, or undefined when suppressed. */
export const writeJson = (
  eventType: TypeName,
  payloadJson: string
): Effect.Effect<string | undefined, Writer.WriteError, Writer.OutboxWriter> =>
  Writer.OutboxWriter.use((writer) => writer.write(eventType, payloadJson))

/** Writes events in order, all or none, in the caller's transaction. Returns their ids; none when a hook suppressed the write. */
export const writeAll = (
  events: ReadonlyArray<Input>
): Effect.Effect<ReadonlyArray<string>, Writer.WriteError, Writer.OutboxWriter> =>
  Writer.OutboxWriter.use((writer) => writer.writeAll(events))

/** The services of every shape: store, transactions, dead events and health. */
const baseServices = (options: Store.StoreOptions, onReplayed: () => void) =>
  Layer.mergeAll(DeadEvents.layer({ onReplayed }), OutboxHealth.layer()).pipe(
    Layer.provideMerge(Layer.mergeAll(Store.layer(options), TxContext.layer)),
    Layer.provideMerge(Layer.effectDiscard(OutboxSchema.verify(options)))
  )

/** The tables have room for so many characters of the name, beside what makes it unique. */
const longestShown = 93

const uniqueOwner = (owner: string = hostname()) =>
  Effect.map(Clock.currentTimeMillis, (now) => `${owner.slice(0, longestShown).toWellFormed()}/${ulid(now)}`)

const startPurge = (
  options: Purge.PurgeOptions | undefined,
  purger: (store: Store.OutboxStore["Service"]) => Purge.EventPurger
) =>
  options === undefined
    ? Effect.void
    : Effect.gen(function* () {
        const scheduler = yield* Purge.make({ ...options, purger: purger(yield* Store.OutboxStore) })
        yield* Effect.orDie(scheduler.start)
      })

/** The effect that leaves dropped events to the poller. With claims, it first releases them, in the background. */
const leaveToPoller = (poller: Poller.OutboxPoller["Service"], claimLocking: Dispatcher.ClaimLocking | undefined) =>
  Effect.gen(function* () {
    const store = yield* Store.OutboxStore
    const scope = yield* Effect.scope
    const wake = Effect.sync(poller.wake)
    return (eventIds: ReadonlyArray<string>): Effect.Effect<void> =>
      claimLocking === undefined
        ? wake
        : Effect.asVoid(
            Effect.forkIn(
              Effect.ensuring(
                releaseBounded("release of claims", () => store.releaseClaims(claimLocking.owner, eventIds)),
                wake
              ),
              scope
            )
          )
  })

/** Dispatcher, poller and writer, with the hot path between them. */
const dispatching = (options: SingleNodeOptions, claimLocking: Dispatcher.ClaimLocking | undefined) => {
  let wake = () => {}
  const claims = claimLocking === undefined ? {} : { claimLocking }
  const parts = Effect.gen(function* () {
    let retryScheduled = () => {}
    const dispatcher = yield* Dispatcher.make({ ...options, ...claims, onRetryScheduled: () => retryScheduled() })
    const poller = yield* Poller.make({ ...options, ...claims, handler: Poller.toDispatcher(dispatcher) })
    wake = poller.wake
    retryScheduled = poller.retryScheduled
    yield* Effect.orDie(poller.start)
    yield* listenForWakeups(poller.wake)
    const onDropped = yield* leaveToPoller(poller, claimLocking)
    const hotPath = yield* DispatcherWriterHook.make({ dispatcher, onDropped })
    const writer = yield* Writer.make({
      hook: combine(hotPath, options.hook ?? noop),
      ...(claimLocking === undefined ? {} : { claimedBy: claimLocking.owner })
    })
    yield* startPurge(options.purge, Purge.terminal)
    return Context.make(Writer.OutboxWriter, writer)
  })
  return Layer.effectContext(parts).pipe(Layer.provideMerge(baseServices(options, () => wake())))
}

/**
 * Hot path and plain polling, for a table that only this process delivers from. Fails when settings are wrong, or the table is missing,
 * lacks a column, or cannot be read.
 */
export const singleNode = (
  options: SingleNodeOptions = {}
): Layer.Layer<Provides, Failure, SqlClient.SqlClient | ListenerRegistry> =>
  Layer.unwrap(Effect.map(checkShape("singleNode", options), () => dispatching(options, undefined)))

/**
 * Hot path and claims, for any number of processes. Rows are inserted as claimed by the writing process (ruling 65). Fails as
 * `singleNode` does, and with `InvalidState` without `claimLocking`.
 */
export const multiNode = (
  options: MultiNodeOptions
): Layer.Layer<Provides, Failure | InvalidState, SqlClient.SqlClient | ListenerRegistry> =>
  Layer.unwrap(
    Effect.gen(function* () {
      yield* checkShape("multiNode", options)
      const claim = options.claimLocking as MultiNodeOptions["claimLocking"] | undefined
      if (claim === undefined) {
        return yield* new InvalidState({ component: "Outbox.multiNode", detail: "claimLocking is required" })
      }
      return dispatching(options, { owner: yield* uniqueOwner(claim.owner), lockTimeout: claim.lockTimeout })
    })
  )

/** An ordered relay and a writer that wakes it. */
const relaying = (
  options: OrderedNodesOptions,
  leases: "none" | Ordered.LeaseOptions,
  fixed: Ordered.OrderedRelayOptions
) => {
  let rescan = () => {}
  const parts = Effect.gen(function* () {
    const relay = yield* Ordered.make({ ...options, ...fixed, leases })
    rescan = relay.rescan
    yield* listenForWakeups(relay.wake)
    // There is no hot path: the hook only tells the relay to read.
    const wakeRelay: WriterHook = { afterCommit: () => Effect.sync(relay.wake) }
    const writer = yield* Writer.make({ hook: combine(wakeRelay, yield* notifyHook) })
    yield* startPurge(options.purge, Purge.terminal)
    return Context.make(Writer.OutboxWriter, writer)
  })
  return Layer.effectContext(parts).pipe(Layer.provideMerge(baseServices(options, () => rescan())))
}

/**
 * The seed's ordered mode (outbox seed §19): one relay, one worker, one attempt. A failed event is DEAD at once, its aggregate goes on, and an
 * operator replays it. `orderedNodes` has more workers, retries and nodes. Any other setting fails with `InvalidOutboxConfig`.
 */
export const ordered = (
  options: CommonOptions = {}
): Layer.Layer<Provides, Failure, SqlClient.SqlClient | ListenerRegistry> =>
  Layer.unwrap(
    Effect.map(checkShape("ordered", options), () => relaying(options, "none", { workerCount: 1, maxAttempts: 1 }))
  )

/** Order per aggregate, with many workers on many nodes. Fails as `singleNode` does. See `OrderedRelay`. */
export const orderedNodes = (
  options: OrderedNodesOptions = {}
): Layer.Layer<Provides, Failure, SqlClient.SqlClient | ListenerRegistry> =>
  Layer.unwrap(
    Effect.gen(function* () {
      yield* checkShape("orderedNodes", options)
      const given = options.leases
      return relaying(options, { owner: yield* uniqueOwner(given?.owner), lease: given?.lease ?? "20 seconds" }, {})
    })
  )

const writing = (options: WriterOnlyOptions) => {
  const parts = Effect.gen(function* () {
    const writer = yield* Writer.make({ hook: yield* notifyHook })
    const store = yield* Store.OutboxStore
    yield* watchTable(store, yield* makeDeliveryTools(store))
    yield* startPurge(options.purge, options.purge?.by === "age" ? Purge.byAge : Purge.terminal)
    return Context.make(Writer.OutboxWriter, writer)
  })
  return Layer.effectContext(parts).pipe(Layer.provideMerge(baseServices(options, () => {})))
}

/** Only writes, and wakes relays in other processes. Fails as `singleNode` does. */
export const writerOnly = (options: WriterOnlyOptions = {}): Layer.Layer<Provides, Failure, SqlClient.SqlClient> =>
  Layer.unwrap(Effect.map(checkShape("writerOnly", options), () => writing(options)))
