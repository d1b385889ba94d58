/**
 * Tells how many records went with a topic that was deleted, or deleted and made again, while they waited in it: those between the position and the last known end of
 * the log. A retry topic holds records that nobody else has.
 *
 * The known end may come from the lag poller, which asks by name and so may have asked the new topic. It counts only where the new topic has fewer records than that.
 * Elsewhere the count goes as far as the fetches knew the log: a lower bound.
 *
 * A session says that it has lost a partition, or has to give it up, and not why. So the topic's id in the next assignment tells, or a look at the topic's logs.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { AssignedPartition, Broker, ConsumerSession } from "../../Broker.ts"
import { partitionKey, type TopicPartition } from "../../ConsumerRecord.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import { type ConsumerContext, report } from "../delivery/consumerContext.ts"
import * as CommitMetadata from "../partition/commitMetadata.ts"
import type { Partition } from "../partition/partition.ts"
import * as Sources from "../settings/sources.ts"

export interface DeletedTopics {
  /** The consumer has lost these partitions. */
  readonly lost: (partitions: ReadonlyArray<Partition>) => Effect.Effect<void>
  /** The consumer has just given these partitions up in a rebalance. */
  readonly revoked: (partitions: ReadonlyArray<Partition>) => Effect.Effect<void>
  readonly assigned: (partitions: ReadonlyArray<AssignedPartition>) => Effect.Effect<void>
}

/** The consumer whose partitions are looked at. */
interface Consumer {
  readonly context: ConsumerContext<unknown>
  readonly broker: Broker["Service"]
  readonly session: Pick<ConsumerSession, "clusterId">
}

/** A partition with records that waited when the consumer gave it up. */
interface Left extends TopicPartition {
  readonly generation: number
  /** With the id of the topic, where the cluster gives one. */
  readonly metadata: string
  readonly position: bigint
  /** As the lag poller knows it, which may be the end of the new topic. */
  readonly known: Extent
  /** As the fetches know it. */
  readonly fetched: Extent
}

interface Extent {
  readonly end: bigint
  /** From the position to the end. */
  readonly records: bigint
}

/** Brokers know of a deletion within a second, as a rule. */
const firstLookMillis = 1_000

/** From the first look to the last one. A new leader knows the end of its log again by then. */
const lastLookMillis = 9_000

/** Longest time that the cluster may take to answer a look. */
const answerMillis = 10_000

/** The looks end with the scope. */
export const make = ({ context, broker, session }: Consumer, scope: Scope.Scope): DeletedTopics => {
  const left = new Map<string, Left>()
  const isOpen = (each: Left) => left.get(keyOf(each)) === each
  /** `newEnd`: the end of the log that has the name now, 0 where none has it; undefined when the topic is the same. */
  const settle = (each: Left, newEnd: bigint | undefined) => {
    if (!isOpen(each)) return
    left.delete(keyOf(each))
    if (newEnd === undefined) return
    const { position: from, known, fetched } = each
    const isLowerBound = known.end > fetched.end && known.end <= newEnd
    const { end: to, records } = isLowerBound ? fetched : known
    const gone = isLowerBound && records === 0n ? undefined : records
    report(context, each, { _tag: "RecordsGone", from, to, gone, isLowerBound, cause: "topic-deleted" })
  }

  const look = Effect.fnUntraced(function* (given: ReadonlyArray<Left>, isLast: boolean) {
    const open = given.filter(isOpen)
    if (open.length === 0) return
    const admin = yield* broker.admin
    for (const [topic, partitions] of Map.groupBy(open, (each) => each.topic)) {
      const logs = yield* Effect.catchTag(admin.topicOffsets(topic), "UnknownTopic", () => Effect.succeed([]))
      for (const each of partitions) {
        const log = logs.find(({ partition }) => partition === each.partition)
        // A log that ends before the known end is another one. A new leader may not know the end of its log at once, so only the last look goes by it.
        const isGone = log === undefined || (isLast && log.logEnd < each.known.end)
        if (isGone || isLast) settle(each, isGone ? (log?.logEnd ?? 0n) : undefined)
      }
    }
  })
  const lookAtMost = (asked: ReadonlyArray<Left>, isLast: boolean) =>
    awaitAtMost(Effect.exit(Effect.scoped(look(asked, isLast))), answerMillis)
  const looks = (given: ReadonlyArray<Left>, asked: ReadonlyArray<Left>) =>
    Effect.sleep(firstLookMillis).pipe(
      Effect.andThen(lookAtMost(asked, false)),
      Effect.andThen(Effect.sleep(lastLookMillis)),
      Effect.andThen(lookAtMost(asked, true)),
      Effect.ensuring(
        Effect.sync(() => {
          for (const each of given) settle(each, undefined)
        })
      )
    )

  const gaveUp = (partitions: ReadonlyArray<Partition>, mayAsk: (topic: string) => boolean) =>
    Effect.suspend(() => {
      const given = partitions.map(leftOf).filter(({ known }) => known.records > 0n)
      for (const each of given) left.set(keyOf(each), each)
      const asked = given.filter(({ topic }) => mayAsk(topic))
      return given.length === 0 ? Effect.void : Effect.asVoid(Effect.forkIn(looks(given, asked), scope))
    })

  return {
    lost: (partitions) => gaveUp(partitions, () => true),
    // In a rebalance many members give up partitions of the main topic with unread records. Only the next assignment tells of these: retry topics are few.
    revoked: (partitions) => gaveUp(partitions, (topic) => Sources.tierOf(context.definition, topic) !== undefined),
    assigned: (partitions) =>
      Effect.sync(() => {
        const found = new Map(partitions.map((each) => [each.topic, each]))
        for (const each of Array.from(left.values())) {
          // Without an id the looks tell.
          const id = CommitMetadata.topicOf(session.clusterId, found.get(each.topic)?.topicId)
          if (id === undefined) continue
          const log = partitions.find(({ topic, partition }) => topic === each.topic && partition === each.partition)
          // Where another member has the partition, nobody here knows how long the new log is.
          if (!CommitMetadata.isOfFormerTopic(each, id)) settle(each, undefined)
          else settle(each, log?.logEnd ?? each.known.end)
        }
      })
  }
}

const leftOf = (partition: Partition): Left => {
  const { topic, partition: number, generation, metadata, log, due } = partition
  const position = partition.position()
  const finished = BigInt(due?.finishedAhead ?? 0)
  const at = { topic, partition: number, generation, metadata: metadata ?? "" }
  const upTo = (end: bigint): Extent => ({ end, records: log.lag(position, end) - finished })
  return { ...at, position, known: upTo(log.end), fetched: upTo(log.fetchedEnd) }
}

const keyOf = ({ topic, partition }: TopicPartition): string => partitionKey(topic, partition)
