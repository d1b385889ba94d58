/**
 * Publishes copies of records that could not be handled, to a retry topic or to the dead letter topic: acknowledged before the source record counts as
 * finished, repeated for as long as it takes, and never able to stall another partition (rulings 17, 20 to 24).
 */
import { Clock, Effect, Result, Schedule, Scope } from "effect"
import type { Broker, Producer } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { ProducerRecord, RecordMetadata } from "../../ConsumerRecord.ts"
import type { Unpublished } from "../../Snapshot.ts"
import * as SingleFlight from "../base/singleFlight.ts"
import type { Copy } from "../record/copy.ts"
import * as DeadLetterRecordHeaders from "../record/deadLetterRecordHeaders.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import type * as RetryTopics from "./retryTopics.ts"
import * as TargetTopics from "./targetTopics.ts"

type Send = (record: ProducerRecord) => Effect.Effect<RecordMetadata, BrokerError>

/** Publishes a copy: true when it is acknowledged; false when the partition stopped first, and then there is none that counts. */
export type Publish = (copy: Copy) => Effect.Effect<boolean>

/**
 * Told what became of one of several copies, by its index: whether it is acknowledged, as for `Publish`, or that it was refused, with what goes on trying.
 */
export type OnAnswer = (index: number, answer: boolean | Effect.Effect<boolean>) => void

export interface CopyPublisher {
  readonly publish: Publish
  /**
   * Publishes copies of records of one partition to one topic, in order; returns when each is answered. Also when the partition has stopped since they were
   * taken over: what was handled behind them could not be committed without them.
   */
  readonly publishEach: (copies: ReadonlyArray<Copy>, onAnswer: OnAnswer) => Effect.Effect<void>
  /** Publishes by other means, such as within a transaction. */
  readonly through: (send: Send) => { readonly publish: Publish }
  /** The copies that cannot be published at the moment; undefined when there are none. */
  readonly unpublished: () => Unpublished | undefined
  /** Makes the retry topics that are missing, where that is possible now. Fails where they, and the dead letter topic, have to be there and are not. */
  readonly prepare: Effect.Effect<void, BrokerError>
}

/** Waits between attempts of a publish: 100 ms doubling up to 10 s. */
const refused = Schedule.min([Schedule.exponential("100 millis", 2), Schedule.spaced("10 seconds")])

/** At the end of a binding nobody waits for a copy any more: one that is not acknowledged does not count. */
const closeMillis = 1_000

/**
 * The producer is made when the binding starts to read tiers, or else when the first copy is published, and closed with the binding, after its
 * consumers.
 */
