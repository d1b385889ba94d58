/** The requests of a transactional producer. */
import type { Broker, ConsumerRecord } from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { type ClientFailure, fromThrown, Local } from "../../ClientFailure.ts"
import type { NodeClient } from "../../Transport.ts"
import type { Cluster } from "../connection/cluster.ts"
import type { ProducerIdentity } from "../protocol/apis.ts"
import { byTopic } from "../wire/byTopic.ts"
import { check, isCoordinatorFailure } from "../wire/failures.ts"
import { call } from "../wire/requests.ts"
import type { Identity } from "./partitionLog.ts"

export type TransactionalOptions = Broker.TransactionalProducerOptions

/** Whose offsets a transaction commits: those of a group, or of a member. */
export interface OffsetsOf {
  readonly groupId: string
  readonly generationId: number
  readonly memberId: string
  readonly groupInstanceId: string | null
}

/** The offsets of a group whose members are not known. */
const ofGroup = (groupId: string): OffsetsOf => ({ groupId, generationId: -1, memberId: "", groupInstanceId: null })

export const offsetsOf = (group: string | Broker.ConsumerGroupMetadata): OffsetsOf =>
  typeof group === "string" ? ofGroup(group) : { ...group, groupInstanceId: group.groupInstanceId ?? null }

/** Offsets to commit in a transaction. */
type Offsets = ReadonlyArray<ConsumerRecord.TopicPartition & { readonly offset: bigint; readonly metadata?: string }>

/** A partition and a group, of many, that the coordinator was asked to add to a transaction, whatever it answered. */
export interface Requested {
  readonly partition?: ConsumerRecord.TopicPartition
  readonly groupId?: string
}

/** The requests of one producer. Each is repeated while the coordinator is not ready, until the delivery timeout. */
export interface TransactionRequests {
  /** Must have succeeded before records are sent to the partitions. */
  readonly addPartitions: (
    partitions: ReadonlyArray<ConsumerRecord.TopicPartition>
  ) => Effect.Effect<void, ClientFailure>
  /** Fails with the refusal of the group where it does not know the member in this generation. */
  readonly sendOffsets: (member: OffsetsOf, offsets: Offsets) => Effect.Effect<void, ClientFailure>
  /** Gives the identity of the next transaction. */
  readonly end: (outcome: "commit" | "abort") => Effect.Effect<Identity, ClientFailure>
  /** A request that the coordinator accepts only from the owner of the transactional id, and that does no harm to an open transaction that is to be aborted. */
  readonly assertOwner: (requested: Requested) => Effect.Effect<void, ClientFailure>
}

/** The producer whose requests these are. */
export interface Requester {
  readonly cluster: Cluster
  readonly transactionalId: string
  /** The identity of the current transaction. */
  readonly identity: () => Identity
  /** The delivery timeout, in milliseconds. */
  readonly millis: number
}

/** The producer as its requests name it. */
const identityOf = ({ transactionalId, identity }: Requester): ProducerIdentity => {
  const { producerId, producerEpoch } = identity()
  return { transactionalId, producerId: String(producerId), producerEpoch }
}

/** Asks the coordinator of the transactional id. */
const askCoordinator = <A>(
  { cluster, transactionalId }: Requester,
  request: (coordinator: NodeClient) => Effect.Effect<A, ClientFailure>
) => cluster.askCoordinator("transaction", transactionalId, request)

/** Sends offsets to the coordinator of their group. */
const commitOffsets = Effect.fnUntraced(function* (
  requester: Requester,
  api: "TxnOffsetCommit" | "TxnOffsetCommitAdding",
  member: OffsetsOf,
  offsets: Offsets
) {
  const topics = byTopic(offsets, ({ partition, offset, metadata }) => ({
    partition,
    offset: String(offset),
    metadata: metadata ?? null
  }))
  const answer = yield* requester.cluster.askCoordinator("group", member.groupId, (coordinator) =>
    call(coordinator, api, { ...identityOf(requester), ...member, topics })
  )
  yield* check(...answer.topics.flatMap(({ partitions }) => partitions.map(({ errorCode }) => errorCode)))
})

const isTransient = ({ type }: ClientFailure): boolean =>
  isCoordinatorFailure(type) || type === Local.timeout || type === "REQUEST_TIMED_OUT"

/** Repeats transient failures every 50 ms, for at most `millis`. */
const retryTransient =
  (millis: number) =>
  <A, R>(effect: Effect.Effect<A, ClientFailure, R>): Effect.Effect<A, ClientFailure, R> =>
    Effect.flatMap(Clock.currentTimeMillis, (start) =>
      Effect.retry(effect, {
        schedule: Schedule.spaced("50 millis"),
        while: (failed) => Effect.map(Clock.currentTimeMillis, (now) => isTransient(failed) && now - start < millis)
      })
    )

/** The feature of transactions, and its version from which brokers add partitions and groups to a transaction themselves (KIP-890). */
const feature = { name: "transaction.version", implicitFrom: 2 }

