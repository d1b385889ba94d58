/** Handles one partition's part of a fetch answer: hands records over, or finds out why there are none. */
import type { Broker } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { type ClientFailure, failure, Local } from "../../ClientFailure.ts"
import type { Cluster } from "../connection/cluster.ts"
import type { Ownership } from "../group/ownership.ts"
import { logBounds } from "../offsets/logOffsets.ts"
import type { FetchedPartition } from "../protocol/apis.ts"
import { failureOfCode } from "../wire/failures.ts"
import { FetchedRange, reportOf } from "./fetchedRange.ts"
import { type FetcherOptions, isCurrent, type RequestedPartition } from "./fetchRequest.ts"
import type { RangeEnds } from "./rangeEnds.ts"

/** Where the events of a session go. */
export interface FetchListener {
  /** Waits until the consumer has taken what it was given: it may pause partitions then. */
  readonly taken: Effect.Effect<void>
  readonly emit: (event: Broker.ConsumerEvent) => void
  /** Ends the session: a failure that neither time nor new metadata cures. */
  readonly failSession: (failed: ClientFailure, topic: string) => Effect.Effect<void>
  /** A topic was deleted. Positions in it mean nothing in a new topic of the same name. */
  readonly topicDeleted: (topic: string) => void
  /** A topic is not as it was: another node leads it, or its log does not have a position. It may have been made again. */
  readonly topicChanged: () => void
}

/** The parts of a fetcher that handling an answer needs. */
export interface AnswerContext {
  readonly cluster: Cluster
  readonly options: FetcherOptions
  readonly ownership: Ownership
  readonly listener: FetchListener
  readonly rangeEnds: RangeEnds
}

const fatal = new Set<string>([
  Local.authentication,
  Local.tls,
  Local.client,
  "TOPIC_AUTHORIZATION_FAILED",
  "GROUP_AUTHORIZATION_FAILED"
])

/** The answers of a leader that does not have the topic: not at all, or not with this id, because it was made again. */
const unknownTopic = new Set(["UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"])

/** True for failures that neither time nor new metadata cures. */
export const isFatal = (failed: ClientFailure): boolean => fatal.has(failed.type)

/** Reports that the position is outside of the log. A new leader may not know yet that the position is committed, so the log is looked up. */
const reportOutOfRange = Effect.fnUntraced(function* (context: AnswerContext, requested: RequestedPartition) {
  const { cluster, options, ownership, listener } = context
  const { owned, position } = requested
  const { topic, partition, generation } = owned
  const { logStart, logEnd } = yield* logBounds(cluster, owned, options.isolation)
  if (!isCurrent(ownership, requested) || (position >= logStart && position <= logEnd)) return
  owned.phase = "waiting"
  listener.emit({ _tag: "OutOfRange", generation, topic, partition, position, logStart, logEnd })
})

/** Hands over the next chunk of a range. The rest is kept until the partition's next turn. */
const deliver = async (
  { ownership, listener, rangeEnds }: AnswerContext,
  requested: RequestedPartition,
  range: FetchedRange
): Promise<void> => {
  const { owned, position } = requested
  const { records, nextOffset, bytes, unreadable } = await range.next()
  if (!isCurrent(ownership, requested)) return range.close()
  const { topic, partition, generation } = owned
  owned.idle = nextOffset === position
  owned.position = nextOffset
  if (!owned.idle) {
    const chunk = { topic, partition, generation, records, nextOffset, highWatermark: range.visibleEnd, bytes }
    listener.emit({ _tag: "Fetched", chunk })
  }
  if (unreadable !== undefined) {
    owned.phase = "waiting"
    listener.emit({ _tag: "Unreadable", generation, ...reportOf(unreadable, owned, nextOffset) })
  } else if (!range.isDone) rangeEnds.keep(owned, range)
}

const tryDeliver = (context: AnswerContext, requested: RequestedPartition, range: FetchedRange) =>
  Effect.tryPromise({
    try: () => deliver(context, requested, range),
    catch: (thrown) => failure(Local.client, String(thrown))
  })

/** Hands over the next chunk of what was fetched before. */
export const deliverEnd = (context: AnswerContext, requested: RequestedPartition): Effect.Effect<void, ClientFailure> =>
  Effect.suspend(() => {
    const end = context.rangeEnds.take(requested.owned)
    return end === undefined ? Effect.void : tryDeliver(context, requested, end)
  })

/** Handles one partition's answer. Succeeds with the failure that new metadata may cure, or with undefined; fails with a fatal one. */
export const handleAnswer = Effect.fnUntraced(function* (
  context: AnswerContext,
  requested: RequestedPartition,
  fetched: FetchedPartition
) {
  const failed = failureOfCode(fetched.errorCode)
  const { owned } = requested
  if (failed === undefined) {
    const { isolation, maxRecordBytes } = context.options
    const bounds = { chunkBytes: requested.maxBytes, maxRecordBytes }
    const range = new FetchedRange(fetched, requested.position, isolation, bounds)
    yield* tryDeliver(context, requested, range)
    owned.answered = true
    return undefined
  }
  if (unknownTopic.has(failed.type) && owned.answered) context.listener.topicDeleted(owned.topic)
  else context.listener.topicChanged()
  if (failed.type === "OFFSET_OUT_OF_RANGE") yield* reportOutOfRange(context, requested)
  else if (isFatal(failed)) return yield* Effect.fail(failed)
  return failed
})
