/**
 * The attempts of a run: one that only looks, and, once it has the lease, as many as it takes until no copy is refused any more.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TransactionalProducer } from "../../Broker.ts"
import { type BrokerError, ProducerFenced } from "../../BrokerError.ts"
import type { ProducerRecord } from "../../ConsumerRecord.ts"
import type { ReplayRunning, ReplayTakenOver } from "../../Replay.ts"
import * as DerivedNames from "../base/derivedNames.ts"
import * as Journal from "./replayJournal.ts"
import * as ReplayLease from "./replayLease.ts"
import { replayPartition } from "./replayPartition.ts"
import * as ReplayProgress from "./replayProgress.ts"
import * as Refusals from "./replayRefusals.ts"
import {
  CopyRefused,
  LeaseNeeded,
  type Options,
  type Planned,
  type Run,
  RunHalted,
  type RunState,
  type Selection
} from "./replayRun.ts"

/** A run that could not do what it should. */
export type RunError = BrokerError | ReplayRunning | ReplayTakenOver

/** A process that is killed in the middle of a transaction hides the journal that other services share with it for so long, and Kafka looks every ten seconds. */
const transactionTimeout = "15 seconds"

/** A run that has done nothing yet. */
export const newState = (): RunState => ({
  ...{ replayed: 0, passedOver: 0, unreadable: 0, refused: new Map<string, string>(), warned: new Set<string>() },
  ...{ foreign: new Map<string, number>(), countedTo: new Map<number, bigint>() },
  known: Refusals.nothingKnown()
})

const isCopyRefused = (failed: unknown): failed is CopyRefused => failed instanceof CopyRefused
export const isLeaseNeeded = (failed: unknown): failed is LeaseNeeded => failed instanceof LeaseNeeded
export const isHalted = (failed: unknown): failed is RunHalted => failed instanceof RunHalted

type AttemptError = RunError | CopyRefused | LeaseNeeded | RunHalted

/** Reads, and with a lease also publishes. Without one it fails at the first thing that there is to write. */
const attempt = Effect.fnUntraced(function* (
  options: Options,
  selection: Selection,
  state: RunState,
  lease?: ReplayLease.Lease
): Effect.fn.Return<void, AttemptError, Scope.Scope> {
  if (!(state.replayed < selection.count)) return
  // Before anything is read: nobody else moves the position from now on.
  const producer = lease === undefined ? undefined : yield* producerOf(options, lease)
  const admin = yield* options.broker.admin
  const progress = yield* ReplayProgress.load(options, admin)
  const run = { options, selection, state, progress, producer, admin, partitionCounts: new Map<string, number>() }
  const { planned } = selection
  if (planned === undefined || producer === undefined) yield* replayPartitions(run)
  else yield* replayPlanned(run, planned, producer)
}, Effect.scoped)

const replayPartitions = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, AttemptError> {
  const { selection, state, progress } = run
  const { partitions } = progress
  for (let index = 0; index < partitions.length && state.replayed < selection.count; index++) {
    yield* replayPartition(run, partitions[((selection.first ?? 0) + index) % partitions.length]!)
  }
})

/** The run of a plan notes its beginning and its end. Nobody but the holder of the transactional id can. */
const replayPlanned = Effect.fnUntraced(function* (run: Run, planned: Planned, producer: TransactionalProducer) {
  const write = Effect.fnUntraced(function* (entries: Effect.Success<Planned["begun"]>) {
    yield* producer.transaction((transaction) => transaction.sendAll(entries))
  })
  yield* write(yield* planned.begun)
  yield* planned.hasBegun
  const halted = yield* replayPartitions(run).pipe(
    Effect.as<RunHalted | undefined>(undefined),
    Effect.catchIf(isHalted, (ended) => Effect.succeed<RunHalted | undefined>(ended))
  )
  yield* write(yield* planned.over(halted))
  if (halted !== undefined) return yield* Effect.fail(halted)
})

/** Looks whether there is anything to publish; fails with `LeaseNeeded` when there is. */
export const look = (
  options: Options,
  selection: Selection,
  state: RunState
): Effect.Effect<void, RunError | LeaseNeeded | RunHalted> =>
  Effect.catchIf(attempt(options, selection, state), isCopyRefused, firstRefusal)

/** Takes the lease of topic and group for as long as `use` takes. One who is fenced meanwhile says who has taken over. */
export const withLease = Effect.fnUntraced(function* <A, E>(
  options: Options & Pick<ReplayLease.Options, "waitMillis">,
  state: Pick<RunState, "replayed">,
  use: (lease: ReplayLease.Lease) => Effect.Effect<A, E | RunError, Scope.Scope>
): Effect.fn.Return<A, E | RunError, Scope.Scope> {
  const admin = yield* options.broker.admin
  yield* Journal.ensure(admin, options.deadLetterTopic)
  const lease = yield* ReplayLease.acquire({ ...options, replayed: () => state.replayed })
  return yield* Effect.catchIf(use(lease), isFenced, () => Effect.flatMap(lease.takenOver, Effect.fail))
}, Effect.scoped)

const isFenced = (failed: unknown): failed is Extract<BrokerError, { readonly _tag: "ProducerFenced" }> =>
  failed instanceof ProducerFenced

/** Writes entries as the one who alone can publish: a process that worked before is fenced. */
export const write = Effect.fnUntraced(function* (
  options: Options,
  lease: ReplayLease.Lease,
  entries: ReadonlyArray<ProducerRecord>
): Effect.fn.Return<void, RunError, Scope.Scope> {
  const producer = yield* producerOf(options, lease)
  yield* producer.transaction((transaction) => transaction.sendAll(entries))
}, Effect.scoped)

/** Publishes until nothing is left. */
export const publish = (
  options: Options,
  selection: Selection,
  state: RunState,
  lease: ReplayLease.Lease
): Effect.Effect<void, RunError | RunHalted> => {
  const once = Effect.catchIf(attempt(options, selection, state, lease), isLeaseNeeded, Effect.die)
  const again: Effect.Effect<void, RunError | RunHalted> = Effect.catchIf(once, isCopyRefused, (failed) => {
    const error = Refusals.learn(state, failed, options.sourceTopic)
    // The transaction was aborted, and the producer may be fenced by now: start again with a new one.
    return error === undefined ? again : Effect.fail(error)
  })
  return again
}

const firstRefusal = ({ refusals }: CopyRefused) => Effect.fail(refusals[0]!.error)

/**
 * The producer of a run. Older versions know no leases, but one transactional id or both, and fence whoever has it when they begin: so a run has the first version's for one
 * release, and fences the other. Where it may not use that one, no process of the first version can replay, and the run has the newer id.
 */
const producerOf = Effect.fnUntraced(function* (
  { broker, groupId, deadLetterTopic }: Options,
  lease: ReplayLease.Lease
) {
  yield* lease.confirm
  const former = DerivedNames.formerReplayTransactionalId(groupId, deadLetterTopic)
  const newer = DerivedNames.replayTransactionalId(groupId, deadLetterTopic)
  const make = (transactionalId: string, fenced: string) =>
    broker.transactionalProducer({ transactionalId, transactionTimeout, fences: [fenced] })
  if (!DerivedNames.isFormerReplayIdUnique(groupId, deadLetterTopic)) return yield* make(newer, former)
  return yield* Effect.catchTag(make(former, newer), "AuthorizationFailed", () => make(newer, former))
})
