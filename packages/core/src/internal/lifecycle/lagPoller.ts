/**
 * Looks at every partition now and then, so that a snapshot need not: whether its position moves, and where its log ends when no fetch says so, because it is
 * paused or because nothing comes. What the answers, or their lack, say of the cluster and of the fetches goes into the snapshots, too. One round for all
 * bindings, with one connection for each cluster that is asked.
 */
import { Clock, Effect, Option, Result } from "effect"
import type { Admin, Broker, PartitionOffsets } from "../../Broker.ts"
import { type BrokerError, RequestTimedOut } from "../../BrokerError.ts"
import type { ContainerState } from "../../EventBusError.ts"
import type { Trouble } from "../../Snapshot.ts"
import type { Partition } from "../partition/partition.ts"
import * as PauseReasons from "../partition/pauseReasons.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"

/** What is watched of a binding. */
export interface Watched {
  readonly definition: Pick<BindingDefinition<unknown>, "isolation" | "topic">
  readonly broker: Broker["Service"]
  readonly state: () => ContainerState
  readonly partitions: () => ReadonlyArray<Partition>
  readonly outlook: Outlook
}

/** What the cluster said of a binding when it was asked last. Written here only. */
export interface Outlook {
  /** It said nothing. */
  unreachable: Trouble | undefined
  /** Nothing can be read from the main topic. Asked only while no partition of it is ours. */
  unreadable: Trouble | undefined
}

/** How many topics one cluster is asked about at a time. */
const topicsAtOnce = 8

/** Looks every `roundMillis` until it is interrupted. */
export const run = (bindings: () => ReadonlyArray<Watched>, roundMillis: number): Effect.Effect<never> => {
  const heard = new WeakMap<Partition, number>()
  /** Whether no fetch has said anything since the last round. A new partition knows its log end from its assignment. */
  const isSilent = (partition: Partition): boolean => {
    const before = heard.get(partition)
    heard.set(partition, partition.chunksTaken)
    return before === partition.chunksTaken
  }
  const questionsOf = (binding: Watched, nowMillis: number): ReadonlyArray<Question> => {
    const { state, definition, partitions } = binding
    if (state() !== "RUNNING" && state() !== "PAUSED") return []
    const owned = partitions()
    for (const partition of owned) partition.waitingMillis(nowMillis)
    if (owned.length === 0) return [{ binding, topic: definition.topic, partition: undefined, heard: 0 }]
    return owned
      .filter(isSilent)
      .map((partition) => ({ binding, topic: partition.topic, partition, heard: partition.chunksTaken }))
  }
  const round = Effect.gen(function* () {
    const nowMillis = yield* Clock.currentTimeMillis
    // A cluster that is away must not keep the others waiting, nor the next round.
    yield* Effect.forEach(
      Map.groupBy(bindings(), ({ broker }) => broker),
      ([broker, served]) => {
        const questions = served.flatMap((binding) => questionsOf(binding, nowMillis))
        return Effect.map(ask(broker, questions, { nowMillis, roundMillis }), (silence) => {
          for (const { outlook } of served) outlook.unreachable = begun(outlook.unreachable, silence, nowMillis)
        })
      },
      { concurrency: "unbounded", discard: true }
    )
  })
  return Effect.forever(Effect.andThen(Effect.sleep(roundMillis), round))
}

interface Question {
  readonly binding: Watched
  readonly topic: string
  /** Undefined where only the topic is asked about. */
  readonly partition: Partition | undefined
  /** Chunks that had been taken when it was asked. */
  readonly heard: number
}

/** Asks once for each topic; answers why nobody of the cluster did. */
const ask = (
  broker: Broker["Service"],
  questions: ReadonlyArray<Question>,
  { nowMillis, roundMillis }: { readonly nowMillis: number; readonly roundMillis: number }
): Effect.Effect<BrokerError | undefined> => {
  if (questions.length === 0) return Effect.succeed(undefined)
  let silence: BrokerError | undefined
  let answered = false
  const askOfTopic = (admin: Admin, asked: ReadonlyArray<Question>, { topic, binding }: Question) =>
    Effect.match(admin.topicOffsets(topic, binding.definition.isolation), {
      onSuccess: (ends) => {
        answered = true
        for (const question of asked) tell(question, ends, nowMillis)
      },
      onFailure: (error) => {
        if (isAway(error)) silence = error
        else answered = true
        for (const question of asked) tellNot(question, error, nowMillis)
      }
    })
  const askAll = Effect.scoped(
    Effect.flatMap(broker.admin, (admin) =>
      Effect.forEach(
        Map.groupBy(questions, ({ topic, binding }) => `${binding.definition.isolation} ${topic}`).values(),
        (asked) => askOfTopic(admin, asked, asked[0]!),
        { concurrency: topicsAtOnce, discard: true }
      )
    )
  )
  return Effect.timeoutOption(Effect.result(askAll), roundMillis).pipe(
    Effect.map((asked) => {
      if (answered) return undefined
      if (Option.isNone(asked)) return new RequestTimedOut({ operation: "asking for log ends", millis: roundMillis })
      return Result.isFailure(asked.value) ? asked.value.failure : silence
    })
  )
}

/** Nobody answered. */
export const isAway = (error: BrokerError): boolean =>
  error._tag === "BrokerUnavailable" || error._tag === "RequestTimedOut"

/** A trouble goes on, begins or is over. */
const begun = (before: Trouble | undefined, error: BrokerError | undefined, nowMillis: number): Trouble | undefined =>
  error === undefined ? undefined : { error, sinceMillis: before?.sinceMillis ?? nowMillis }

const tell = (
  { binding, partition, heard }: Question,
  ends: ReadonlyArray<PartitionOffsets>,
  nowMillis: number
): void => {
  binding.outlook.unreadable = undefined
  const found = ends.find((end) => end.partition === partition?.partition)
  // What a fetch said meanwhile is newer.
  if (partition === undefined || found === undefined || partition.chunksTaken !== heard) return
  partition.logEnd = found.logEnd
  const isStarved = PauseReasons.fetchAllowed(partition.reasons) && partition.held.records === 0 && partition.lag() > 0n
  partition.unfetchedSinceMillis = isStarved ? (partition.unfetchedSinceMillis ?? nowMillis) : undefined
}

/** A log end that cannot be had stays what it was, and says nothing against the fetches. */
const tellNot = ({ binding: { outlook }, partition }: Question, error: BrokerError, nowMillis: number): void => {
  if (partition !== undefined) partition.unfetchedSinceMillis = undefined
  else if (!isAway(error)) outlook.unreadable = begun(outlook.unreadable, error, nowMillis)
}
