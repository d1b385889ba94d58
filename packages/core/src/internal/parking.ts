/**
 * Publishes copies of records that could not be handled, to a retry topic or to the dead letter topic: acknowledged before the source record counts as
 * finished, repeated for as long as it takes, and never able to stall another partition (rulings 17, 20 to 24).
 */
import { Clock, Effect, Result, Schedule, Scope } from "effect"
import type { Broker, Producer } from "../Broker.ts"
import type { BrokerError } from "../BrokerError.ts"
import type { ConsumerRecord, Header, ProducerRecord, RecordMetadata } from "../ConsumerRecord.ts"
import type { Unpublished } from "../Snapshot.ts"
import type { BindingDefinition } from "./definition.ts"
import * as OtherHeaders from "./otherHeaders.ts"
import type { Partition } from "./partition.ts"
import * as SingleFlight from "./singleFlight.ts"
import * as TargetTopics from "./targetTopics.ts"

export interface Copy {
  readonly partition: Partition
  readonly record: ConsumerRecord
  /** Where it goes. */
  readonly topic: string
  /** All headers of the copy. */
  readonly headers: ReadonlyArray<Header>
  /** Told of every refused attempt. */
  readonly onRefused: (error: BrokerError, attempt: number) => void
  /** Told of the copy when it is acknowledged, as it lies in its topic. */
  readonly onStored?: ((stored: ConsumerRecord) => void) | undefined
}

type Send = (record: ProducerRecord) => Effect.Effect<RecordMetadata, BrokerError>

export interface Parking {
  /** True when the copy is acknowledged; false when the partition stopped first, and then there is none that counts. */
  readonly publish: (copy: Copy) => Effect.Effect<boolean>
  /** The same, published by other means, such as within a transaction. */
  readonly through: (send: Send) => Parking
  /** The copies that cannot be published at the moment; undefined when there are none. */
  readonly unpublished: () => Unpublished | undefined
  /** Makes the retry topics that are missing, where that is possible now. */
  readonly prepare: Effect.Effect<void>
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
  broker: Broker["Service"]
): Effect.fn.Return<Parking, never, Scope.Scope> {
  const scope = yield* Effect.scope
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
  const acquireOnce = Effect.suspend(() => (producer === undefined ? acquire : Effect.succeed(producer)))
  const sendByProducer: Send = (record) =>
    producer === undefined ? Effect.flatMap(acquireOnce, (open) => open.send(record)) : producer.send(record)

  /** A record without key keeps its partition number where the target has it, so that neighbours stay together. A target that is missing is made first. */
  const samePartition = ({ record, topic }: Copy) =>
    Effect.map(partitionsOf(topic), (partitions) =>
      partitions !== undefined && record.partition < partitions ? record.partition : undefined
    )

  const partitionsOf = (topic: string) =>
    Effect.flatMap(topics.partitionsOf(topic), (partitions) =>
      partitions !== undefined || definition.missingTopics === "wait"
        ? Effect.succeed(partitions)
        : Effect.andThen(Effect.ignore(topics.create(topic)), topics.partitionsOf(topic))
    )

  /** Whether the trouble is mended, so that the next attempt need not wait. */
  const heal = (error: BrokerError, topic: string): Effect.Effect<boolean> => {
    if (error._tag !== "UnknownTopic" || definition.missingTopics === "wait") return Effect.succeed(false)
    return Effect.match(topics.create(topic), { onSuccess: () => true, onFailure: () => false })
  }

  const stored = (copy: Copy, { topic, partition, offset }: RecordMetadata): Effect.Effect<boolean> => {
    if (copy.onStored === undefined) return acknowledged
    const { onStored, record, headers } = copy
    return Effect.map(Clock.currentTimeMillis, (timestamp) => {
      onStored({ topic, partition, offset, timestamp, key: record.key, value: record.value, headers })
      return true
    })
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
          const sinceMillis = refusals?.sinceMillis ?? (yield* Clock.currentTimeMillis)
          refusals = { topic, error, sinceMillis }
          copy.onRefused(error, attempt)
          if (error._tag === "RecordTooLarge") headers = OtherHeaders.slimmer(copy.headers, ++tooLarge)
          const [, wait] = yield* Effect.orDie(nextWait(yield* Clock.currentTimeMillis, undefined))
          yield* partition.until(Effect.sleep(wait))
          if (partition.stopping) return false
        }
        const result = yield* Effect.result(send(yield* addressed({ ...copy, headers })))
        if (Result.isSuccess(result)) return yield* stored({ ...copy, headers }, result.success)
        error = result.failure
      }
      return false
    })

  const addressed = (copy: Copy): Effect.Effect<ProducerRecord> =>
    copy.record.key === null
      ? Effect.map(samePartition(copy), (target) => producerRecord(copy, target))
      : Effect.succeed(producerRecord(copy, undefined))

  const publishThrough =
    (send: Send): Parking["publish"] =>
    (copy) =>
      Effect.suspend(() => {
        if (copy.partition.stopping) return Effect.succeed(false)
        const sent =
          copy.record.key === null ? Effect.flatMap(addressed(copy), send) : send(producerRecord(copy, undefined))
        return Effect.matchEffect(sent, {
          onSuccess: (metadata) => stored(copy, metadata),
          onFailure: (error) => publishAgain(send, copy, error)
        })
      })

  const through = (send: Send): Parking => ({
    publish: publishThrough(send),
    through,
    unpublished: () => (refusals === undefined ? undefined : { ...refusals, copies: refusedCopies }),
    prepare: definition.tiers.count === 0 ? Effect.void : Effect.andThen(topics.prepare, Effect.ignore(acquireOnce))
  })
  return through(sendByProducer)
})

const acknowledged = Effect.succeed(true)

const producerRecord = ({ record, topic, headers }: Copy, partition: number | undefined): ProducerRecord => ({
  topic,
  key: record.key,
  value: record.value,
  headers,
  ...(partition === undefined ? {} : { partition })
})
