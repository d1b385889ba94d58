/**
 * The strategy CUSTOM: a member of group `{groupId}.dlt` passes each record of the dead letter topic to the user's handler, in order per partition. It commits each
 * record after its handler has ended, whether that succeeded or failed (rulings 33 and 34), and notes a failed one before that (ruling 75). Dead letters of other
 * groups are passed over (ruling 71).
 */
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type {
  AssignedPartition,
  Broker,
  ConsumerEvent,
  ConsumerSession,
  OffsetCommit,
  RecordChunk
} from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import { partitionKey, type TopicPartition } from "../../ConsumerRecord.ts"
import * as DeadLetterRecord from "../../DeadLetterRecord.ts"
import type { Failure } from "../../Failure.ts"
import * as TopicName from "../../TopicName.ts"
import { awaitAtMost } from "../base/awaitAtMost.ts"
import { restartBackoff } from "../base/restartBackoff.ts"
import * as Defect from "../failure/defect.ts"
import * as Failures from "../failure/failure.ts"
import type { OngoingFailures } from "../observe/ongoingFailures.ts"
import * as PassedOver from "../observe/passedOver.ts"
import * as CommitMetadata from "../partition/commitMetadata.ts"
import * as FormerTopic from "../partition/formerTopic.ts"
import * as StartPosition from "../partition/startPosition.ts"
import * as CopyOwner from "../record/copyOwner.ts"
import * as LetterCall from "./letterCall.ts"
import type { OnEvent } from "./strategyEvents.ts"
import * as FailedLetters from "./strategyFailedLetters.ts"
import type { UnreadableLetters } from "./strategyUnreadable.ts"

export interface Options<R> extends CopyOwner.Groups {
  readonly broker: Broker["Service"]
  readonly deadLetterTopic: string
  readonly handler: LetterCall.Options<R>["handler"]
  /** The longest time of one call of the handler. */
  readonly timeoutMillis: number
  readonly onEvent: OnEvent
  readonly failures: Pick<OngoingFailures, "failed" | "worked">
  /** The largest record of a compressed batch that the handler gets. */
  readonly maxBufferedBytes: number
  readonly unreadable: UnreadableLetters
}

/** The parts of the strategy that health names. */
const consuming = "consumer"
const committing = "commits"

/** A retryable commit is retried for five seconds. */
const commitRetries = Schedule.max([Schedule.spaced("500 millis"), Schedule.recurs(10)])

/** Longest time that a revoked partition waits for its running handler. */
const drainMillis = 10_000

/** Runs sessions one after the other until it is interrupted. */
export const run = <R>(options: Options<R>): Effect.Effect<never, never, R> => Effect.scoped(runSessions(options))

const runSessions = Effect.fnUntraced(function* <R>(
  options: Options<R>
): Effect.fn.Return<never, never, R | Scope.Scope> {
  const onForeign = yield* PassedOver.make<"dead-letter">(({ topic, owner, records }) =>
    options.onEvent({ _tag: "ForeignLettersPassedOver", topic, owner, records })
  )
  const session = Effect.scoped(consume({ ...options, onForeign })).pipe(
    Effect.catchDefect(
      (defect): Effect.Effect<never, BrokerError> => Effect.fail(Defect.toBrokerError("consume", defect))
    )
  )
  const nextWait = yield* Schedule.toStep(restartBackoff)
  while (true) {
    const error = yield* Effect.flip(session)
    const [, wait] = yield* Effect.orDie(nextWait(yield* Clock.currentTimeMillis, undefined))
    options.failures.failed(consuming, error)
    options.failures.worked(committing)
    options.onEvent({ _tag: "StrategyFailed", error, retryInMillis: Duration.toMillis(wait) })
    yield* Effect.sleep(wait)
  }
})

type Assigned = Extract<ConsumerEvent, { readonly _tag: "Assigned" }>

