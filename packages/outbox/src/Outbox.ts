/**
 * The outbox as one layer, in four shapes, each with everything wired and closed in the right order (purge, poller, dispatcher):
 *
 * | | hot path | cold path | order |
 * |---|---|---|---|
 * | `singleNode` | yes | plain polling | none |
 * | `multiNode` | yes | claims | none |
 * | `ordered` | no | one relay with one worker, or `orderedNodes` with leases | insertion order per aggregate |
 * | `writerOnly` | no | none (change data capture, or a relay elsewhere) | |
 *
 * What they need is in their types: a `SqlClient`, and a `ListenerRegistry` where something is delivered here.
 */
import { hostname } from "node:os"
import { Clock, Context, type Duration, Effect, Layer } from "effect"
import type { SqlClient } from "effect/sql"
import * as DeadEvents from "./DeadEventManager.ts"
import * as DispatcherWriterHook from "./DispatcherWriterHook.ts"
import type { Input } from "./EventEnvelope.ts"
import type { EventInterceptor } from "./EventInterceptor.ts"
import type { TypeName } from "./EventType.ts"
import { checkOptions, text } from "./internal/base/options.ts"
import { ulid } from "./internal/base/ulid.ts"
import * as Wakeup from "./internal/dispatch/wakeup.ts"
import type { LeaseOptions } from "./internal/ordered/bucketLeases.ts"
import type { ListenerRegistry } from "./ListenerRegistry.ts"
import * as Ordered from "./OrderedRelay.ts"
import * as Dispatcher from "./OutboxDispatcher.ts"
import {
  type InvalidIdentifier,
  InvalidOutboxConfig,
  InvalidState,
  type OutboxStoreError,
  type SchemaMismatch
} from "./OutboxError.ts"
import * as Health from "./OutboxHealth.ts"
import * as Poller from "./OutboxPoller.ts"
import * as OutboxSchema from "./OutboxSchema.ts"
import * as Store from "./OutboxStore.ts"
import * as Writer from "./OutboxWriter.ts"
import * as Purge from "./PurgeScheduler.ts"
import * as TxContext from "./TxContext.ts"
import { combine, noop, type WriterHook } from "./WriterHook.ts"

/** Settings of all shapes that deliver. */
export interface CommonOptions extends Store.StoreOptions {
  readonly interceptors?: ReadonlyArray<EventInterceptor>
  /** Longest time between two polls. Default 5 seconds. */
  readonly interval?: Duration.Input
  readonly batchSize?: number
  /** Default 5 seconds. */
  readonly drainTimeout?: Duration.Input
  readonly listenerTimeout?: Duration.Input
  /** Purging of terminal rows, and its settings. Default: off. */
  readonly purge?: Purge.PurgeOptions
}

export interface SingleNodeOptions
  extends CommonOptions,
    Pick<
      Dispatcher.DispatcherOptions,
      "workerCount" | "hotQueueCapacity" | "coldQueueCapacity" | "maxAttempts" | "retryPolicy"
    > {
  readonly skipRecent?: Duration.Input
  /** Runs beside the hot path's own hook, before it. */
  readonly hook?: WriterHook
}

export interface MultiNodeOptions extends SingleNodeOptions {
  /** A claim is renewed while its event is handled, and may be taken over when it is older than `lockTimeout`. */
  readonly claimLocking: {
    readonly lockTimeout: Duration.Input
    /** At most 100 characters; a suffix makes it unique to this process. Default: the host's name. */
    readonly owner?: string
  }
}

/** One worker, one attempt, no hot path: those cannot be changed here. */
export interface OrderedOptions extends CommonOptions {}

export interface OrderedNodesOptions
  extends CommonOptions,
    Pick<
      Ordered.OrderedRelayOptions,
      "workerCount" | "maxAttempts" | "retryPolicy" | "afterFailure" | "maxInMemory" | "pipelining"
    > {
  readonly leases?: {
    /** How long a node's aggregates wait after it died. Default 20 seconds. */
    readonly lease?: Duration.Input
    readonly owner?: string
  }
}

