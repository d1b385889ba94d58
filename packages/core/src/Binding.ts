/**
 * A binding: which topics a group reads, and the handler that gets their records. Everything else is the connector's.
 *
 * `Binding.make` describes, `Binding.layer` runs: building the layer registers and starts the binding, closing its scope drains,
 * commits and leaves the group.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { BatchOptions, FailureOptions, Options, TransactionalOptions } from "./BindingOptions.ts"
import type * as Broker from "./Broker.ts"
import * as Clusters from "./Clusters.ts"
import type { CurrentTransaction } from "./CurrentTransaction.ts"
import * as EventBusConnector from "./EventBusConnector.ts"
import type {
  BindingAlreadyExists,
  ConfigurationIssue,
  ConfigurationValidation,
  ConnectorClosed,
  UnknownCluster
} from "./EventBusError.ts"
import { Hostname } from "./Hostname.ts"
import type { Options as IdempotencyOptions, IdempotencyStore } from "./IdempotencyStore.ts"
import * as ValidationAcrossBindings from "./internal/checks/validationAcrossBindings.ts"
import * as LettersOfTopics from "./internal/deadLetters/lettersOfTopics.ts"
import * as RunsOfTopics from "./internal/runs/runsOfTopics.ts"
import {
  type BindingDefinition,
  type Described,
  definePerBatch,
  definePerRecord,
  defineTransactional
} from "./internal/settings/bindingDefinition.ts"
import * as BindingKey from "./internal/settings/bindingKey.ts"
import type { DeadLetters } from "./Replay.ts"
import type { Runs } from "./ReplayRun.ts"

/** A description: nothing runs yet. `R` is what its handler requires. */
export interface Binding<out R> extends Described<R> {}

/** Describes a binding whose handler gets one record at a time. Settings are checked when it is registered, all at once. */
export function make<
  V = Uint8Array | null,
  E = never,
  R = never,
  K = Uint8Array | null,
  P = never,
  D = never,
  // The constraint gives the type to the function for `key`; where nothing is given, `I` is all of it.
  I extends IdempotencyOptions<K, V> | undefined = IdempotencyOptions<K, V> | undefined
>(
  name: string,
  options: Options<K, V, E, R> & FailureOptions<P, D> & IdempotencyOption<I>
): Binding<R | P | D | (undefined extends I ? never : IdempotencyStore)>
export function make<K, V, E, R, P, D>(
  name: string,
  options: Options<K, V, E, R> & FailureOptions<P, D> & IdempotencyOption<IdempotencyOptions<K, V> | undefined>
): Binding<R | P | D | IdempotencyStore> {
  return described(definePerRecord(name, options))
}

interface IdempotencyOption<I> {
  /**
   * Remembers which records were handled, in an `IdempotencyStore`, and skips those that are delivered again: `{}` takes its defaults. A handler of batches gets those
   * records of a batch that were not handled yet. Default: nothing is remembered.
   */
  readonly idempotency?: I & object
}

/** Describes a binding whose handler gets whole batches: up to `maxPollRecords` consecutive records of one partition. */
export function makeBatch<
  V = Uint8Array | null,
  E = never,
  R = never,
  K = Uint8Array | null,
  P = never,
  D = never,
  I extends IdempotencyOptions<K, V> | undefined = IdempotencyOptions<K, V> | undefined
>(
  name: string,
  options: BatchOptions<K, V, E, R> & FailureOptions<P, D> & IdempotencyOption<I>
): Binding<R | P | D | (undefined extends I ? never : IdempotencyStore)>
export function makeBatch<K, V, E, R, P, D>(
  name: string,
  options: BatchOptions<K, V, E, R> & FailureOptions<P, D> & IdempotencyOption<IdempotencyOptions<K, V> | undefined>
): Binding<R | P | D | IdempotencyStore> {
  return described(definePerBatch(name, options))
}

