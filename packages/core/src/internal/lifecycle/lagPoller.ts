/**
 * Looks at every partition now and then, so that a snapshot need not: whether its position moves, and where its log ends when no fetch says so, because it is
 * paused or because nothing comes. What the answers, or their lack, say of the cluster and of the fetches goes into the snapshots, too. One round for all
 * bindings, with one connection for each cluster that is asked.
 */
import { Clock, Effect, Option, Result } from "effect"
import type { Admin, Broker, PartitionOffsets } from "../../Broker.ts"
import { type BrokerError, RequestTimedOut } from "../../BrokerError.ts"
import type { ContainerState } from "../../EventBusError.ts"
import type { OngoingFailure } from "../../Snapshot.ts"
import type { Partition } from "../partition/partition.ts"
import * as PauseReasons from "../partition/pauseReasons.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

/** What is watched of a binding. */
export interface PolledBinding {
  readonly definition: Pick<BindingDefinition<unknown>, "isolationLevel" | "topic">
  readonly broker: Broker["Service"]
  readonly state: () => ContainerState
  readonly partitions: () => ReadonlyArray<Partition>
  readonly clusterStatus: ClusterStatus
}

/** What the cluster said of a binding when it was asked last. Written here only. */
export interface ClusterStatus {
  /** It said nothing. */
  unreachable: OngoingFailure | undefined
  /** Nothing can be read from the main topic. Asked only while no partition of it is ours. */
  unreadable: OngoingFailure | undefined
}

/** How many topics one cluster is asked about at a time. */
const topicsAtOnce = 8

/** Looks every `roundMillis` until it is interrupted. */
export const run = (bindings: () => ReadonlyArray<PolledBinding>, roundMillis: number): Effect.Effect<never> => {
  const chunksSeen = new WeakMap<Partition, number>()
  /** Whether no fetch has said anything since the last round. A new partition knows its log end from its assignment. */
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
    // A cluster that is away must not keep the others waiting, nor the next round.
    yield* Effect.forEach(
      Map.groupBy(bindings(), ({ broker }) => broker),
      ([broker, served]) => {
        const queries = served.flatMap((binding) => queriesOf(binding, nowMillis))
        return Effect.map(queryLogEnds(broker, queries, { nowMillis, roundMillis }), (failure) => {
          for (const { clusterStatus } of served)
            clusterStatus.unreachable = ongoing(clusterStatus.unreachable, failure, nowMillis)
        })
      },
      { concurrency: "unbounded", discard: true }
    )
  })
  return Effect.forever(Effect.andThen(Effect.sleep(roundMillis), round))
}

interface LogEndQuery {
  readonly binding: PolledBinding
  readonly topic: string
  /** Undefined where only the topic is asked about. */
  readonly partition: Partition | undefined
  /** Chunks that had been taken when it was asked. */
  readonly chunksSeen: number
}

/** Asks once for each topic; answers why nobody of the cluster did. */
const queryLogEnds = (
  broker: Broker["Service"],
  queries: ReadonlyArray<LogEndQuery>,
  { nowMillis, roundMillis }: { readonly nowMillis: number; readonly roundMillis: number }
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
  return Effect.timeoutOption(Effect.result(queryAll), roundMillis).pipe(
    Effect.map((asked) => {
      if (answered) return undefined
      if (Option.isNone(asked)) return new RequestTimedOut({ operation: "asking for log ends", millis: roundMillis })
      return Result.isFailure(asked.value) ? asked.value.failure : failure
    })
  )
}

/** Nobody answered. */
export const isUnreachable = (error: BrokerError): boolean =>
  error._tag === "BrokerUnavailable" || error._tag === "RequestTimedOut"

/** A failure continues, begins or is over. */
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
  // What a fetch said meanwhile is newer.
  if (partition === undefined || found === undefined || partition.chunksTaken !== chunksSeen) return
  partition.logEnd = found.logEnd
  const isStarved = PauseReasons.fetchAllowed(partition.reasons) && partition.held.records === 0 && partition.lag() > 0n
  partition.unfetchedSinceMillis = isStarved ? (partition.unfetchedSinceMillis ?? nowMillis) : undefined
}

/** A log end that cannot be had stays what it was, and says nothing against the fetches. */
const applyFailure = (
  { binding: { clusterStatus }, partition }: LogEndQuery,
  error: BrokerError,
  nowMillis: number
): void => {
  if (partition !== undefined) partition.unfetchedSinceMillis = undefined
  else if (!isUnreachable(error)) clusterStatus.unreadable = ongoing(clusterStatus.unreadable, error, nowMillis)
}
