/**
 * The batches of dead letters that the custom handler's consumer cannot read. Each holds its partition until an operator passes it, or until it is gone from the topic
 * (ruling 79).
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Broker, UnreadableBatch } from "../../Broker.ts"
import { UnexpectedBrokerError } from "../../BrokerError.ts"
import { partitionKey, type RecordPosition, type TopicPartition } from "../../ConsumerRecord.ts"
import type { HeldBatch } from "../../Snapshot.ts"
import type { OngoingFailures } from "../observe/ongoingFailures.ts"
import * as UnreadableText from "../partition/unreadableText.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import type { OnEvent } from "./strategyEvents.ts"

export interface Options {
  readonly broker: Broker["Service"]
  readonly deadLetterTopic: string
  readonly onEvent: OnEvent
  readonly failures: Pick<OngoingFailures, "failed" | "worked">
}

/** How the consumer moves past a batch that it holds. */
interface Moves {
  /** Goes on at the first offset that is left in the log. */
  readonly seek: (offset: bigint) => Effect.Effect<void>
  /** Commits past the batch once the records before it are handled, and goes on there. */
  readonly pass: (nextOffset: bigint) => Effect.Effect<void>
}

export interface UnreadableLetters {
  readonly hold: (batch: UnreadableBatch, moves: Moves) => Effect.Effect<void>
  /** The partition has moved on, or has another owner. */
  readonly release: (at: TopicPartition) => void
  readonly releaseAll: () => void
  /** Everything that an operator can pass. */
  readonly list: () => ReadonlyArray<HeldBatch>
  /** Passes the batch that is held at this offset. False when there is none. */
  readonly skip: (at: RecordPosition, reason: string) => Effect.Effect<boolean>
  /** Looks every few seconds whether a purge or retention has removed a batch: a partition that is not fetched hears nothing of it. */
  readonly watch: Effect.Effect<never>
}

const lookMillis = 5_000

export const make = (options: Options): UnreadableLetters => {
  const { broker, deadLetterTopic, failures, onEvent } = options
  const held = new Map<string, { readonly batch: HeldBatch; readonly moves: Moves }>()
  const release = ({ topic, partition }: TopicPartition) => {
    if (held.delete(partitionKey(topic, partition))) failures.worked(about(topic, partition))
  }

  const look = Effect.gen(function* () {
    if (held.size === 0) return
    const logs = yield* Effect.scoped(
      Effect.flatMap(broker.admin, (admin) => ReplayProgress.logOffsetsOf(admin, deadLetterTopic))
    )
    for (const { partition, logStart } of logs) {
      const found = held.get(partitionKey(deadLetterTopic, partition))
      if (found === undefined || found.batch.offset >= logStart) continue
      release(found.batch)
      yield* found.moves.seek(logStart)
    }
  })

  return {
    hold: (event, moves) =>
      Effect.map(Clock.currentTimeMillis, (sinceMillis) => {
        const { topic, partition, offset, lastOffset, records, codec, problem, detail } = event
        const batch = { topic, partition, offset, lastOffset, records, codec, problem, detail }
        const remedy = UnreadableText.remedies[problem]
        held.set(partitionKey(topic, partition), { batch: { ...batch, remedy, sinceMillis }, moves })
        failures.failed(about(topic, partition), errorOf(batch))
      }),
    release,
    releaseAll: () => {
      for (const { batch } of Array.from(held.values())) release(batch)
    },
    list: () => Array.from(held.values(), ({ batch }) => batch),
    skip: (at, reason) =>
      Effect.gen(function* () {
        const found = held.get(partitionKey(at.topic, at.partition))
        if (found?.batch.offset !== at.offset) return false
        release(at)
        onEvent({ _tag: "UnreadableLettersSkipped", batch: found.batch, reason })
        yield* found.moves.pass(found.batch.lastOffset + 1n)
        return true
      }),
    // A look that fails is made again: the consumer itself shows what is wrong with the cluster.
    watch: Effect.forever(Effect.andThen(Effect.sleep(lookMillis), Effect.exit(look)))
  }
}

/** The part of the strategy that health names. */
const about = (topic: string, partition: number): string => `unreadable batch of ${topic}-${partition}`

const errorOf = ({ topic, partition, offset, detail, problem }: UnreadableBatch): UnexpectedBrokerError =>
  new UnexpectedBrokerError({
    operation: `Reading the batch of ${topic}-${partition} at offset ${offset}`,
    code: "UNREADABLE_BATCH",
    detail: `${detail}. ${UnreadableText.remedies[problem]} A purge with deleteUnreadable, or retention, frees the partition, too`,
    retryable: false
  })
