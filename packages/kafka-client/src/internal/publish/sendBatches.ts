/** One Produce request: prepares its batches, sends them, and acts on the answer to each. */
import * as Effect from "effect/Effect"
import { type ClientFailure, failure, fromThrown, Local } from "../../ClientFailure.ts"
import type { Apis } from "../protocol/apis.ts"
import { failureOfCode } from "../wire/failures.ts"
import { call } from "../wire/requests.ts"
import { compressBatches } from "./compressedBatches.ts"
import { outcomeOf } from "./produceOutcome.ts"
import { encodeProduce, type TakenBatch } from "./produceRequest.ts"
import type { SenderState } from "./senderState.ts"

type ProduceAnswer = Apis["Produce"]["response"]
type ProduceResult = ProduceAnswer["topics"][number]["partitions"][number]

const identityRetired = failure("INVALID_TXN_STATE", "it is not known what was written to the partition before")
const unanswered = failure(Local.connection, "the broker's answer leaves the partition out")

const failBatch = ({ log, batch }: TakenBatch, failed: ClientFailure, { options, errors }: SenderState): void =>
  log.failed(
    batch,
    errors.of(failed, {
      operation: "write to",
      topic: log.topic,
      partition: log.partition,
      bytes: batch.records[0]!.bytes,
      ...(options.transactionalId !== undefined && { transactionalId: options.transactionalId })
    })
  )

/** Gives a record whose time was refused another one, if the time was this node's (ruling 76). False when no time is left to try. */
const correctTime = ({ log, batch }: TakenBatch, { pending, warn }: SenderState): boolean => {
  const { record } = batch.records[0]!
  if (record.correctionMillis === "own") return false
  const now = Date.now()
  const next = pending.clock.refused(log.topic, record.correctionMillis, now)
  if (next === undefined) return false
  record.correctionMillis = next.millis
  record.timestamp = now + next.millis
  if (next.log !== undefined) warn(next.log)
  log.requeue(batch, "notWritten")
  return true
}

/** Acts on the failure of a batch. True when the leaders must be looked up again. */
const settleFailure = (
  taken: TakenBatch,
  failed: ClientFailure,
  sent: "sent" | "notSent",
  state: SenderState
): boolean => {
  const { log, batch } = taken
  switch (outcomeOf(failed.type, batch.records.length, state.options.kind)) {
    case "again":
      log.requeue(batch, "notWritten")
      return true
    case "unknown":
      log.requeue(batch, sent === "sent" ? "unknown" : "notWritten")
      return true
    case "renew":
      log.requeue(batch, "notWritten")
      log.retireIdentity()
      return false
    case "split":
      log.split(batch)
      return false
    case "fail":
      if (failed.type !== "INVALID_TIMESTAMP" || !correctTime(taken, state)) failBatch(taken, failed, state)
      return false
  }
}

/** Gives each partition a producer id, and adds the partitions to the transaction, if there is one. */
const prepare = Effect.fnUntraced(function* (batches: ReadonlyArray<TakenBatch>, state: SenderState) {
  const { options } = state
  const isTransactional = options.kind === "transactional"
  for (const { log } of batches) {
    if (log.identity !== undefined && !isTransactional) continue
    if (isTransactional || state.identity === undefined || state.identity === log.retiredIdentity) {
      state.identity = yield* options.newIdentity
    }
    // A transaction has only one id. Under a retired id the broker would take the batch for a duplicate.
    if (state.identity === log.retiredIdentity) return yield* Effect.fail(identityRetired)
    log.adoptIdentity(state.identity)
  }
  yield* options.beforeSend(batches.map(({ log: { topic, partition } }) => ({ topic, partition })))
})

const needsPreparation = (batches: ReadonlyArray<TakenBatch>, { options: { kind } }: SenderState): boolean =>
  kind === "transactional" || (kind === "idempotent" && batches.some(({ log }) => log.identity === undefined))

const produce = Effect.fnUntraced(function* (
  node: number,
  batches: ReadonlyArray<TakenBatch>,
  { cluster, options }: SenderState
) {
  const broker = yield* cluster.node(node)
  const { acks, transactionalId } = options
  // The broker gives up before this client does, so that its answer still arrives.
  const timeoutMillis = Math.ceil(options.requestTimeoutMillis / 2)
  const pending = compressBatches(batches.map(({ batch }) => batch))
  const compressed =
    pending === undefined ? undefined : yield* Effect.tryPromise({ try: () => pending, catch: fromThrown })
  return yield* call(broker, options.produceApi, (version) =>
    encodeProduce({ acks, timeoutMillis, transactionalId }, version, batches, compressed)
  )
})

/** The results of an answer by topic and partition. */
const resultsByPartition = ({ topics }: ProduceAnswer): ReadonlyMap<string, ReadonlyMap<number, ProduceResult>> => {
  const results = new Map<string, Map<number, ProduceResult>>()
  for (const { topicName, partitions } of topics) {
    const ofTopic = new Map<number, ProduceResult>()
    for (const result of partitions) ofTopic.set(result.partition, result)
    results.set(topicName, ofTopic)
  }
  return results
}

/** Sends prepared batches. True when the leaders must be looked up again. */
const request = Effect.fnUntraced(function* (node: number, batches: ReadonlyArray<TakenBatch>, state: SenderState) {
  const answer = yield* Effect.result(produce(node, batches, state))
  if (answer._tag === "Failure") {
    return batches.map((taken) => settleFailure(taken, answer.failure, "sent", state)).includes(true)
  }
  const results = resultsByPartition(answer.success)
  let stale = false
  for (const taken of batches) {
    const { log, batch } = taken
    const result = results.get(log.topic)?.get(log.partition)
    const failed = result === undefined ? unanswered : failureOfCode(result.errorCode)
    const isDuplicate = failed?.type === "DUPLICATE_SEQUENCE_NUMBER"
    if (failed === undefined || isDuplicate) {
      state.options.onWritten()
      log.acknowledged(batch, isDuplicate ? -1n : BigInt(result!.baseOffset))
    } else if (settleFailure(taken, failed, "sent", state)) stale = true
  }
  return stale
})

/** Sends batches that were taken from their logs. True when the leaders must be looked up again. */
export const sendBatches = Effect.fnUntraced(function* (
  node: number,
  batches: ReadonlyArray<TakenBatch>,
  state: SenderState
) {
  if (needsPreparation(batches, state)) {
    const prepared = yield* Effect.result(state.oneAtATime(prepare(batches, state)))
    if (prepared._tag === "Failure") {
      return batches.map((taken) => settleFailure(taken, prepared.failure, "notSent", state)).includes(true)
    }
  }
  return yield* request(node, batches, state)
})
