/**
 * Notes in the replay journal what the consumer's commits do not tell: which dead letters the custom handler failed for, so that counts and lists show them (ruling 75),
 * and which ones of former names it has handled, which it may have passed over before the group adopted the name. Each partition has its own notes for as long as it is assigned.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import type { Broker, Producer } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord, ProducerRecord } from "../../ConsumerRecord.ts"
import type { OngoingFailures } from "../observe/ongoingFailures.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as Journal from "../replay/replayJournal.ts"
import * as ReplayProgress from "../replay/replayProgress.ts"
import * as TopicScan from "../replay/topicScan.ts"

export interface Options extends CopyOwner.Groups {
  readonly broker: Broker["Service"]
  readonly deadLetterTopic: string
  readonly failures: Pick<OngoingFailures, "failed" | "worked">
}

export interface Notes {
  /**
   * Writes what the handler's result changes: nothing for a success with a record of the group's own name, as a rule. Waits while the cluster does not answer. When the cluster refuses the note, for want of
   * a right, health shows it, and the note is written with the next one: a missing right never stops the handler.
   */
  readonly note: (record: ConsumerRecord, hasFailed: boolean) => Effect.Effect<void>
}

/** The part of the strategy that health names. */
const noting = "journal of failed dead letters"

const retries = Schedule.spaced("1 second")

/** Most notes that wait for the right to write them. Beyond, the oldest is given up. */
const mostWaiting = 1000

/** Makes the notes of partitions in the scope of a session. Asks nothing of the cluster before the first record. */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<(partition: number) => Effect.Effect<Notes>, never, Scope.Scope> {
  const scope = yield* Effect.scope
  let producer: Producer | undefined

  /** The journal exists from then on. */
  const connect = Effect.gen(function* () {
    yield* Effect.scoped(
      Effect.flatMap(options.broker.admin, (admin) => Journal.ensure(admin, options.deadLetterTopic))
    )
    producer = yield* Scope.provide(options.broker.producer(), scope)
    return producer
  })
  const connected = Effect.suspend(() => (producer === undefined ? connect : Effect.succeed(producer)))

  const write = (entries: ReadonlyArray<ProducerRecord>): Effect.Effect<boolean> =>
    watched(
      options,
      Effect.flatMap(connected, ({ sendAll }) => sendAll(entries))
    ).pipe(
      Effect.as(true),
      Effect.catch(() => Effect.succeed(false))
    )

  return (partition) => Effect.map(notedBefore(options, partition), (noted) => notesOf(options, noted, write))
})

const notesOf = (
  { deadLetterTopic, groupId, adopts }: Options,
  noted: ReadonlyMap<bigint, number>,
  write: (entries: ReadonlyArray<ProducerRecord>) => Effect.Effect<boolean>
): Notes => {
  const topic = Journal.topicOf(deadLetterTopic)
  let waiting: ReadonlyArray<ProducerRecord> = []
  return {
    note: (record, hasFailed) => {
      const add = (entry: ProducerRecord) => {
        waiting = [...waiting, entry].slice(-mostWaiting)
      }
      if (hasFailed) add(Journal.recordEntry("failed", topic, groupId, record))
      // The handler failed for it, and the process ended before the commit.
      else if (noted.get(record.offset) === record.timestamp)
        add(Journal.tombstone("failed", topic, groupId, record.partition, record.offset))
      if (!hasFailed && CopyOwner.formerName(record, adopts) !== undefined)
        add(Journal.recordEntry("adopted", topic, groupId, record))
      if (waiting.length === 0) return Effect.void
      return Effect.map(write(waiting), (isWritten) => {
        if (isWritten) waiting = []
      })
    }
  }
}

/** The records of a partition that are noted as failed. None where the journal does not exist, or may not be read. */
const notedBefore = (options: Options, partition: number): Effect.Effect<ReadonlyMap<bigint, number>> => {
  const { broker, groupId, deadLetterTopic } = options
  const topic = Journal.topicOf(deadLetterTopic)
  const read = Effect.gen(function* () {
    const admin = yield* broker.admin
    const logOffsets = yield* ReplayProgress.logOffsetsOf(admin, topic)
    if (logOffsets.every(({ logStart, logEnd }) => logStart >= logEnd)) return none
    const scan = yield* TopicScan.open({ broker, admin })
    const journals = yield* Journal.load(scan, topic, logOffsets, [groupId])
    return journals.get(groupId)?.failed.get(partition) ?? none
  })
  return watched(options, Effect.scoped(read)).pipe(Effect.catch(() => Effect.succeed(none)))
}

const none: ReadonlyMap<bigint, number> = new Map()

/** Tries again while the error may pass. Health shows the error until it works. */
const watched = <A>({ failures }: Options, work: Effect.Effect<A, BrokerError>): Effect.Effect<A, BrokerError> =>
  work.pipe(
    Effect.tapError((error) => Effect.sync(() => failures.failed(noting, error))),
    Effect.retry({ schedule: retries, while: ({ retryable }) => retryable }),
    Effect.tap(() => Effect.sync(() => failures.worked(noting)))
  )
