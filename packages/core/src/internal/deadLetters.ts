/**
 * Publishes dead letters of one binding: acknowledged before the source record counts as finished, repeated for as long as it takes, and never able to
 * stall another partition (rulings 17, 20 to 24).
 */
import { Clock, Effect, Result, Schedule, Scope, Semaphore } from "effect"
import type { Broker, Producer } from "../Broker.ts"
import type { BrokerError } from "../BrokerError.ts"
import type { ConsumerRecord, Header, ProducerRecord } from "../ConsumerRecord.ts"
import * as DeadLetterHeaders from "./deadLetterHeaders.ts"
import type { BindingDefinition } from "./definition.ts"
import type { Undecodable } from "./delivery.ts"
import type { Failure } from "./failure.ts"
import type { Partition } from "./partition.ts"

export interface DeadLetter {
  readonly partition: Partition
  readonly record: ConsumerRecord
  readonly reason: DeadLetterHeaders.DeadLetterReason
  readonly failure: Failure
  readonly undecodable: Undecodable | undefined
  readonly attempts: number
  readonly firstFailureMillis: number
  /** Told of every refused attempt. */
  readonly onRefused: (topic: string, error: BrokerError, attempt: number) => void
}

type Send = (record: ProducerRecord) => Effect.Effect<unknown, BrokerError>

export interface DeadLetters {
  readonly topic: string
  /** True when the copy is acknowledged; false when the partition stopped first, and then there is none that counts. */
  readonly publish: (letter: DeadLetter) => Effect.Effect<boolean>
  /** The same, published by other means, such as within a transaction. */
  readonly through: (send: Send) => DeadLetters
  /** Why the publisher cannot publish at the moment; undefined when it can. */
  readonly failing: () => BrokerError | undefined
}

/** Waits between attempts of a publish: 100 ms doubling up to 10 s. */
const refused = Schedule.min([Schedule.exponential("100 millis", 2), Schedule.spaced("10 seconds")])

/** At the end of a binding nobody waits for a dead letter any more: a copy that is not acknowledged does not count. */
const closeMillis = 1_000

/** The producer is made when the first dead letter is published, and closed with the binding, after its consumers. */
export const make = Effect.fnUntraced(function* (
  definition: BindingDefinition<unknown>,
  broker: Broker["Service"]
): Effect.fn.Return<DeadLetters, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const topic = definition.naming.deadLetter(definition)
  const acquiring = Semaphore.makeUnsafe(1)
  let producer: Producer | undefined
  let failing: BrokerError | undefined

  const acquire = Semaphore.withPermit(
    acquiring,
    Effect.suspend(() => {
      if (producer !== undefined) return Effect.succeed(producer)
      return broker.producer({ acks: "all", idempotent: true, closeTimeout: closeMillis }).pipe(
        Scope.provide(scope),
        Effect.tap((made) => Effect.sync(() => (producer = made)))
      )
    })
  )

  const createTopic = Effect.scoped(
    Effect.gen(function* () {
      const admin = yield* broker.admin
      const source = yield* admin.describeTopic(definition.topic)
      const { partitions, replicationFactor } = source
      yield* admin.createTopics([{ topic, partitions, replicationFactor }])
    })
  ).pipe(Effect.catchTag("TopicExists", () => Effect.void))

  /** A record without key keeps its partition number where the target has it, so that neighbours stay together. */
  const samePartition = (record: ConsumerRecord) =>
    Effect.scoped(Effect.flatMap(broker.admin, (admin) => admin.describeTopic(topic))).pipe(
      Effect.map(({ partitions }) => (record.partition < partitions ? record.partition : undefined)),
      Effect.catch(() => Effect.succeed(undefined))
    )

  /** Whether the trouble is mended, so that the next attempt need not wait. */
  const heal = (error: BrokerError): Effect.Effect<boolean> => {
    if (error._tag !== "UnknownTopic" || definition.missingTopics === "wait") return Effect.succeed(false)
    return Effect.match(createTopic, { onSuccess: () => true, onFailure: () => false })
  }

  const publishThrough = (send: Send): DeadLetters["publish"] =>
    Effect.fnUntraced(function* (letter) {
      const { record, partition } = letter
      const nextWait = yield* Schedule.toStep(refused)
      let headers = headersOf(letter, yield* Clock.currentTimeMillis)
      for (let attempt = 1; !partition.stopping; attempt++) {
        const target = record.key === null ? yield* samePartition(record) : undefined
        const result = yield* Effect.result(send(copyOf(record, topic, headers, target)))
        if (Result.isSuccess(result)) {
          failing = undefined
          return true
        }
        if ((yield* heal(result.failure)) && attempt === 1) continue
        failing = result.failure
        letter.onRefused(topic, result.failure, attempt)
        if (result.failure._tag === "RecordTooLarge") headers = DeadLetterHeaders.withoutForensics(headers)
        const [, wait] = yield* Effect.orDie(nextWait(yield* Clock.currentTimeMillis, undefined))
        yield* partition.until(Effect.sleep(wait))
      }
      return false
    })

  const through = (send: Send): DeadLetters => ({
    topic,
    publish: publishThrough(send),
    through,
    failing: () => failing
  })
  return through((record) => Effect.flatMap(acquire, (open) => open.send(record)))
})

const headersOf = (letter: DeadLetter, nowMillis: number): ReadonlyArray<Header> => {
  const { record, failure, undecodable } = letter
  return DeadLetterHeaders.make({
    record,
    origin: record,
    failure,
    ...(undecodable === undefined ? {} : { undecodable }),
    reason: letter.reason,
    tier: 0,
    totalAttempts: letter.attempts,
    firstFailureMillis: letter.firstFailureMillis,
    trail: [{ tier: 0, exceptionClass: failure.className, exhaustedAtMillis: nowMillis, attempts: letter.attempts }],
    nowMillis
  })
}

const copyOf = (
  record: ConsumerRecord,
  topic: string,
  headers: ReadonlyArray<Header>,
  partition: number | undefined
): ProducerRecord => ({
  topic,
  key: record.key,
  value: record.value,
  headers,
  ...(partition === undefined ? {} : { partition })
})
