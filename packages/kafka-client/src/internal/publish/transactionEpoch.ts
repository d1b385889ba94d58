/**
 * The epochs of one transactional producer. After a failure whose outcome is uncertain it takes a new epoch: that aborts the open transaction, and keeps
 * out late requests of the old epoch. Where the brokers can, the end of each transaction begins a new epoch, too (`implicitTransactions`).
 */
import { type BrokerError, ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { BrokerErrors, Subject } from "../connection/brokerErrors.ts"
import type { Cluster } from "../connection/cluster.ts"
import { isFenced } from "../wire/failures.ts"
import type { Identity } from "./partitionLog.ts"
import type { ProducerLimits } from "./producer.ts"
import { makeSender, type Sender } from "./sender.ts"
import {
  explicitTransactions,
  implicitTransactions,
  initProducerId,
  type Requested,
  type Requester,
  type TransactionalOptions,
  type TransactionRequests
} from "./transactionRequests.ts"

/** An epoch that was asked for, or one that the end of its last transaction began, and the contents of its current transaction. */
export interface Epoch {
  /** Whose the current transaction is. */
  identity: Identity
  readonly requests: TransactionRequests
  readonly sender: Sender
  readonly scope: Scope.Closeable
  /** Keys of the partitions that records of the current transaction may be sent to. */
  readonly added: Set<string>
  requested: Requested
  /** Whether a record was written in the current transaction. */
  hasWritten: boolean
}

/** The state of one transactional producer. */
export interface Epochs {
  readonly cluster: Cluster
  readonly errors: BrokerErrors
  readonly options: TransactionalOptions
  readonly limits: ProducerLimits
  readonly parent: Scope.Scope
  readonly subject: Subject
  /** undefined when the next transaction needs a new epoch. */
  current: Epoch | undefined
  /** Set once another producer owns the id. */
  fenced: BrokerError.ProducerFenced | undefined
}

/** Starts a new epoch. */
export const begin = Effect.fnUntraced(function* ({ cluster, errors, options, limits, parent }: Epochs) {
  const { transactionalId } = options
  const { identity, isImplicit } = yield* initProducerId(cluster, options, limits.deliveryTimeoutMillis)
  const scope = yield* Scope.fork(parent)
  const added = new Set<string>()
  const millis = limits.deliveryTimeoutMillis
  const requester: Requester = { cluster, transactionalId, identity: () => epoch.identity, millis }
  const requests = isImplicit ? implicitTransactions(requester) : explicitTransactions(requester)
  const beforeSend = Effect.fnUntraced(function* (partitions: ReadonlyArray<ConsumerRecord.TopicPartition>) {
    const fresh = partitions.filter(({ topic, partition }) => !added.has(ConsumerRecord.partitionKey(topic, partition)))
    const [partition] = fresh
    if (partition === undefined) return
    epoch.requested = { ...epoch.requested, partition }
    yield* requests.addPartitions(fresh)
    for (const { topic, partition } of fresh) added.add(ConsumerRecord.partitionKey(topic, partition))
  })
  const sender = yield* makeSender(
    cluster,
    {
      ...limits,
      kind: "transactional",
      acks: -1,
      transactionalId,
      beforeSend,
      produceApi: isImplicit ? "ProduceAdding" : "Produce",
      newIdentity: Effect.sync(() => epoch.identity),
      onWritten: () => {
        epoch.hasWritten = true
      }
    },
    errors,
    scope
  )
  const epoch: Epoch = { identity, requests, sender, scope, added, requested: {}, hasWritten: false }
  return epoch
})

/** Remembers that another producer owns the id. */
export const noteIfFenced = (epochs: Epochs, error: BrokerError.BrokerError): void => {
  if (error._tag === "ProducerFenced") epochs.fenced = error
}

const noteFencing = <A, R>(epochs: Epochs, effect: Effect.Effect<A, BrokerError.BrokerError, R>) =>
  Effect.tapError(effect, (error) => Effect.sync(() => noteIfFenced(epochs, error)))

/** The current epoch, or a new one. Fails when another producer owns the id. */
export const currentOrNew = (epochs: Epochs): Effect.Effect<Epoch, BrokerError.BrokerError> =>
  Effect.suspend(() => {
    if (epochs.fenced !== undefined) return Effect.fail(epochs.fenced)
    return epochs.current === undefined
      ? noteFencing(epochs, epochs.errors.map(begin(epochs), epochs.subject))
      : Effect.succeed(epochs.current)
  })

/** Ends the current transaction, if the coordinator may know of one. */
export const end = Effect.fnUntraced(function* (
  { errors, subject }: Epochs,
  epoch: Epoch,
  outcome: "commit" | "abort"
): Effect.fn.Return<void, BrokerError.BrokerError> {
  const { requested, requests } = epoch
  if (epoch.added.size > 0 || requested.groupId !== undefined) {
    // A coordinator that was told of no partition and no group has nothing to commit, and refuses to.
    const isEmpty = !epoch.hasWritten && requested.groupId === undefined
    const ended = requests.end(isEmpty ? "abort" : outcome)
    epoch.identity = yield* errors.map(ended, { ...subject, operation: `${outcome} a transaction of` })
  }
  epoch.added.clear()
  epoch.requested = {}
  epoch.hasWritten = false
})

/** Fails when another producer owns the id, as far as is known. */
const assertNotFenced = ({ requested, requests }: Epoch): Effect.Effect<void, ClientFailure> =>
  Effect.catchIf(
    requests.assertOwner(requested),
    ({ type }) => !isFenced(type),
    () => Effect.void
  )

/** Longest time that aborting delays the caller. After it, the next transaction or the transaction timeout aborts the open one. */
const abortTimeout = "10 seconds"

/**
 * Aborts the open transaction by taking a new epoch. Takes none when another producer owns the id, which the new epoch would fence: a producer that has
 * lost its partition aborts, and is told nothing. The next transaction meets and reports a failure of this.
 */
const renew = (epochs: Epochs, epoch: Epoch) =>
  Effect.gen(function* () {
    if (epochs.current === epoch) epochs.current = undefined
    yield* Scope.close(epoch.scope, Exit.void)
    const isStarted = epoch.requested.partition !== undefined || epoch.requested.groupId !== undefined
    if (epochs.fenced !== undefined || !isStarted) return
    const started = epochs.errors.map(Effect.andThen(assertNotFenced(epoch), begin(epochs)), epochs.subject)
    const next = yield* noteFencing(epochs, started).pipe(
      Effect.interruptible,
      Effect.timeout(abortTimeout),
      Effect.option
    )
    if (next._tag === "Some") epochs.current = next.value
  })

/**
 * Aborts the current transaction. When every request was answered (`certain` succeeds), the coordinator is told to, which only the owner of the id can do,
 * and the epoch stays. Otherwise a new epoch is taken.
 */
export const abort = (epochs: Epochs, epoch: Epoch, certain: Effect.Effect<void, BrokerError.BrokerError>) =>
  certain.pipe(
    Effect.andThen(epoch.sender.drained),
    Effect.andThen(certain),
    Effect.andThen(noteFencing(epochs, end(epochs, epoch, "abort"))),
    Effect.interruptible,
    Effect.timeout(abortTimeout),
    Effect.catch(() => renew(epochs, epoch))
  )
