/**
 * A consumer session: joins what the membership says, what is owned and what is fetched into one queue of events, in the order in
 * which it happened. The queue is not bounded by itself; what is in it is bounded by the consumer, which pauses partitions (one
 * chunk of each may follow).
 */
import { Broker, type BrokerError, ConsumerRecord } from "@eventbus/core"
import { Cause, Deferred, Duration, Effect, Exit, Latch, Queue } from "effect"
import { type Cluster, connect } from "../connection/cluster.ts"
import { defaults } from "../connection/options.ts"
import type { PortErrors } from "../connection/portErrors.ts"
import * as Patience from "../connection/retryBackoff.ts"
import type { Secured } from "../connection/security.ts"
import { type Fetcher, isFatal, makeFetcher } from "../fetch/fetcher.ts"
import { makeCommit } from "../group/commits.ts"
import { type Membership, makeMembership } from "../group/membership.ts"
import { byGeneration, type Group, type Owned, Ownership } from "../group/ownership.ts"
import { fetchCommitted } from "../offsets/committedOffsets.ts"
import { earliest, latest, listOffsets } from "../offsets/logBounds.ts"
import { type ClientFailure, failureOfCode } from "../wire/errors.ts"
import { leaveOrRemember, type Orphans, removeOrphans } from "./orphans.ts"

interface Settings {
  readonly groupId: string
  readonly groupInstanceId: string | null
  readonly topics: ReadonlyArray<string>
  readonly sessionTimeoutMillis: number
  readonly rebalanceTimeoutMillis: number
  readonly heartbeatIntervalMillis: number
  readonly maxWaitMillis: number
  readonly maxBytesOf: (topic: string) => number
  readonly isolation: "read_committed" | "read_uncommitted"
}

const settings = (options: Broker.ConsumerOptions, sessionTimeoutMillis: number): Settings => ({
  groupId: options.groupId,
  groupInstanceId: options.groupInstanceId ?? null,
  topics: [...new Set(options.topics)],
  sessionTimeoutMillis,
  rebalanceTimeoutMillis: Duration.toMillis(options.rebalanceTimeout ?? "60 seconds"),
  heartbeatIntervalMillis: Math.min(
    Duration.toMillis(options.heartbeatInterval ?? "10 seconds"),
    sessionTimeoutMillis / 3
  ),
  maxWaitMillis: Duration.toMillis(options.fetchMaxWait ?? "100 millis"),
  maxBytesOf: (topic) => Broker.maxBytesOf(options, topic),
  isolation: options.isolationLevel ?? "read_committed"
})

/** How often a topic that does not exist is looked for. */
const missingTopicDelay = Duration.seconds(1)
/** What waiting for a topic to appear does not cure. */
const topicErrors = new Set(["TOPIC_AUTHORIZATION_FAILED", "INVALID_TOPIC_EXCEPTION"])

const coordinates = (partitions: ReadonlyArray<Owned>): ReadonlyArray<ConsumerRecord.TopicPartition> =>
  partitions.map(({ topic, partition }) => ({ topic, partition }))

/** Takes chunks of a partition out of the queue; what else is there keeps its order. */
const takeBack = (
  events: Queue.Queue<Broker.ConsumerEvent, BrokerError.BrokerError>,
  { topic, partition }: ConsumerRecord.TopicPartition
): void => {
  const kept: Array<Broker.ConsumerEvent> = []
  for (let left = Queue.sizeUnsafe(events); left > 0; left--) {
    const taken = Queue.takeUnsafe(events)
    if (taken === undefined || Exit.isFailure(taken)) break
    const event = taken.value
    const stale = event._tag === "Fetched" && event.chunk.partition === partition && event.chunk.topic === topic
    if (!stale) kept.push(event)
  }
  Queue.offerAllUnsafe(events, kept)
}

/** Silent members are noticed only when a request ends: a third of the session leaves time for two more tries. */
const memberConnection = (options: Secured, { sessionTimeoutMillis }: Settings): Secured => ({
  ...options,
  requestTimeout: Math.min(
    Duration.toMillis(options.requestTimeout ?? defaults.requestTimeoutMillis),
    Math.max(1_000, sessionTimeoutMillis / 3)
  )
})

