/** Reports changes of a session's assignment, and the deletion of a topic that it reads. */
import { type Broker, ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { failure, Local } from "../../ClientFailure.ts"
import * as RetryBackoff from "../connection/retryBackoff.ts"
import { fetchTopicIds } from "../connection/topicIds.ts"
import { untilMoved } from "../connection/untilMoved.ts"
import { isFatal } from "../fetch/fetchAnswer.ts"
import { byGeneration, type GenerationPartitions, type OwnedPartition } from "../group/ownership.ts"
import { fetchCommitted } from "../offsets/committedOffsets.ts"
import { byLeader, earliest, latest, listOffsets } from "../offsets/logOffsets.ts"
import type { TopicMetadata } from "../protocol/apis.ts"
import { coordinates, emit, emitLost, type SessionState } from "./sessionState.ts"

type Metadata = ReadonlyMap<string, TopicMetadata>

/** One part for the partitions whose leaders answer, and one for those without a leader that answers. A part that would be empty is left out. */
const byAnswer = ({ cluster }: SessionState, partitions: ReadonlyArray<OwnedPartition>, metadata: Metadata) => {
  const leaders = byLeader(partitions, metadata)
  const parts = Map.groupBy(leaders, ([leader]) => leader < 0 || cluster.isSilent(leader))
  return Array.from(parts.values(), (part) => part.flatMap(([, led]) => led))
}

/** The log bounds of new partitions, and what the group has committed in their topics. */
const lookUpOffsets = Effect.fnUntraced(function* (
  session: SessionState,
  added: ReadonlyArray<OwnedPartition>,
  metadata: Metadata
) {
  const { cluster, settings } = session
  const offsetsAt = (at: number) => listOffsets(cluster, metadata, added, at, settings.isolation)
  const committed = cluster.askCoordinator("group", settings.groupId, (broker) =>
    fetchCommitted(broker, settings.groupId, allOf(added, metadata))
  )
  const [offsets, starts, ends] = yield* Effect.all([committed, offsetsAt(earliest), offsetsAt(latest)], {
    concurrency: "unbounded"
  })
  // Last: if the topic is made again meanwhile, what was read before is of another topic than this id.
  const ids = yield* lookUpTopicIds(session)
  const partitions = added.map(({ topic, partition }): Broker.AssignedPartition => {
    const key = ConsumerRecord.partitionKey(topic, partition)
    return {
      topic,
      topicId: ids.get(topic),
      partition,
      committed: offsets.get(key)?.offset,
      logStart: starts.get(key) ?? 0n,
      logEnd: ends.get(key) ?? 0n
    }
  })
  return { partitions, commits: Array.from(offsets.values()) }
})

/** The ids of the session's topics. One that is not what it was says that the topic was made again: what the session owns of the former one is void. */
export const lookUpTopicIds = Effect.fnUntraced(function* (session: SessionState) {
  const found = yield* session.cluster.askAny((broker) => fetchTopicIds(broker, session.settings.topics))
  for (const [topic, id] of found) {
    const before = session.topicIds.get(topic)
    if (before !== undefined && before !== id) onTopicDeleted(session, topic)
    session.topicIds.set(topic, id)
  }
  return found
})

/** The given partitions, and all others of their topics. */
const allOf = (
  added: ReadonlyArray<OwnedPartition>,
  metadata: Metadata
): ReadonlyArray<ConsumerRecord.TopicPartition> => {
  const all = new Map<string, ConsumerRecord.TopicPartition>()
  const add = (topic: string, partition: number) =>
    all.set(ConsumerRecord.partitionKey(topic, partition), { topic, partition })
  for (const { topic, partition } of added) add(topic, partition)
  for (const topic of new Set(added.map(({ topic }) => topic))) {
    for (const { partitionId } of metadata.get(topic)?.partitionMetadata ?? []) add(topic, partitionId)
  }
  return Array.from(all.values())
}

const someAreSilent = failure(Local.timeout, "some leaders answer, and some do not")

/**
 * Emits `Assigned` for the partitions that are still owned when their offsets are known. Partitions without a leader that answers are announced on their
 * own, so that the others do not wait for them.
 */
const announce = (
  session: SessionState,
  generation: number,
  added: ReadonlyArray<OwnedPartition>,
  triesBefore = 0
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { fetcher, ownership } = session
    const held = added.filter((owned) => ownership.holds(owned))
    if (held.length === 0) return
    const metadata = yield* fetcher.refresh
    const parts = byAnswer(session, held, metadata)
    if (parts.length > 1) {
      for (const part of parts) session.fork(announce(session, generation, part, triesBefore))
      return
    }
    const mixed = Effect.sync(() => (byAnswer(session, held, metadata).length > 1 ? someAreSilent : undefined))
    const found = yield* untilMoved(lookUpOffsets(session, held, metadata), mixed)
    const still = held.filter((owned) => ownership.holds(owned))
    for (const owned of still) owned.phase = "waiting"
    if (still.length === 0) return
    const partitions = found.partitions.filter((at) => ownership.get(at)?.generation === generation)
    emit(session, { _tag: "Assigned", generation, partitions, commits: found.commits })
  }).pipe(
    Effect.catch((failed) =>
      isFatal(failed)
        ? session.failSession(failed)
        : Effect.delay(announce(session, generation, added, triesBefore + 1), RetryBackoff.delayMillis(triesBefore))
    )
  )

