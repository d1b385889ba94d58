/**
 * Fetches for one session: one loop per node, each with one request out. A loop hands chunks over and never waits for handlers. Before each
 * request it asks `Ownership` which partitions may be fetched.
 */
import { ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { type ClientFailure, fromThrown } from "../../ClientFailure.ts"
import type { Cluster } from "../connection/cluster.ts"
import { patienceMillis } from "../connection/firstAnswer.ts"
import type { Ownership } from "../group/ownership.ts"
import type { FetchedPartition, TopicMetadata } from "../protocol/apis.ts"
import { deliverEnd, type FetchListener, handleAnswer, isFatal } from "./fetchAnswer.ts"
import { fetchFrom } from "./fetchCall.ts"
import { type FetcherOptions, isCurrent, type RequestedPartition, requestedPartitions } from "./fetchRequest.ts"
import { FetchSession } from "./fetchSession.ts"
import { fetchWaitMillis } from "./fetchWait.ts"
import { RangeEnds } from "./rangeEnds.ts"

export interface Fetcher {
  /** Requests the topics' metadata, and starts a loop for each new leader. */
  readonly refresh: Effect.Effect<ReadonlyMap<string, TopicMetadata>, ClientFailure>
  /** A partition may be fetched that could not be before. */
  readonly wake: () => void
}

const retryDelay = "100 millis"

/** The state of the fetch loops. */
interface Loops {
  readonly cluster: Cluster
  readonly options: FetcherOptions
  readonly ownership: Ownership
  readonly scope: Scope.Scope
  readonly listener: FetchListener
  readonly rangeEnds: RangeEnds
  /** The ids of the topics whose partitions are owned, where the cluster gives ids. */
  readonly topicIds: ReadonlyMap<string, string>
  /** By node id. */
  readonly sessions: Map<number, FetchSession>
  /** One for each node, closed while the node has nothing to fetch. */
  readonly latches: Map<number, Latch.Latch>
  /** Node ids by partition key. */
  readonly leaders: Map<string, number>
  /** When a node that has a request out is silent, by the monotonic clock. */
  readonly dueAt: Map<number, number>
  turns: number
}

const sessionWith = ({ sessions }: Loops, node: number): FetchSession => {
  const session = sessions.get(node) ?? new FetchSession()
  sessions.set(node, session)
  return session
}

const leaderOf = ({ leaders }: Loops, { topic, partition }: ConsumerRecord.TopicPartition): number | undefined =>
  leaders.get(ConsumerRecord.partitionKey(topic, partition))

/** Handles one partition's answer; succeeds with the failure that the fetch is to be repeated for. */
const settleAnswer = (
  loops: Loops,
  requested: RequestedPartition,
  fetched: FetchedPartition
): Effect.Effect<ClientFailure | undefined> =>
  Effect.catch(handleAnswer(loops, requested, fetched), (failed) =>
    isFatal(failed)
      ? Effect.as(loops.listener.failSession(failed, fetched.topic), failed)
      : Effect.succeed<ClientFailure | undefined>(failed)
  )

const fetchOnce = Effect.fnUntraced(function* (
  loops: Loops,
  node: number,
  requested: ReadonlyArray<RequestedPartition>,
  hasEnds: boolean
) {
  const { cluster, options, ownership } = loops
  const broker = yield* cluster.node(node)
  // A partition without a known leader may be led by this node.
  const onNode = ownership.all().filter((owned) => (leaderOf(loops, owned) ?? node) === node)
  const wait = hasEnds ? 0 : fetchWaitMillis(onNode, options.maxWaitMillis, performance.now())
  const positions = requested.map(({ owned, position, maxBytes }) => ({
    ...{ topic: owned.topic, partition: owned.partition },
    ...{ offset: position, maxBytes }
  }))
  loops.dueAt.set(node, performance.now() + wait + patienceMillis)
  const answers = yield* Effect.ensuring(
    fetchFrom(broker, sessionWith(loops, node), loops.topicIds, options.isolation, positions, wait),
    Effect.sync(() => loops.dueAt.delete(node))
  )
  const silent = new Map(
    requested.map((one) => [ConsumerRecord.partitionKey(one.owned.topic, one.owned.partition), one])
  )
  let failed: ClientFailure | undefined
  for (const fetched of answers) {
    const key = ConsumerRecord.partitionKey(fetched.topic, fetched.partition)
    const one = silent.get(key)
    silent.delete(key)
    if (one === undefined || !isCurrent(ownership, one)) continue
    failed = (yield* settleAnswer(loops, one, fetched)) ?? failed
  }
  // In a session the node says nothing of a partition that has nothing new.
  for (const one of silent.values()) if (isCurrent(ownership, one)) one.owned.idle = true
  if (failed !== undefined) return yield* Effect.fail(failed)
})

/** One turn of a node's loop: the next chunks of what was fetched before, then a fetch of the other partitions. */
const takeTurn = Effect.fnUntraced(function* (
  loops: Loops,
  node: number,
  requested: ReadonlyArray<RequestedPartition>
) {
  const { listener, ownership, rangeEnds } = loops
  const withEnds = requested.filter(({ owned }) => rangeEnds.has(owned))
  const fresh = requested.filter(({ owned }) => !rangeEnds.has(owned))
  if (withEnds.length > 0) yield* listener.taken
  for (const one of withEnds) {
    // The consumer may have paused it meanwhile.
    if (isCurrent(ownership, one) && one.owned.pausedMillis === undefined) yield* deliverEnd(loops, one)
  }
  if (fresh.length > 0) yield* fetchOnce(loops, node, fresh, withEnds.length > 0)
})

const fetchForever = (loops: Loops, node: number, latch: Latch.Latch): Effect.Effect<never> =>
  Effect.forever(
    Effect.suspend(() => {
      const { listener, options, ownership, rangeEnds } = loops
      rangeEnds.dropStale((owned) => ownership.holds(owned))
      const led = ownership.fetchable().filter((owned) => leaderOf(loops, owned) === node)
      if (led.length === 0) {
        latch.closeUnsafe()
        return latch.await
      }
      const requested = requestedPartitions(options, ownership, led, loops.turns++)
      return takeTurn(loops, node, requested).pipe(
        Effect.catch((failed) =>
          isFatal(failed)
            ? listener.failSession(failed, requested[0]!.owned.topic)
            : Effect.andThen(Effect.sleep(retryDelay), Effect.ignore(refresh(loops)))
        )
      )
    })
  )

/** Looks for other leaders while a node does not answer. Its own loop waits for the answer. */
const replaceSilentLeaders = (loops: Loops): Effect.Effect<never> =>
  Effect.forever(
    Effect.sleep(patienceMillis).pipe(
      Effect.andThen(
        Effect.suspend(() => {
          const now = performance.now()
          return Array.from(loops.dueAt.values()).some((dueAt) => now > dueAt)
            ? Effect.ignore(refresh(loops))
            : Effect.void
        })
      )
    )
  )

/** Starts a loop in the scope of the session. A defect ends the session: it would fetch nothing any more, and nobody would learn of it. */
const startLoop = ({ listener, options, scope }: Loops, loop: Effect.Effect<never>) =>
  Effect.forkIn(
    Effect.catchDefect(loop, (defect) => listener.failSession(fromThrown(defect), options.topics.join(", "))),
    scope
  )

const wake = ({ latches }: Loops): void => {
  for (const latch of latches.values()) latch.openUnsafe()
}

const refresh = Effect.fnUntraced(function* (
  loops: Loops
): Effect.fn.Return<ReadonlyMap<string, TopicMetadata>, ClientFailure> {
  const { cluster, options, leaders, latches } = loops
  const metadata = yield* cluster.metadata(options.topics)
  if (latches.size === 0) yield* startLoop(loops, replaceSilentLeaders(loops))
  for (const { topic, partitionMetadata } of metadata.values()) {
    for (const { partitionId, leader } of partitionMetadata) {
      leaders.set(ConsumerRecord.partitionKey(topic, partitionId), leader)
    }
  }
  for (const node of new Set(leaders.values())) {
    if (node < 0 || latches.has(node)) continue
    const latch = Latch.makeUnsafe(false)
    latches.set(node, latch)
    yield* startLoop(loops, fetchForever(loops, node, latch))
  }
  wake(loops)
  return metadata
})

/** Fetches until `scope` closes. */
export const makeFetcher = (
  cluster: Cluster,
  options: FetcherOptions,
  ownership: Ownership,
  topicIds: ReadonlyMap<string, string>,
  scope: Scope.Scope,
  listener: FetchListener
): Fetcher => {
  const loops: Loops = {
    cluster,
    options,
    ownership,
    scope,
    listener,
    rangeEnds: new RangeEnds(),
    topicIds,
    sessions: new Map(),
    latches: new Map(),
    leaders: new Map(),
    dueAt: new Map(),
    turns: 0
  }
  return { refresh: refresh(loops), wake: () => wake(loops) }
}
