/**
 * Polls the ends of logs, so that a snapshot needs no I/O. It asks for partitions that no fetch has told about since the last round, because they are paused or idle,
 * and checks whether every position moves. It also finds what no fetch can tell: a cluster that does not answer, a topic that cannot be read, an open transaction that
 * holds a partition, and records that retention took from a paused one. One round serves all bindings, with one connection per cluster.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { Admin, Broker, PartitionOffsets } from "../../Broker.ts"
import { type BrokerError, RequestTimedOut } from "../../BrokerError.ts"
import type { ContainerState } from "../../EventBusError.ts"
import type { OngoingFailure } from "../../Snapshot.ts"
import type { OngoingFailures } from "../observe/ongoingFailures.ts"
import type { Partition } from "../partition/partition.ts"
import * as PauseReasons from "../partition/pauseReasons.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as Sources from "../settings/sources.ts"

/** The part of a binding that the poller reads, and the status that it writes. */
export interface PolledBinding {
  readonly definition: BindingDefinition<unknown>
  readonly broker: Broker["Service"]
  readonly state: () => ContainerState
  readonly partitions: () => ReadonlyArray<Partition>
  readonly clusterStatus: ClusterStatus
  readonly failures: { readonly topics: OngoingFailures }
  /** Retention has passed the position of a partition that is not fetched. */
  readonly overtaken: (partition: Partition, log: PartitionOffsets) => Effect.Effect<void>
}

/** The last answer of the cluster about a binding. Only the lag poller writes it. */
export interface ClusterStatus {
  /** Set while no broker of the cluster answers. */
  unreachable: OngoingFailure | undefined
}

/** Requests to one cluster at the same time. */
const topicsAtOnce = 8

/** Longest time that a cluster may take to answer before it counts as unreachable. */
const answerMillis = 5_000