/** Emits `Revoked`, and `Lost` when the partitions are not released within the rebalance timeout. */
const revoke = (session: SessionState, { generation, partitions }: GenerationPartitions): void => {
  const { ownership, membership, settings } = session
  const release = Effect.sync(() => {
    const held = ownership.remove(partitions)
    if (held.length > 0) membership.requestRejoin()
    return held
  })
  emit(session, {
    _tag: "Revoked",
    generation,
    partitions: coordinates(partitions),
    release: Effect.asVoid(release)
  })
  session.fork(
    Effect.sleep(settings.rebalanceTimeoutMillis).pipe(
      Effect.andThen(release),
      Effect.andThen((late) =>
        Effect.sync(() => {
          if (late.length > 0) emitLost(session, { generation, partitions: late })
        })
      )
    )
  )
}

/** How often it is looked whether the consumer has released all partitions. */
const releasePollInterval = "5 millis"

/** Gives up all partitions, and ends when the consumer has released them, or the rebalance timeout has passed. */
export const giveUpAll = (session: SessionState): Effect.Effect<void> => {
  const awaitNone: Effect.Effect<void> = Effect.suspend(() =>
    session.ownership.size === 0 ? Effect.void : Effect.andThen(Effect.sleep(releasePollInterval), awaitNone)
  )
  return Effect.suspend(() => {
    for (const group of session.ownership.revokeAll()) revoke(session, group)
    return awaitNone
  })
}

/** Applies a new assignment of the group. */
export const onAssigned = (
  session: SessionState,
  generation: number,
  assignment: ReadonlyArray<ConsumerRecord.TopicPartition>
): void => {
  const { added, revoked, dropped, isFirst } = session.ownership.assign(generation, assignment)
  for (const group of revoked) revoke(session, group)
  if (dropped > 0) session.membership.requestRejoin()
  if (added.length > 0) session.fork(announce(session, generation, added))
  else if (isFirst) emit(session, { _tag: "Assigned", generation, partitions: [], commits: [] })
}

/** The session owns nothing any more. */
export const loseAll = (session: Pick<SessionState, "events" | "ownership">): void => {
  for (const group of session.ownership.clear()) emitLost(session, group)
}

/** A topic was deleted: its assignment is void, and the broker has deleted its committed offsets with it. */
export const onTopicDeleted = (session: SessionState, topic: string): void => {
  const { ownership, membership, partitionCounts, pollNow, topicIds } = session
  const held = ownership.all().filter((owned) => owned.topic === topic && owned.phase !== "preparing")
  for (const group of byGeneration(ownership.remove(held))) emitLost(session, group)
  partitionCounts.delete(topic)
  topicIds.delete(topic)
  pollNow.openUnsafe()
  membership.requestRejoin()
}
