/**
 * Looks at every partition now and then, so that a snapshot need not: whether its position moves, and where its log ends when no fetch says so, because it is
 * paused or because nothing comes. One round for all bindings, with one connection for each cluster that is asked.
 */
import { Clock, Effect } from "effect"
import type { Admin, Broker } from "../Broker.ts"
import type { BrokerError } from "../BrokerError.ts"
import { bounded } from "./bounded.ts"
import type { BindingDefinition } from "./definition.ts"
import type { Partition } from "./partition.ts"

/** What is watched of a binding. */
export interface Watched {
  readonly definition: Pick<BindingDefinition<unknown>, "isolation">
  readonly broker: Broker["Service"]
  readonly partitions: () => ReadonlyArray<Partition>
}

const roundMillis = 10_000

/** How many topics one cluster is asked about at a time. */
const topicsAtOnce = 8

/** Looks until it is interrupted. */
export const run = (bindings: () => ReadonlyArray<Watched>): Effect.Effect<never> => {
  const heard = new WeakMap<Partition, number>()
  /** Whether no fetch has said anything since the last round. A new partition knows its log end from its assignment. */
  const isSilent = (partition: Partition): boolean => {
    const before = heard.get(partition)
    heard.set(partition, partition.chunksTaken)
    return before === partition.chunksTaken
  }
  const round = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const questions: Array<Question> = []
    for (const { broker, definition, partitions } of bindings()) {
      for (const partition of partitions()) {
        partition.waitingMillis(now)
        if (!isSilent(partition)) continue
        questions.push({ broker, partition, isolation: definition.isolation, heard: partition.chunksTaken })
      }
    }
    // A cluster that is away must not keep the others waiting, nor the next round.
    yield* Effect.forEach(
      Map.groupBy(questions, ({ broker }) => broker),
      ([broker, asked]) => bounded(Effect.ignore(ask(broker, asked)), roundMillis),
      { concurrency: "unbounded", discard: true }
    )
  })
  return Effect.forever(Effect.andThen(Effect.sleep(roundMillis), round))
}

interface Question {
  readonly broker: Broker["Service"]
  readonly partition: Partition
  readonly isolation: "read_committed" | "read_uncommitted"
  /** Chunks that had been taken when it was asked. */
  readonly heard: number
}

/** Once for each topic. One that cannot be asked about keeps what was known of it. */
const ask = (broker: Broker["Service"], questions: ReadonlyArray<Question>): Effect.Effect<void, BrokerError> =>
  Effect.scoped(
    Effect.flatMap(broker.admin, (admin) =>
      Effect.forEach(
        Map.groupBy(questions, ({ partition, isolation }) => `${isolation} ${partition.topic}`).values(),
        (asked) => Effect.ignore(askOfTopic(admin, asked)),
        { concurrency: topicsAtOnce, discard: true }
      )
    )
  )

const askOfTopic = (admin: Admin, asked: ReadonlyArray<Question>): Effect.Effect<void, BrokerError> => {
  const [first] = asked
  if (first === undefined) return Effect.void
  return Effect.map(admin.topicOffsets(first.partition.topic, first.isolation), (ends) => {
    for (const { partition, heard } of asked) {
      const found = ends.find((end) => end.partition === partition.partition)
      // What a fetch said meanwhile is newer.
      if (found !== undefined && partition.chunksTaken === heard) partition.logEnd = found.logEnd
    }
  })
}