export interface WriterOnlyOptions extends Store.StoreOptions {
  readonly purge?: Purge.PurgeOptions & {
    /** `terminal` removes DONE and DEAD rows; `age` removes whatever is old enough, for tables that nothing marks. Default `terminal`. */
    readonly by?: "terminal" | "age"
  }
}

type Provides =
  | Writer.OutboxWriter
  | Store.OutboxStore
  | TxContext.TxContext
  | DeadEvents.DeadEventManager
  | Health.OutboxHealth

type Failure = InvalidOutboxConfig | InvalidIdentifier | OutboxStoreError | SchemaMismatch

/** Writes one event in the caller's transaction. */
export const write = (event: Input): Effect.Effect<string | undefined, Writer.WriteError, Writer.OutboxWriter> =>
  Writer.OutboxWriter.use((writer) => writer.write(event))

/** Writes JSON text under an event type. */
export const writeJson = (eventType: TypeName, payloadJson: string) =>
  Writer.OutboxWriter.use((writer) => writer.write(eventType, payloadJson))

/** Writes events in order; all or none. */
export const writeAll = (
  events: ReadonlyArray<Input>
): Effect.Effect<ReadonlyArray<string>, Writer.WriteError, Writer.OutboxWriter> =>
  Writer.OutboxWriter.use((writer) => writer.writeAll(events))

/** Store, transactions, dead events and health: what every shape has. */
const foundation = (options: Store.StoreOptions, onReplayed: () => void) =>
  Layer.mergeAll(DeadEvents.layer({ onReplayed }), Health.layer()).pipe(
    Layer.provideMerge(Layer.mergeAll(Store.layer(options), TxContext.layer)),
    Layer.provideMerge(Layer.effectDiscard(OutboxSchema.verify(options)))
  )

const uniqueOwner = (owner: string | undefined) =>
  Effect.map(Clock.currentTimeMillis, (now) => `${owner ?? hostname().slice(0, 100)}/${ulid(now)}`)

const startPurge = (options: Purge.PurgeOptions | undefined, purger: (store: Store.Shape) => Purge.EventPurger) =>
  options === undefined
    ? Effect.void
    : Effect.gen(function* () {
        const scheduler = yield* Purge.make({ ...options, purger: purger(yield* Store.OutboxStore) })
        yield* Effect.orDie(scheduler.start)
      })

/** Dispatcher, poller and writer with the hot path between them. */
const dispatching = (options: SingleNodeOptions, claimLocking: Dispatcher.ClaimLocking | undefined) => {
  let wake = () => {}
  const claims = claimLocking === undefined ? {} : { claimLocking }
  const parts = Effect.gen(function* () {
    const store = yield* Store.OutboxStore
    let retryScheduled = () => {}
    const dispatcher = yield* Dispatcher.make({ ...options, ...claims, onRetryScheduled: () => retryScheduled() })
    const poller = yield* Poller.make({ ...options, ...claims, handler: Poller.toDispatcher(dispatcher) })
    wake = poller.wake
    retryScheduled = poller.retryScheduled
    yield* Effect.orDie(poller.start)
    yield* Wakeup.listen(poller.wake)
    const scope = yield* Effect.scope
    const giveBack = (eventIds: ReadonlyArray<string>) =>
      claimLocking === undefined
        ? Effect.sync(poller.wake)
        : Effect.asVoid(
            Effect.forkIn(
              Effect.ensuring(
                Effect.ignore(store.releaseClaims(claimLocking.owner, eventIds)),
                Effect.sync(poller.wake)
              ),
              scope
            )
          )
    const hot = yield* DispatcherWriterHook.make({ dispatcher, onDropped: giveBack })
    const writer = yield* Writer.make({
      hook: combine(options.hook ?? noop, hot),
      ...(claimLocking === undefined ? {} : { claimedBy: claimLocking.owner })
    })
    yield* startPurge(options.purge, Purge.terminal)
    return Context.make(Writer.OutboxWriter, writer)
  })
  return Layer.effectContext(parts).pipe(Layer.provideMerge(foundation(options, () => wake())))
}

