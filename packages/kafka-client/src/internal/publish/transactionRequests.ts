/** The requests of a transactional producer. */
import type { Broker, ConsumerRecord } from "@eventbus/core"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { type ClientFailure, Local } from "../../ClientFailure.ts"
import type { NodeClient } from "../../Transport.ts"
import type { Cluster } from "../connection/cluster.ts"
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

/** The requests of one epoch. Each is repeated while the coordinator is not ready, until the delivery timeout. */
export interface TransactionRequests {
  readonly addPartitions: (
    partitions: ReadonlyArray<ConsumerRecord.TopicPartition>
  ) => Effect.Effect<void, ClientFailure>
  readonly addOffsets: (groupId: string) => Effect.Effect<void, ClientFailure>
  /** Fails with the refusal of the group where it does not know the member in this generation. */
  readonly sendOffsets: (
    member: OffsetsOf,
    offsets: ReadonlyArray<ConsumerRecord.TopicPartition & { readonly offset: bigint; readonly metadata?: string }>
  ) => Effect.Effect<void, ClientFailure>
  readonly end: (outcome: "commit" | "abort") => Effect.Effect<void, ClientFailure>
}

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

/** Starts a new epoch. It fences all older epochs and aborts the transaction that they left open. */
export const initProducerId = (
  cluster: Cluster,
  { transactionalId, transactionTimeout }: TransactionalOptions,
  millis: number
): Effect.Effect<Identity, ClientFailure> =>
  Effect.gen(function* () {
    const answer = yield* cluster.askCoordinator("transaction", transactionalId, (coordinator) =>
      call(coordinator, "InitProducerId", {
        transactionalId,
        transactionTimeout: Duration.toMillis(transactionTimeout ?? "60 seconds")
      })
    )
    yield* check(answer.errorCode)
    return { producerId: BigInt(answer.producerId), producerEpoch: answer.producerEpoch }
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

export const transactionRequests = (
  cluster: Cluster,
  transactionalId: string,
  identity: Identity,
  millis: number
): TransactionRequests => {
  const producer = {
    transactionalId,
    producerId: String(identity.producerId),
    producerEpoch: identity.producerEpoch
  }
  const ask = <A>(request: (coordinator: NodeClient) => Effect.Effect<A, ClientFailure>) =>
    cluster.askCoordinator("transaction", transactionalId, request)
  const addOffsets = Effect.fnUntraced(function* (groupId: string) {
    const answer = yield* ask((coordinator) => call(coordinator, "AddOffsetsToTxn", { ...producer, groupId }))
    yield* check(answer.errorCode)
  })
  return {
    addPartitions: (partitions) =>
      Effect.gen(function* () {
        const topics = byTopic(partitions, ({ partition }) => partition)
        const answer = yield* ask((coordinator) => call(coordinator, "AddPartitionsToTxn", { ...producer, topics }))
        const codes = answer.errors.flatMap(({ partitionErrors }) => partitionErrors.map(({ errorCode }) => errorCode))
        yield* check(...codes.filter((code) => code !== operationNotAttempted))
      }).pipe(retryTransient(millis)),
    addOffsets: (groupId) => addOffsets(groupId).pipe(retryTransient(millis)),
    sendOffsets: (member, offsets) =>
      Effect.gen(function* () {
        const { groupId } = member
        yield* addOffsets(groupId)
        const topics = byTopic(offsets, ({ partition, offset, metadata }) => ({
          partition,
          offset: String(offset),
          metadata: metadata ?? null
        }))
        const answer = yield* cluster.askCoordinator("group", groupId, (coordinator) =>
          call(coordinator, "TxnOffsetCommit", { ...producer, ...member, topics })
        )
        yield* check(...answer.topics.flatMap(({ partitions }) => partitions.map(({ errorCode }) => errorCode)))
      }).pipe(retryTransient(millis)),
    end: (outcome) =>
      Effect.gen(function* () {
        const transactionResult = outcome === "commit"
        const answer = yield* ask((coordinator) => call(coordinator, "EndTxn", { ...producer, transactionResult }))
        yield* check(answer.errorCode)
      }).pipe(retryTransient(millis))
  }
}