const addsImplicitly = (coordinator: NodeClient): Effect.Effect<boolean, ClientFailure> =>
  Effect.map(
    Effect.tryPromise({ try: coordinator.features, catch: fromThrown }),
    (features) => (features.get(feature.name) ?? 0) >= feature.implicitFrom
  )

/** An epoch that has begun. */
interface Begun {
  readonly identity: Identity
  /** Whether brokers add partitions and groups to its transactions themselves. */
  readonly isImplicit: boolean
}

/** Starts a new epoch. It fences all older epochs and aborts the transaction that they left open. */
export const initProducerId = (
  cluster: Cluster,
  { transactionalId, transactionTimeout }: TransactionalOptions,
  millis: number
): Effect.Effect<Begun, ClientFailure> =>
  Effect.gen(function* () {
    const payload = { transactionalId, transactionTimeout: Duration.toMillis(transactionTimeout ?? "60 seconds") }
    const [isImplicit, answer] = yield* cluster.askCoordinator("transaction", transactionalId, (coordinator) =>
      Effect.all([addsImplicitly(coordinator), call(coordinator, "InitProducerId", payload)])
    )
    yield* check(answer.errorCode)
    return { identity: { producerId: BigInt(answer.producerId), producerEpoch: answer.producerEpoch }, isImplicit }
  }).pipe(retryTransient(millis))

/** Fences the producers of former ids. An id that this client may not use has no producer of this client either. */
export const fenceFormer = (
  cluster: Cluster,
  options: TransactionalOptions,
  millis: number
): Effect.Effect<void, ClientFailure> =>
  Effect.forEach(
    options.fences ?? [],
    (transactionalId) =>
      Effect.catchIf(
        initProducerId(cluster, { ...options, transactionalId }, millis),
        ({ type }) => type === "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        () => Effect.void
      ),
    { concurrency: "unbounded", discard: true }
  )

/** Code of partitions that were not tried because another one failed. */
const operationNotAttempted = 55

/** Transactions on brokers before 4.0: partitions and groups are added by requests of their own, and one epoch serves many transactions. */
export const explicitTransactions = (requester: Requester): TransactionRequests => {
  const repeated = retryTransient(requester.millis)
  const addGroup = Effect.fnUntraced(function* (groupId: string) {
    const answer = yield* askCoordinator(requester, (coordinator) =>
      call(coordinator, "AddOffsetsToTxn", { ...identityOf(requester), groupId })
    )
    yield* check(answer.errorCode)
  })
  const addPartitions: TransactionRequests["addPartitions"] = (partitions) =>
    Effect.gen(function* () {
      const topics = byTopic(partitions, ({ partition }) => partition)
      const answer = yield* askCoordinator(requester, (coordinator) =>
        call(coordinator, "AddPartitionsToTxn", { ...identityOf(requester), topics })
      )
      const codes = answer.errors.flatMap(({ partitionErrors }) => partitionErrors.map(({ errorCode }) => errorCode))
      yield* check(...codes.filter((code) => code !== operationNotAttempted))
    }).pipe(repeated)
  return {
    addPartitions,
    sendOffsets: (member, offsets) =>
      repeated(Effect.andThen(addGroup(member.groupId), commitOffsets(requester, "TxnOffsetCommit", member, offsets))),
    end: (outcome) =>
      Effect.gen(function* () {
        const transactionResult = outcome === "commit"
        const answer = yield* askCoordinator(requester, (coordinator) =>
          call(coordinator, "EndTxn", { ...identityOf(requester), transactionResult })
        )
        yield* check(answer.errorCode)
        return requester.identity()
      }).pipe(repeated),
    assertOwner: ({ partition, groupId }) => {
      if (partition !== undefined) return addPartitions([partition])
      return groupId === undefined ? Effect.void : repeated(addGroup(groupId))
    }
  }
}

/**
 * Transactions that brokers add partitions and groups to themselves (KIP-890, Kafka 4.0). Each has an epoch of its own, so a late request of a former one is refused.
 */
export const implicitTransactions = (requester: Requester): TransactionRequests => {
  const repeated = retryTransient(requester.millis)
  const end: TransactionRequests["end"] = (outcome) =>
    Effect.gen(function* () {
      const transactionResult = outcome === "commit"
      const answer = yield* askCoordinator(requester, (coordinator) =>
        call(coordinator, "EndTxnBumping", { ...identityOf(requester), transactionResult })
      )
      yield* check(answer.errorCode)
      return { producerId: BigInt(answer.producerId), producerEpoch: answer.producerEpoch }
    }).pipe(repeated)
  return {
    addPartitions: () => Effect.void,
    sendOffsets: (member, offsets) => repeated(commitOffsets(requester, "TxnOffsetCommitAdding", member, offsets)),
    end,
    assertOwner: () => Effect.asVoid(end("abort"))
  }
}
