/**
 * Bindings of other processes, seen from outside: by what lies in Kafka alone. For tools of operators, such as `eventbus console`. Nothing here can start a binding, join a group,
 * handle or commit a record, or join a fleet.
 *
 * ```ts
 * import { Binding, Outside } from "@eventbus/core"
 * import { Effect } from "effect"
 *
 * const orders = Binding.make("orders", { topic: "orders", groupId: "billing", handler: () => Effect.void })
 *
 * export const lag = Effect.gen(function* () {
 *   const { view } = yield* (yield* Outside.make([orders])).get("orders")
 *   return view?.partitions.reduce((sum, partition) => sum + partition.lag, 0n)
 * }).pipe(Effect.scoped)
 * ```
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Binding } from "./Binding.ts"
import type { Broker } from "./Broker.ts"
import { RequestTimedOut } from "./BrokerError.ts"
import * as Clusters from "./Clusters.ts"
import type { BindingLookupError, EventBusConnector } from "./EventBusConnector.ts"
import type { UnknownCluster } from "./EventBusError.ts"
import type { Health } from "./Health.ts"
import { keepRunning } from "./internal/base/keepRunning.ts"
import * as HealthReport from "./internal/lifecycle/health.ts"
import * as Registry from "./internal/lifecycle/registry.ts"
import * as FleetHolds from "./internal/outside/fleetHolds.ts"
import * as OutsideContainer from "./internal/outside/outsideContainer.ts"
import type { OutsideBinding } from "./OutsideView.ts"
import * as Ranges from "./Ranges.ts"
import { LagPollInterval } from "./Snapshot.ts"

/** The bindings, by name or `{cluster}:{binding}`, and what can be done about them without running them. */
export interface Outside
  extends Pick<EventBusConnector["Service"], "snapshot" | "deadLetters" | "parked" | "runs" | "requests"> {
  /** Every binding as its cluster showed it last. Asks no broker. */
  readonly list: Effect.Effect<ReadonlyArray<OutsideBinding>>
  /** One binding as its cluster showed it last. Asks no broker. */
  readonly get: (name: string) => Effect.Effect<OutsideBinding, BindingLookupError>
  /** How the way to the clusters is. Says nothing about the processes that run the bindings. Asks no broker. */
  readonly health: Effect.Effect<Health>
}

/** Bindings of one cluster that are asked for at the same time. */
const bindingsAtOnce = 4

/** Longest time that a cluster may take to be connected. */
const connectMillis = 10_000

/**
 * Looks at once, and then every `LagPollInterval` until the scope closes. A cluster that does not answer is no failure: `OutsideBinding.failure` has it. Fails for an alias that
 * no cluster has. With `Fleet.layer` provided, `snapshot.fleetHolds` are the holds of the fleet. Of two bindings with one key, the later one counts.
 */
export const make = <R>(
  bindings: ReadonlyArray<Binding<R>>
): Effect.Effect<Outside, UnknownCluster, R | Broker | Scope.Scope> =>
  Effect.gen(function* () {
    const lagPollInterval = yield* LagPollInterval
    Ranges.check("Snapshot", { lagPollInterval }, Ranges.connector)
    const registry = Registry.make<{ readonly container: OutsideContainer.OutsideContainer }>()
    const holds = yield* FleetHolds.follow
    for (const { definition } of bindings) {
      const broker = yield* Clusters.get(definition.cluster)
      registry.add({ container: yield* OutsideContainer.make(definition, broker, holds) })
    }
    const containers = registry.list().map(({ container }) => container)
    const round = lookAtAll(containers)
    yield* round
    const rounds = Effect.forever(Effect.andThen(Effect.sleep(lagPollInterval), round))
    yield* Effect.forkScoped(keepRunning("look from outside", rounds))

    const list = Effect.forEach(containers, ({ seen }) => seen)
    return {
      list,
      get: (name) => Effect.flatMap(registry.find(name), ({ container }) => container.seen),
      snapshot: (name) => Effect.flatMap(registry.find(name), ({ container }) => container.snapshot),
      deadLetters: (name) => Effect.map(registry.find(name), ({ container }) => container.deadLetters),
      parked: (name) => Effect.flatMap(registry.find(name), ({ container }) => container.parked),
      runs: (name) => Effect.map(registry.find(name), ({ container }) => container.runs),
      requests: (name) => Effect.map(registry.find(name), ({ container }) => container.requests),
      health: Effect.map(list, healthOf)
    }
  })

const healthOf = (all: ReadonlyArray<OutsideBinding>): Health => {
  const reasons = HealthReport.unreachable(all.map(({ snapshot }) => snapshot))
  return { status: reasons.length > 0 ? "DOWN" : "UP", live: true, ready: reasons.length === 0, reasons }
}

/** With one connection to each cluster at a time. A cluster that is away holds up no other one. */
const lookAtAll = (all: ReadonlyArray<OutsideContainer.OutsideContainer>): Effect.Effect<void> =>
  Effect.forEach(
    Map.groupBy(all, ({ broker }) => broker),
    ([broker, own]) =>
      Effect.scoped(
        Effect.flatMap(connected(broker), (admin) =>
          Effect.forEach(own, ({ look }) => look(admin), { concurrency: bindingsAtOnce, discard: true })
        )
      ).pipe(Effect.catch((error) => Effect.forEach(own, ({ failed }) => failed(error), { discard: true }))),
    { concurrency: "unbounded", discard: true }
  )

const connected = ({ admin }: Broker["Service"]) =>
  Effect.timeoutOrElse(admin, {
    duration: connectMillis,
    orElse: () => Effect.fail(new RequestTimedOut({ operation: "connecting", millis: connectMillis }))
  })