/** Polls every `intervalMillis` until it is interrupted. */
export const run = (bindings: () => ReadonlyArray<PolledBinding>, intervalMillis: number): Effect.Effect<never> => {
  const chunksSeen = new WeakMap<Partition, number>()
  /** Whether no fetch has brought anything since the last round. A new partition knows its log end from its assignment. */
  const hasNoNewChunk = (partition: Partition): boolean => {
    const before = chunksSeen.get(partition)
    chunksSeen.set(partition, partition.log.chunksTaken)
    return before === partition.log.chunksTaken
  }
  const queriesOf = (binding: PolledBinding, nowMillis: number): ReadonlyArray<LogEndQuery> => {
    const { state, definition, partitions } = binding
    if (state() !== "RUNNING" && state() !== "PAUSED") return []
    const owned = partitions()
    for (const partition of owned) partition.waitingMillis(nowMillis)
    const unseen: ReadonlyArray<LogEndQuery> = owned
      .filter(hasNoNewChunk)
      .map((partition) => ({ binding, topic: partition.topic, partition, chunksSeen: partition.log.chunksTaken }))
    // Other members may own a topic's partitions, or nobody because it does not exist.
    const unowned = Sources.topicsOf(definition).filter((name) => !owned.some(({ topic }) => topic === name))
    return [...unseen, ...unowned.map((topic) => ({ binding, topic, partition: undefined, chunksSeen: 0 }))]
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

interface Round {
  readonly nowMillis: number
  readonly intervalMillis: number
}

/** Queries each topic. Answers the error when no broker of the cluster answered at all. */
const queryLogEnds = (
  broker: Broker["Service"],
  queries: ReadonlyArray<LogEndQuery>,
  round: Round
): Effect.Effect<BrokerError | undefined> => {
  if (queries.length === 0) return Effect.succeed(undefined)
  let failure: BrokerError | undefined
  let answered = false
  const queryTopic = (admin: Admin, topic: string, asked: ReadonlyArray<LogEndQuery>) =>
    Effect.matchEffect(endsOf(admin, topic, asked), {
      onSuccess: (ends) => {
        answered = true
        return Effect.forEach(asked, (query) => applyLogEnds(query, ends, round), { discard: true })
      },
      onFailure: (error) =>
        Effect.sync(() => {
          if (isUnreachable(error)) failure = error
          else answered = true
          for (const query of asked) applyFailure(query, error)
        })
    })
  const queryAll = Effect.scoped(
    Effect.flatMap(broker.admin, (admin) =>
      Effect.forEach(
        Map.groupBy(queries, ({ topic }) => topic),
        ([topic, asked]) => queryTopic(admin, topic, asked),
        { concurrency: topicsAtOnce, discard: true }
      )
    )
  )
  const limitMillis = Math.min(answerMillis, round.intervalMillis)
  return Effect.timeoutOption(Effect.result(queryAll), limitMillis).pipe(
    Effect.map((asked) => {
      if (answered) return undefined
      if (Option.isNone(asked)) return new RequestTimedOut({ operation: "asking for log ends", millis: limitMillis })
      return Result.isFailure(asked.value) ? asked.value.failure : failure
    })
  )
}

/** The ends of a topic's logs, and what a reader of committed records sees of them. */
interface LogEnds {
  readonly logs: ReadonlyArray<PartitionOffsets>
  /** The same as `logs` unless somebody reads committed records and may be held by an open transaction. */
  readonly committed: ReadonlyArray<PartitionOffsets>
}

const endsOf = (admin: Admin, topic: string, asked: ReadonlyArray<LogEndQuery>): Effect.Effect<LogEnds, BrokerError> =>
  Effect.flatMap(admin.topicOffsets(topic), (logs) => {
    const mayBeHeld = asked.some(
      ({ binding, partition }) =>
        binding.definition.isolationLevel === "read_committed" &&
        partition !== undefined &&
        partition.log.fetchedTo < (endOf(logs, partition)?.logEnd ?? 0n)
    )
    return mayBeHeld
      ? Effect.map(admin.topicOffsets(topic, "read_committed"), (committed) => ({ logs, committed }))
      : Effect.succeed({ logs, committed: logs })
  })

const endOf = (ends: ReadonlyArray<PartitionOffsets>, { partition }: Partition): PartitionOffsets | undefined =>
  ends.find((end) => end.partition === partition)

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
  { binding, topic, partition, chunksSeen }: LogEndQuery,
  { logs, committed }: LogEnds,
  { nowMillis, intervalMillis }: Round
): Effect.Effect<void> =>
  Effect.suspend(() => {
    binding.failures.topics.worked(topic)
    if (partition === undefined) return Effect.void
    const log = endOf(logs, partition)
    const isCommitted = binding.definition.isolationLevel === "read_committed"
    const readable = (isCommitted ? endOf(committed, partition) : log)?.logEnd
    // A fetch meanwhile has brought a newer log end.
    if (log === undefined || readable === undefined || partition.log.chunksTaken !== chunksSeen) return Effect.void
    partition.log.sawEnd(log.logEnd)
    partition.log.sawReadableEnd(readable, log.logEnd, nowMillis)
    if (partition.awaitsSeek || partition.stopping) return Effect.void
    if (partition.log.fetchedTo < log.logStart) return binding.overtaken(partition, log)
    const isStarved =
      PauseReasons.fetchAllowed(partition.reasons) && partition.held.records === 0 && readable > partition.log.fetchedTo
    // Counted in rounds: a process that was suspended finds records that it had no time to fetch.
    partition.log.unfetchedMillis = isStarved
      ? (partition.log.unfetchedMillis ?? -intervalMillis) + intervalMillis
      : undefined
    return Effect.void
  })

/** A failed query leaves the last log end, and says nothing about the fetches. */
const applyFailure = ({ binding: { failures }, topic, partition }: LogEndQuery, error: BrokerError): void => {
  if (partition !== undefined) partition.log.unfetchedMillis = undefined
  failures.topics.failed(topic, error)
}
