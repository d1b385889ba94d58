/**
 * Publishes copies of records that could not be handled, to a retry topic or to the dead letter topic: acknowledged before the source record counts as
 * finished, repeated for as long as it takes, and never able to stall another partition (rulings 17, 20 to 24 and 83).
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type { Broker, Producer } from "../../Broker.ts"
import type { BrokerError } from "../../BrokerError.ts"
import type { RecordMetadata } from "../../ConsumerRecord.ts"
import type { Unpublished } from "../../Snapshot.ts"
import * as SingleFlight from "../base/singleFlight.ts"
import type { Copy } from "../record/copy.ts"
import * as BindingAnnotations from "../settings/bindingAnnotations.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as CopyAddress from "./copyAddress.ts"
import * as RefusedCopies from "./refusedCopies.ts"
import type * as RetryTopics from "./retryTopics.ts"
import * as StillOwned from "./stillOwned.ts"
import * as TargetTopics from "./targetTopics.ts"

/**
 * Publishes a copy: true when it is acknowledged. False when the partition stopped before the publish began, or when its drain ended first: then there is no copy that
 * counts.
 */
export type Publish = (copy: Copy) => Effect.Effect<boolean>

/**
 * Gets the answer for one of several copies, by its index: whether it is acknowledged, as for `Publish`, or, for a refused copy, the effect that publishes it
 * again.
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
  readonly through: (send: RefusedCopies.Send) => { readonly publish: Publish }
  /** The copies that cannot be published at the moment; undefined when there are none. */
  readonly unpublished: () => Unpublished | undefined
  /** Creates missing retry topics where that is possible now. Fails when a retry topic or the dead letter topic has to be there and is not. */
  readonly prepare: Effect.Effect<void, BrokerError>
}

/** At the end of a binding nothing waits for a copy any more: a copy that is not acknowledged does not count. */
const closeMillis = 1_000

/**
 * The producer is created when the binding starts to read tiers, or when the first copy is published, and closed with the binding, after its
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
  const address = CopyAddress.make(definition, topics)
  let producer: Producer | undefined

  const acquire = SingleFlight.make(
    BindingAnnotations.only(
      broker.producer({ acks: "all", idempotent: true, closeTimeout: closeMillis }),
      definition
    ).pipe(
      Scope.provide(scope),
      Effect.tap((made) => Effect.sync(() => (producer = made)))
    ),
    scope
  )
  const withProducer = <A, E>(use: (producer: Producer) => Effect.Effect<A, E>) =>
    producer === undefined ? Effect.flatMap(acquire, use) : use(producer)
  const sendByProducer: RefusedCopies.Send = (record) => withProducer((open) => open.send(record))

  const stored = storedBy(clock)
  const refused = RefusedCopies.make(clock, address, stored)

  const publishThrough = publishOneBy(address, refused, stored)

  const publishEach: CopyPublisher["publishEach"] = (copies, onAnswer) => {
    const answerRefused = (error: BrokerError) => (copy: Copy, index: number) =>
      onAnswer(index, refused.publishAgain(sendByProducer, copy, error))
    const sendAt = (partition: number | undefined) =>
      withProducer(({ sendEach }) =>
        sendEach(
          copies.map((copy) => address.producerRecord(copy, partition)),
          (index, answer) => {
            const copy = copies[index]!
            if (Result.isFailure(answer)) return answerRefused(answer.failure)(copy, index)
            stored(copy, answer.success)
            onAnswer(index, true)
          }
        )
      )
    return Effect.suspend(() => {
      const keyless = copies.find(({ record, toPartition }) => record.key === null && toPartition === undefined)
      const sent = keyless === undefined ? sendAt(undefined) : Effect.flatMap(address.samePartition(keyless), sendAt)
      // This fails only when there is no producer.
      return Effect.catch(sent, (error) => Effect.sync(() => copies.forEach(answerRefused(error))))
    })
  }

  return {
    publish: publishThrough(sendByProducer),
    publishEach,
    through: (send) => ({ publish: publishThrough(send) }),
    unpublished: refused.unpublished,
    prepare: Effect.gen(function* () {
      if (definition.missingTopics === "require") yield* topics.require
      if (definition.tiers.count === 0) return
      const connected = Effect.ignore(withProducer(() => Effect.void))
      yield* Effect.all([prepareRetryTopics(definition), connected], { concurrency: 2, discard: true })
    })
  }
})

/** Publishes single copies by the given means. */
const publishOneBy =
  (address: CopyAddress.CopyAddress, refused: RefusedCopies.RefusedCopies, stored: ReturnType<typeof storedBy>) =>
  (send: RefusedCopies.Send): Publish =>
  (copy) =>
    whileOurs(
      copy,
      Effect.matchEffect(
        Effect.flatMap(
          Effect.suspend(() => address.recordOf(copy)),
          send
        ),
        {
          onSuccess: (metadata) =>
            Effect.as(
              Effect.sync(() => stored(copy, metadata)),
              true
            ),
          onFailure: (error) => refused.publishAgain(send, copy, error)
        }
      )
    )

/** Begins to publish a copy unless its partition stops, or has another owner by now. */
const whileOurs = ({ partition }: Copy, publish: Effect.Effect<boolean>): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    if (partition.stopping) return Effect.succeed(false)
    return Effect.flatMap(StillOwned.confirmed(partition), (isOurs) => (isOurs ? publish : Effect.succeed(false)))
  })

/** Reports that a copy is acknowledged, and where it is. */
const storedBy =
  (clock: Clock.Clock) =>
  ({ onStored, record, headers }: Copy, { topic, partition, offset }: RecordMetadata): void => {
    if (onStored === undefined) return
    const { key, value } = record
    onStored({ topic, partition, offset, timestamp: clock.currentTimeMillisUnsafe(), key, value, headers })
  }