/**
 * Describes a binding that consumes, transforms and produces exactly once: what its handler publishes through `CurrentTransaction` becomes visible to
 * `read_committed` readers together with the offset of the record, or never. A failed attempt leaves nothing behind. Other effects of the handler
 * (a database, a call) are not part of the transaction and may be repeated.
 */
export const makeTransactional = <
  V = Uint8Array | null,
  E = never,
  R = never,
  K = Uint8Array | null,
  P = never,
  D = never
>(
  name: string,
  options: TransactionalOptions<K, V, E, R> & FailureOptions<P, D>
): Binding<Exclude<R, CurrentTransaction> | P | D> => described(defineTransactional(name, options))

/**
 * Gives a binding the services that its handler has in a rehearsal of dead letters (`DeadLetters.rehearse`), in place of its own ones. The layer provides everything that the
 * binding requires but an `IdempotencyStore`, which no rehearsal uses, and none of it should have an effect that lasts. A binding whose handler requires nothing, and may be
 * called at any time, takes `Layer.empty`. The layer is built anew for each rehearsal and released after it. Without a layer a rehearsal decodes records and calls no handler.
 */
export const rehearsable = <R, E, RI>(
  binding: Binding<R>,
  dryRun: Layer.Layer<NoInfer<Exclude<R, IdempotencyStore>>, E, RI>
): Binding<R | RI> => described<R | RI>({ ...binding.definition, dryRun })

/**
 * The commands of operators on the dead letters of a binding that this process need not run, as `EventBusConnector.deadLetters` has them for one that it runs. Nothing is
 * registered, and no group is joined. Fails when no cluster has the alias of the binding.
 */
export const deadLetters = <R>({
  definition
}: Binding<R>): Effect.Effect<DeadLetters, UnknownCluster, R | Broker.Broker> =>
  Effect.gen(function* () {
    const broker = yield* Clusters.get(definition.cluster)
    return LettersOfTopics.make(definition, broker, yield* Hostname, yield* Effect.context<R>()).all
  })

/**
 * The plans and runs of a binding that this process need not run, as `EventBusConnector.runs` has them for one that it runs. Nothing is registered, and no group is joined. The
 * circuit breaker of a binding that the process does not run is closed. Fails when no cluster has the alias of the binding.
 */
export const runs = <R>({ definition }: Binding<R>): Effect.Effect<Runs, UnknownCluster, Broker.Broker> =>
  Effect.gen(function* () {
    const broker = yield* Clusters.get(definition.cluster)
    return RunsOfTopics.make(definition as BindingDefinition<unknown>, broker, yield* Hostname, () => false)
  })

const described = <R>(definition: BindingDefinition<R>): Binding<R> => ({ name: definition.name, definition })

/**
 * The problems for which `register` would refuse these bindings, by index; empty without any. Clusters and topics are not asked. A conflict of two bindings,
 * such as a dead letter topic that both would write to, is reported at the later one.
 */
export const problems = (
  bindings: ReadonlyArray<Binding<unknown>>
): ReadonlyMap<number, ReadonlyArray<ConfigurationIssue>> =>
  ValidationAcrossBindings.problemsOf(bindings.map(({ definition }) => definition))

/**
 * Registers the binding with the connector and starts it (unless `autoStartup` is false); closing the layer's scope stops and removes it.
 * Bindings of one program share one connector, which the layer gives out for commands, states and events.
 */
export const layer = <R>(
  binding: Binding<R>
): Layer.Layer<
  EventBusConnector.EventBusConnector,
  BindingAlreadyExists | ConfigurationValidation | ConnectorClosed,
  R | Broker.Broker
> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const connector = yield* EventBusConnector.EventBusConnector
      yield* Effect.acquireRelease(connector.register(binding), () =>
        Effect.ignore(connector.destroy(BindingKey.of(binding.definition)))
      )
    })
  ).pipe(Layer.provideMerge(EventBusConnector.layer))