/** What the cluster knows of new partitions. */
const lookUp = Effect.fnUntraced(function* (
  cluster: Cluster,
  fetcher: Fetcher,
  { groupId, isolation }: Settings,
  added: ReadonlyArray<Owned>
) {
  const metadata = yield* fetcher.refresh
  const bounds = (at: number) => listOffsets(cluster, metadata, added, at, isolation)
  const committed = Effect.flatMap(cluster.coordinator("group", groupId), (broker) =>
    fetchCommitted(broker, groupId, added)
  )
  const [offsets, starts, ends] = yield* Effect.all([committed, bounds(earliest), bounds(latest)], {
    concurrency: "unbounded"
  })
  return added.map(({ topic, partition }): Broker.AssignedPartition => {
    const key = ConsumerRecord.partitionKey(topic, partition)
    return {
      topic,
      partition,
      committed: offsets.get(key),
      logStart: starts.get(key) ?? 0n,
      logEnd: ends.get(key) ?? 0n
    }
  })
})

/** How many partitions each topic has; ends the session when waiting cannot help. */
const look = Effect.fnUntraced(function* (
  fetcher: Fetcher,
  die: (failed: ClientFailure, topic: string) => Effect.Effect<void>
) {
  const metadata = yield* fetcher.refresh
  for (const { topic, topicErrorCode } of metadata.values()) {
    const failed = failureOfCode(topicErrorCode)
    if (failed !== undefined && topicErrors.has(failed.type)) yield* die(failed, topic)
  }
  return new Map([...metadata].map(([topic, found]) => [topic, found.partitionMetadata.length]))
})