export const make = Effect.fnUntraced(function* (
  definition: BindingDefinition<unknown>,
  broker: Broker["Service"],
  prepareRetryTopics: RetryTopics.Prepare
): Effect.fn.Return<CopyPublisher, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const clock = yield* Clock.Clock
  const topics = TargetTopics.make(definition, broker, scope)
  let producer: Producer | undefined
  let refusals: Omit<Unpublished, "copies"> | undefined
  let refusedCopies = 0

  const acquire = SingleFlight.make(
    broker.producer({ acks: "all", idempotent: true, closeTimeout: closeMillis }).pipe(
      Scope.provide(scope),
      Effect.tap((made) => Effect.sync(() => (producer = made)))
    ),
    scope
  )
  const withProducer = <A, E>(use: (producer: Producer) => Effect.Effect<A, E>) =>
    producer === undefined ? Effect.flatMap(acquire, use) : use(producer)
  const sendByProducer: Send = (record) => withProducer((open) => open.send(record))

  /** A record without key keeps its partition number where the target has it, so that neighbours stay together. A target that is missing is made first. */
  const samePartition = ({ record, topic }: Copy) =>
    Effect.map(partitionsOf(topic), (partitions) =>
      partitions !== undefined && record.partition < partitions ? record.partition : undefined
    )

  const partitionsOf = (topic: string) =>
    Effect.flatMap(topics.partitionsOf(topic), (partitions) =>
      partitions !== undefined || definition.missingTopics !== "create"
        ? Effect.succeed(partitions)
        : Effect.andThen(Effect.ignore(topics.create(topic)), topics.partitionsOf(topic))
    )

  /** Whether the trouble is mended, so that the next attempt need not wait. */
  const heal = (error: BrokerError, topic: string): Effect.Effect<boolean> => {
    if (error._tag === "RecordRejected") return Effect.as(topics.doubt(topic), false)
    if (error._tag !== "UnknownTopic" || definition.missingTopics !== "create") return Effect.succeed(false)
    return Effect.match(topics.create(topic), { onSuccess: () => true, onFailure: () => false })
  }

  const stored = ({ onStored, record, headers }: Copy, { topic, partition, offset }: RecordMetadata): void => {
    if (onStored === undefined) return
    const { key, value } = record
    onStored({ topic, partition, offset, timestamp: clock.currentTimeMillisUnsafe(), key, value, headers })
  }

  /** What a first refusal leads to. Made only then: most copies are acknowledged at once. */
  const publishAgain = (send: Send, copy: Copy, first: BrokerError) =>
    Effect.acquireUseRelease(
      Effect.sync(() => refusedCopies++),
      () => insist(send, copy, first),
      () =>
        Effect.sync(() => {
          if (--refusedCopies === 0) refusals = undefined
        })
    )

  const insist = (send: Send, copy: Copy, first: BrokerError) =>
    Effect.gen(function* () {
      const { partition, topic } = copy
      const nextWait = yield* Schedule.toStep(refused)
      let headers = copy.headers
      let tooLarge = 0
      let error = first
      for (let attempt = 1; !partition.stopping; attempt++) {
        if (!((yield* heal(error, topic)) && attempt === 1)) {
          const sinceMillis = refusals?.sinceMillis ?? clock.currentTimeMillisUnsafe()
          refusals = { topic, error, sinceMillis }
          copy.onRefused(error, attempt)
          if (error._tag === "RecordTooLarge") headers = DeadLetterRecordHeaders.trim(copy.headers, ++tooLarge)
          const [, wait] = yield* Effect.orDie(nextWait(clock.currentTimeMillisUnsafe(), undefined))
          yield* partition.until(Effect.sleep(wait))
          if (partition.stopping) return false
        }
        const result = yield* Effect.result(send(yield* addressed({ ...copy, headers })))
        if (Result.isSuccess(result)) {
          stored({ ...copy, headers }, result.success)
          return true
        }
        error = result.failure
      }
      return false
    })

  const addressed = (copy: Copy): Effect.Effect<ProducerRecord> =>
    copy.record.key === null
      ? Effect.map(samePartition(copy), (target) => producerRecord(copy, target))
      : Effect.succeed(producerRecord(copy, undefined))

  const publishThrough =
    (send: Send): Publish =>
    (copy) =>
      Effect.suspend(() => {
        if (copy.partition.stopping) return Effect.succeed(false)
        return Effect.matchEffect(Effect.flatMap(addressed(copy), send), {
          onSuccess: (metadata) =>
            Effect.sync(() => {
              stored(copy, metadata)
              return true
            }),
          onFailure: (error) => publishAgain(send, copy, error)
        })
      })

  const publishEach: CopyPublisher["publishEach"] = (copies, onAnswer) => {
    const refused = (error: BrokerError) => (copy: Copy, index: number) =>
      onAnswer(index, publishAgain(sendByProducer, copy, error))
    const sendAt = (partition: number | undefined) =>
      withProducer(({ sendEach }) =>
        sendEach(
          copies.map((copy) => producerRecord(copy, partition)),
          (index, answer) => {
            const copy = copies[index]!
            if (Result.isFailure(answer)) return refused(answer.failure)(copy, index)
            stored(copy, answer.success)
            onAnswer(index, true)
          }
        )
      )
    return Effect.suspend(() => {
      const keyless = copies.find(({ record }) => record.key === null)
      const sent = keyless === undefined ? sendAt(undefined) : Effect.flatMap(samePartition(keyless), sendAt)
      // Only for want of a producer.
      return Effect.catch(sent, (error) => tellAll(copies, refused(error)))
    })
  }

  return {
    publish: publishThrough(sendByProducer),
    publishEach,
    through: (send) => ({ publish: publishThrough(send) }),
    unpublished: () => (refusals === undefined ? undefined : { ...refusals, copies: refusedCopies }),
    prepare: Effect.gen(function* () {
      if (definition.missingTopics === "require") yield* topics.require
      if (definition.tiers.count === 0) return
      const connected = Effect.ignore(withProducer(() => Effect.void))
      yield* Effect.all([prepareRetryTopics(definition), connected], { concurrency: 2, discard: true })
    })
  }
})

const tellAll = (copies: ReadonlyArray<Copy>, tell: (copy: Copy, index: number) => void): Effect.Effect<void> =>
  Effect.sync(() => copies.forEach(tell))

/** A copy without a key goes to `partition`, one with a key where that leads. */
const producerRecord = ({ record, topic, headers }: Copy, partition: number | undefined): ProducerRecord => {
  const { key, value } = record
  return partition === undefined || key !== null
    ? { topic, key, value, headers }
    : { topic, key, value, headers, partition }
}