/** With the counter of other groups' dead letters. */
interface Counting<R> extends Options<R> {
  readonly onForeign: PassedOver.Count<"dead-letter">
}

const consume = Effect.fnUntraced(function* <R>(
  options: Counting<R>
): Effect.fn.Return<never, BrokerError, R | Scope.Scope> {
  const { broker, groupId, deadLetterTopic, maxBufferedBytes, unreadable } = options
  const notesOf = yield* FailedLetters.make(options)
  const session = yield* broker.consumer({
    ...{ groupId: TopicName.deadLetterGroup(groupId), topics: [deadLetterTopic] },
    maxRecordBytes: maxBufferedBytes
  })
  const readers = new Map<string, Reader>()
  const fibers = yield* Scope.make()
  // A partition whose fiber died would stand in silence: the session ends instead, and the next one begins behind its last commit.
  const broken = Deferred.makeUnsafe<never>()
  yield* Effect.addFinalizer(() =>
    Effect.forEach(readers.values(), drain, { concurrency: "unbounded", discard: true }).pipe(
      Effect.andThen(Scope.close(fibers, Exit.void)),
      Effect.andThen(Effect.sync(unreadable.releaseAll))
    )
  )

  const assign = Effect.fnUntraced(function* (event: Assigned, found: AssignedPartition) {
    const { assigned } = FormerTopic.withoutCommits(event, found, session.clusterId)
    const { topic, partition } = assigned
    const metadata = CommitMetadata.ofAssigned(assigned, session.clusterId)
    const of = { topic, partition, generation: event.generation }
    const at = metadata === undefined ? of : { ...of, metadata }
    const chunks = yield* Queue.make<RecordChunk, Cause.Done>()
    const notes = yield* Effect.cached(notesOf(assigned.partition))
    const reader: Reader = { at, chunks, notes, stopping: false, fiber: undefined }
    readers.set(keyOf(assigned), reader)
    const work = Stream.runForEachWhile(Stream.fromQueue(chunks), (chunk) => handle(options, session, reader, chunk))
    reader.fiber = yield* Effect.forkIn(
      Effect.catchDefect(work, (defect) => Deferred.die(broken, defect)),
      fibers
    )
    yield* session.seek(assigned, StartPosition.afterAssignment(assigned, "earliest").position)
  })

  const remove = (partitions: ReadonlyArray<TopicPartition>, stop: (reader: Reader) => Effect.Effect<unknown>) => {
    const leaving = partitions.flatMap((partition) => readers.get(keyOf(partition)) ?? [])
    for (const { at } of leaving) {
      readers.delete(keyOf(at))
      unreadable.release(at)
    }
    return Effect.forEach(leaving, stop, { concurrency: "unbounded", discard: true })
  }

  const react = (event: ConsumerEvent) => {
    switch (event._tag) {
      case "Assigned":
        options.failures.worked(consuming)
        return Effect.forEach(event.partitions, (partition) => assign(event, partition), { discard: true })
      case "Revoked":
        return Effect.asVoid(Effect.forkIn(Effect.andThen(remove(event.partitions, drain), event.release), fibers))
      case "Lost":
        return Effect.asVoid(Effect.forkIn(remove(event.partitions, interrupt), fibers))
      case "Unreadable": {
        const reader = readers.get(keyOf(event))
        return reader === undefined ? Effect.void : unreadable.hold(event, movesOf(session, reader))
      }
      case "OutOfRange":
        unreadable.release(event)
        return session.seek(event, StartPosition.afterOutOfRange(event).position)
      case "Fetched": {
        const reader = readers.get(keyOf(event.chunk))
        return reader?.at.generation === event.chunk.generation ? take(session, reader, event.chunk) : Effect.void
      }
    }
  }
  return yield* Effect.raceFirst(
    Effect.forever(Effect.flatMap(Queue.take(session.events), react)),
    Deferred.await(broken)
  )
})