export const makeConsumerSession = Effect.fnUntraced(function* (
  options: Secured,
  errors: PortErrors,
  orphans: Orphans,
  consumer: Broker.ConsumerOptions
) {
  const config = settings(consumer, Duration.toMillis(consumer.sessionTimeout ?? "45 seconds"))
  const { groupId } = config
  const subject = { operation: "consume", groupId, groupInstanceId: consumer.groupInstanceId }
  const [memberCluster, cluster] = yield* errors.map(
    Effect.all([connect(memberConnection(options, config), consumer.clientId), connect(options, consumer.clientId)], {
      concurrency: "unbounded"
    }),
    { ...subject, operation: "connect" }
  )
  const scope = yield* Effect.scope
  const events = yield* Queue.unbounded<Broker.ConsumerEvent, BrokerError.BrokerError>()
  const ownership = new Ownership()
  const emit = (event: Broker.ConsumerEvent): void => void Queue.offerUnsafe(events, event)
  const context = yield* Effect.context<never>()
  const fork = (effect: Effect.Effect<void>): void => void Effect.runForkWith(context)(Effect.forkIn(effect, scope))

  const emitLost = ({ generation, partitions }: Group) =>
    emit({ _tag: "Lost", generation, partitions: coordinates(partitions) })

  const death = yield* Deferred.make<never, BrokerError.BrokerError>()
  const die = (failed: ClientFailure, topic = config.topics.join(", ")): Effect.Effect<void> =>
    Effect.asVoid(Deferred.fail(death, errors.of(failed, { ...subject, topic })))

  /** What the group was assigned for a topic that was deleted is void; the offsets that it had committed are deleted with the topic. */
  const deleted = (topic: string): void => {
    const held = ownership.all().filter((owned) => owned.topic === topic && owned.phase !== "preparing")
    for (const group of byGeneration(ownership.remove(held))) emitLost(group)
    counts.delete(topic)
    lookAgain.openUnsafe()
    membership.rejoin()
  }

  const fetcher = makeFetcher(cluster, config, ownership, scope, emit, die, deleted)

  /** Announces new partitions once their offsets are known; those that are gone by then were never announced. */
  const announce = (generation: number, added: ReadonlyArray<Owned>, triesBefore = 0): Effect.Effect<void> =>
    Effect.suspend(() => {
      const held = added.filter((owned) => ownership.holds(owned))
      if (held.length === 0) return Effect.void
      return Effect.matchEffect(lookUp(cluster, fetcher, config, held), {
        onSuccess: (partitions) =>
          Effect.sync(() => {
            const still = held.filter((owned) => ownership.holds(owned))
            for (const owned of still) owned.phase = "waiting"
            if (still.length > 0) {
              emit({
                _tag: "Assigned",
                generation,
                partitions: partitions.filter((found) => ownership.get(found)?.generation === generation)
              })
            }
          }),
        onFailure: (failed) =>
          isFatal(failed)
            ? die(failed)
            : Effect.delay(announce(generation, added, triesBefore + 1), Patience.delayMillis(triesBefore))
      })
    })

  const revoke = ({ generation, partitions }: Group): void => {
    const letGo = Effect.sync(() => {
      const held = ownership.remove(partitions)
      if (held.length > 0) membership.rejoin()
      return held
    })
    emit({ _tag: "Revoked", generation, partitions: coordinates(partitions), release: Effect.asVoid(letGo) })
    fork(
      Effect.sleep(config.rebalanceTimeoutMillis).pipe(
        Effect.andThen(letGo),
        Effect.andThen((late) =>
          Effect.sync(() => {
            if (late.length > 0) emitLost({ generation, partitions: late })
          })
        )
      )
    )
  }

  const membership: Membership = makeMembership(memberCluster, config, ownership, {
    assigned: (generation, partitions) => {
      const { added, revoked, dropped, isFirst } = ownership.assign(generation, partitions)
      for (const group of revoked) revoke(group)
      if (dropped > 0) membership.rejoin()
      if (added.length > 0) fork(announce(generation, added))
      else if (isFirst) emit({ _tag: "Assigned", generation, partitions: [] })
    },
    lost: () => {
      for (const group of ownership.clear()) emitLost(group)
    }
  })

  /** Partitions of each topic, as the group was last told. */
  let counts = new Map<string, number>()
  const lookAgain = Latch.makeUnsafe(false)

  /** Joins again when topics appear or grow: the classic protocol leaves that to the members. */
  const watch = Effect.gen(function* () {
    counts = yield* Effect.orElseSucceed(look(fetcher, die), () => counts)
    while (true) {
      const missing = config.topics.some((topic) => !counts.get(topic))
      const wait = missing ? missingTopicDelay : (options.metadataMaxAge ?? defaults.metadataMaxAgeMillis)
      yield* Effect.raceFirst(Effect.sleep(wait), lookAgain.await)
      lookAgain.closeUnsafe()
      const now = yield* Effect.orElseSucceed(look(fetcher, die), () => counts)
      if (config.topics.some((topic) => now.get(topic) !== counts.get(topic))) membership.rejoin()
      counts = now
    }
  })

  const leaveGroup = Effect.suspend(() => {
    const memberId = membership.memberId()
    // a static member stays: it is expected back
    return memberId === "" || config.groupInstanceId !== null
      ? Effect.void
      : leaveOrRemember(cluster, orphans, groupId, memberId)
  })

  const end = (reason: BrokerError.BrokerError) =>
    Effect.andThen(
      Effect.sync(() => {
        for (const group of ownership.clear()) emitLost(group)
        Queue.failCauseUnsafe(events, Cause.fail(reason))
      }),
      leaveGroup
    )

  yield* Effect.addFinalizer(() => {
    ownership.clear()
    return Effect.andThen(leaveGroup, Queue.shutdown(events))
  })
  yield* Effect.raceAllFirst([
    watch,
    Effect.mapError(Effect.andThen(removeOrphans(cluster, orphans, groupId), membership.run), (failed) =>
      errors.of(failed, subject)
    ),
    Deferred.await(death)
  ]).pipe(Effect.catch(end), Effect.forkScoped)

  const commit = makeCommit(cluster, groupId, ownership, membership)
  const session: Broker.ConsumerSession = {
    events,
    pause: (partitions) => Effect.sync(() => ownership.pause(partitions, performance.now())),
    resume: (partitions) =>
      Effect.sync(() => {
        ownership.resume(partitions)
        fetcher.wake()
      }),
    seek: (partition, offset) =>
      Effect.sync(() => {
        if (!ownership.seek(partition, offset)) return
        takeBack(events, partition)
        fetcher.wake()
      }),
    commit: (offsets) =>
      Effect.mapError(commit(offsets), (failed) =>
        failed._tag === "ClientFailure" ? errors.of(failed, { ...subject, operation: "commit" }) : failed
      )
  }
  return session
})
