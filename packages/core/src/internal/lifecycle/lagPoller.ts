/**
 * Polls the log ends of partitions, so that a snapshot needs no I/O. It asks for partitions that no fetch has told about since the last round, because they are paused
 * or idle, and checks whether every position moves. Snapshots also show whether the cluster answers. One round serves all bindings, with one connection per
 * cluster.
 */
import { Clock, Effect, Option, Result } from "effect"
import type { Admin, Broker, PartitionOffsets } from "../../Broker.ts"
import { type BrokerError, RequestTimedOut } from "../../BrokerError.ts"
import type { ContainerState } from "../../EventBusError.ts"
import type { OngoingFailure } from "../../Snapshot.ts"
import type { Partition } from "../partition/partition.ts"
import * as PauseReasons from "../partition/pauseReasons.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

/** The part of a binding that the poller reads, and the status that it writes. */
export interface PolledBinding {
  readonly definition: Pick<BindingDefinition<unknown>, "isolationLevel" | "topic">
  readonly broker: Broker["Service"]
  readonly state: () => ContainerState
  readonly partitions: () => ReadonlyArray<Partition>
  readonly clusterStatus: ClusterStatus
}

/** The last answer of the cluster about a binding. Only the lag poller writes it. */
export interface ClusterStatus {
  /** Set while no broker of the cluster answers. */
  unreachable: OngoingFailure | undefined
  /** Set while the main topic cannot be read. The poller asks only while this process owns no partition of the binding. */
  unreadable: OngoingFailure | undefined
}

/** Requests to one cluster at the same time. */
const topicsAtOnce = 8

/** Polls every `intervalMillis` until it is interrupted. */
export const run = (bindings: () => ReadonlyArray<PolledBinding>, intervalMillis: number): Effect.Effect<never> => {
  const chunksSeen = new WeakMap<Partition, number>()
  /** Whether no fetch has brought anything since the last round. A new partition knows its log end from its assignment. */
  const hasNoNewChunk = (partition: Partition): boolean => {
    const before = chunksSeen.get(partition)
    chunksSeen.set(partition, partition.chunksTaken)
    return before === partition.chunksTaken
  }
  const queriesOf = (binding: PolledBinding, nowMillis: number): ReadonlyArray<LogEndQuery> => {
    const { state, definition, partitions } = binding
    if (state() !== "RUNNING" && state() !== "PAUSED") return []
    const owned = partitions()
    for (const partition of owned) partition.waitingMillis(nowMillis)
    if (owned.length === 0) return [{ binding, topic: definition.topic, partition: undefined, chunksSeen: 0 }]
    return owned
      .filter(hasNoNewChunk)
      .map((partition) => ({ binding, topic: partition.topic, partition, chunksSeen: partition.chunksTaken }))
  }
  const round = Effect.gen(function* () {
    const nowMillis = yield* Clock.currentTimeMillis
    // All clusters in parallel: an unreachable one must delay neither the others nor the next round.
    yield* Effect.forEach(
      Map.groupBy(bindings(), ({ broker }) => broker),
      ([broker, served]) => {
        const queries = served.flatMap((binding) => queriesOf(binding, nowMillis))
        return Effect.map(queryLogEnds(broker, queries, { nowMillis, intervalMillis }), (failure) => {
          for (const { clusterStatus } of served)
            clusterStatus.unreachable = ongoing(clusterStatus.unreachable, failure, nowMillis)
        })
      },
      { concurrency: "unbounded", discard: true }
    )
  })
  return Effect.forever(Effect.andThen(Effect.sleep(intervalMillis), round))
}

interface LogEndQuery {
  readonly binding: PolledBinding
  readonly topic: string
  /** Undefined when only the topic is queried. */
  readonly partition: Partition | undefined
  /** Chunks that the partition had taken when the query was made. */
  readonly chunksSeen: number
}

/** Queries each topic once. Answers the error when no broker of the cluster answered at all. */
const queryLogEnds = (
  broker: Broker["Service"],
  queries: ReadonlyArray<LogEndQuery>,
  { nowMillis, intervalMillis }: { readonly nowMillis: number; readonly intervalMillis: number }
): Effect.Effect<BrokerError | undefined> => {
  if (queries.length === 0) return Effect.succeed(undefined)
  let failure: BrokerError | undefined
  let answered = false
  const queryTopic = (admin: Admin, asked: ReadonlyArray<LogEndQuery>, { topic, binding }: LogEndQuery) =>
    Effect.match(admin.topicOffsets(topic, binding.definition.isolationLevel), {
      onSuccess: (ends) => {
        answered = true
        for (const query of asked) applyLogEnds(query, ends, nowMillis)
      },
      onFailure: (error) => {
        if (isUnreachable(error)) failure = error
        else answered = true
        for (const query of asked) applyFailure(query, error, nowMillis)
      }
    })
  const queryAll = Effect.scoped(
    Effect.flatMap(broker.admin, (admin) =>
      Effect.forEach(
        Map.groupBy(queries, ({ topic, binding }) => `${binding.definition.isolationLevel} ${topic}`).values(),
        (asked) => queryTopic(admin, asked, asked[0]!),
        { concurrency: topicsAtOnce, discard: true }
      )
    )
  )
  return Effect.timeoutOption(Effect.result(queryAll), intervalMillis).pipe(
    Effect.map((asked) => {
      if (answered) return undefined
      if (Option.isNone(asked)) return new RequestTimedOut({ operation: "asking for log ends", millis: intervalMillis })
      return Result.isFailure(asked.value) ? asked.value.failure : failure
    })
  )
}

/** Whether no broker answered. */
export const isUnreachable = (error: BrokerError): boolean =>
  error._tag === "BrokerUnavailable" || error._tag === "RequestTimedOut"

/** A failure continues, begins or ends. */
const ongoing = (
  before: OngoingFailure | undefined,
  error: BrokerError | undefined,
  nowMillis: number
): OngoingFailure | undefined =>
  error === undefined ? undefined : { error, sinceMillis: before?.sinceMillis ?? nowMillis }

const applyLogEnds = (
  { binding, partition, chunksSeen }: LogEndQuery,
  ends: ReadonlyArray<PartitionOffsets>,
  nowMillis: number
): void => {
  binding.clusterStatus.unreadable = undefined
  const found = ends.find((end) => end.partition === partition?.partition)
  // A fetch meanwhile has brought a newer log end.
  if (partition === undefined || found === undefined || partition.chunksTaken !== chunksSeen) return
  partition.logEnd = found.logEnd
  const isStarved = PauseReasons.fetchAllowed(partition.reasons) && partition.held.records === 0 && partition.lag() > 0n
  partition.unfetchedSinceMillis = isStarved ? (partition.unfetchedSinceMillis ?? nowMillis) : undefined
}

/** A failed query leaves the last log end, and says nothing about the fetches. */
const applyFailure = (
  { binding: { clusterStatus }, partition }: LogEndQuery,
  error: BrokerError,
  nowMillis: number
): void => {
  if (partition !== undefined) partition.unfetchedSinceMillis = undefined
  else if (!isUnreachable(error)) clusterStatus.unreadable = ongoing(clusterStatus.unreadable, error, nowMillis)
}