/** Hot path and plain polling, for a table that only this process delivers from. */
export const singleNode = (
  options: SingleNodeOptions = {}
): Layer.Layer<Provides, Failure, SqlClient.SqlClient | ListenerRegistry> => dispatching(options, undefined)

/** Hot path and claims, for any number of processes. Rows are inserted as claimed by the writing process. */
export const multiNode = (
  options: MultiNodeOptions
): Layer.Layer<Provides, Failure | InvalidState, SqlClient.SqlClient | ListenerRegistry> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const claim = options.claimLocking as MultiNodeOptions["claimLocking"] | undefined
      if (claim === undefined) {
        return yield* new InvalidState({ component: "Outbox.multiNode", detail: "claimLocking is required" })
      }
      yield* checkOptions(
        "Outbox.multiNode",
        claim.owner === undefined ? [] : [text("claimLocking.owner", claim.owner, 100)]
      )
      return dispatching(options, { owner: yield* uniqueOwner(claim.owner), lockTimeout: claim.lockTimeout })
    })
  )

const relaying = (options: OrderedNodesOptions, leases: "none" | LeaseOptions, fixed: Ordered.OrderedRelayOptions) => {
  let rescan = () => {}
  const parts = Effect.gen(function* () {
    const relay = yield* Ordered.make({ ...options, ...fixed, leases })
    rescan = relay.rescan
    yield* Wakeup.listen(relay.wake)
    // No hot path: the hook only says that there is something to read.
    const here: WriterHook = { afterCommit: () => Effect.sync(relay.wake) }
    const writer = yield* Writer.make({ hook: combine(here, yield* Wakeup.hook) })
    yield* startPurge(options.purge, Purge.terminal)
    return Context.make(Writer.OutboxWriter, writer)
  })
  return Layer.effectContext(parts).pipe(Layer.provideMerge(foundation(options, () => rescan())))
}

const commonKeys = new Set(
  "table codec onDone interceptors interval batchSize drainTimeout listenerTimeout purge".split(" ")
)

/**
 * The seed's ordered mode: one relay, one worker, one attempt. A failed event is DEAD at once, its aggregate goes on, and an
 * operator replays it. For more workers, retries and nodes: `orderedNodes`.
 */
export const ordered = (
  options: OrderedOptions = {}
): Layer.Layer<Provides, Failure, SqlClient.SqlClient | ListenerRegistry> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const issues = Object.keys(options)
        .filter((key) => !commonKeys.has(key))
        .map((path) => ({ path, found: "a value", allowed: "nothing: fixed in this mode" }))
      if (issues.length > 0) return yield* new InvalidOutboxConfig({ component: "Outbox.ordered", issues })
      return relaying(options, "none", { workerCount: 1, maxAttempts: 1 })
    })
  )

/** Order per aggregate with many workers on many nodes; see `OrderedRelay`. */
export const orderedNodes = (
  options: OrderedNodesOptions = {}
): Layer.Layer<Provides, Failure, SqlClient.SqlClient | ListenerRegistry> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const given = options.leases
      yield* checkOptions(
        "Outbox.orderedNodes",
        given?.owner === undefined ? [] : [text("leases.owner", given.owner, 100)]
      )
      return relaying(options, { owner: yield* uniqueOwner(given?.owner), lease: given?.lease ?? "20 seconds" }, {})
    })
  )

/** Only writes, and wakes relays in other processes. */
export const writerOnly = (options: WriterOnlyOptions = {}): Layer.Layer<Provides, Failure, SqlClient.SqlClient> => {
  const parts = Effect.gen(function* () {
    const writer = yield* Writer.make({ hook: yield* Wakeup.hook })
    yield* startPurge(options.purge, options.purge?.by === "age" ? Purge.byAge : Purge.terminal)
    return Context.make(Writer.OutboxWriter, writer)
  })
  return Layer.effectContext(parts).pipe(Layer.provideMerge(foundation(options, () => {})))
}