/** An assigned partition and the fiber that reads it. */
interface Reader {
  /** A commit without its offset. */
  readonly at: Omit<OffsetCommit, "offset">
  readonly chunks: Queue.Queue<RecordChunk, Cause.Done>
  /** Read with the first record. */
  readonly notes: Effect.Effect<FailedLetters.Notes>
  stopping: boolean
  fiber: Fiber.Fiber<unknown, unknown> | undefined
}

/** One chunk at a time: the partition resumes once this chunk is handled. */
const take = (session: ConsumerSession, reader: Reader, chunk: RecordChunk): Effect.Effect<void> =>
  Effect.asVoid(Effect.andThen(session.pause([chunk]), Queue.offer(reader.chunks, chunk)))

/** How a partition goes on behind a batch that cannot be read. */
const movesOf = (session: ConsumerSession, reader: Reader) => ({
  seek: (offset: bigint) => session.seek(reader.at, offset),
  pass: (nextOffset: bigint) => {
    const { topic, partition, generation } = reader.at
    // Without records: the commit follows those of the records before it.
    const gap = { topic, partition, generation, records: [], nextOffset, highWatermark: nextOffset, bytes: 0 }
    return Effect.andThen(take(session, reader, gap), session.seek(reader.at, nextOffset))
  }
})

/** Waits for the running handler within a limit, then interrupts it. */
const drain = (reader: Reader): Effect.Effect<void> => {
  reader.stopping = true
  const ended = reader.fiber === undefined ? Effect.void : Effect.asVoid(Fiber.await(reader.fiber))
  return Queue.end(reader.chunks).pipe(
    Effect.andThen(awaitAtMost(ended, drainMillis)),
    Effect.andThen(interrupt(reader))
  )
}

const interrupt = (reader: Reader): Effect.Effect<void> => {
  reader.stopping = true
  return reader.fiber === undefined ? Effect.void : Fiber.interrupt(reader.fiber)
}

/** Handles the records of a chunk. Answers whether the reader continues. */
const handle = Effect.fnUntraced(function* <R>(
  options: Counting<R>,
  session: ConsumerSession,
  reader: Reader,
  chunk: RecordChunk
) {
  const { onEvent, failures } = options
  for (const record of chunk.records) {
    if (reader.stopping) return false
    const owner = CopyOwner.foreign(record, options)
    if (owner !== undefined) {
      options.onForeign(record.topic, owner, "dead-letter")
      continue
    }
    const notes = yield* reader.notes
    const letter = DeadLetterRecord.read(record)
    const exit = yield* LetterCall.call(options, letter)
    if (Exit.isFailure(exit)) onEvent({ _tag: "LetterHandlerFailed", letter, failure: failureOf(exit.cause) })
    yield* notes.note(record, Exit.isFailure(exit))
    if (!(yield* commit(session, reader, record.offset + 1n, failures))) return false
  }
  if (reader.stopping || !(yield* commit(session, reader, chunk.nextOffset, failures))) return false
  yield* session.resume([reader.at])
  return true
})

/** Answers false when the partition has another owner. The next commit makes up for one that failed otherwise. */
const commit = (
  session: ConsumerSession,
  { at }: Reader,
  offset: bigint,
  failures: Pick<OngoingFailures, "failed" | "worked">
): Effect.Effect<boolean> =>
  session.commit([{ ...at, offset }]).pipe(
    Effect.retry({ schedule: commitRetries, while: (error) => error.retryable }),
    Effect.match({
      onSuccess: () => {
        failures.worked(committing)
        return true
      },
      onFailure: (error) => {
        if (error._tag === "StaleAssignment") return false
        failures.failed(committing, error)
        return true
      }
    })
  )

const keyOf = ({ topic, partition }: TopicPartition): string => partitionKey(topic, partition)

const failureOf = (cause: Cause.Cause<unknown>): Failure =>
  Failures.fromCause(cause) ?? Failures.fromUnknown(new Error("The dead letter handler interrupted itself."))
