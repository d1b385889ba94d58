/**
 * The topics of a relay that take no records at present (ruling 87). Records of such a topic are not sent, except one at a time as a trial,
 * so that they take no worker from the events of other topics.
 */
import type { Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import type { DownstreamUnavailable, PoisonEvent } from "../../OutboxError.ts"
import { OutageGates } from "../delivery/outageGates.ts"
import { CreationRefused, failureOfPublish, isOfTopic, topicUnavailable } from "./failureOfPublish.ts"

/** How a relay deals with a missing topic. */
export type MissingTopics = "wait" | "create" | "require"

/** The result of creating a topic holds for so long: all events that wait for the topic ask at once. */
const creationMillis = 1000

interface Creation {
  readonly oneAtATime: Semaphore.Semaphore
  last: { readonly exit: Exit.Exit<void, CreationRefused>; readonly atMillis: number } | undefined
}

type Publish = (
  record: ConsumerRecord.ProducerRecord
) => Effect.Effect<ConsumerRecord.RecordMetadata, BrokerError.BrokerError>

export class RelayTopics {
  readonly #broker: Broker.Broker["Service"]
  readonly #missingTopics: MissingTopics
  readonly #clock: Clock.Clock
  readonly #gates = new OutageGates()
  readonly #creations = new Map<string, Creation>()

  constructor(broker: Broker.Broker["Service"], missingTopics: MissingTopics, clock: Clock.Clock) {
    this.#broker = broker
    this.#missingTopics = missingTopics
    this.#clock = clock
  }

  /** Fails with the first of these topics that does not exist. */
  require(topics: ReadonlyArray<string>): Effect.Effect<void, BrokerError.BrokerError> {
    return Effect.scoped(
      Effect.flatMap(this.#broker.admin, (admin) => Effect.forEach(topics, admin.describeTopic, { discard: true }))
    )
  }

  /** Publishes a record, unless its topic is known to take none. Fails as the record's event does. */
  publish(
    record: ConsumerRecord.ProducerRecord,
    send: Publish
  ): Effect.Effect<ConsumerRecord.RecordMetadata, BrokerError.BrokerError | DownstreamUnavailable | PoisonEvent> {
    const { topic } = record
    const held = this.#gates.isAnyClosed ? this.#gates.admit(topic, this.#nowMillis()) : undefined
    if (held !== undefined) return Effect.fail(topicUnavailable(topic, held.error))
    const first = send(record)
    const sent =
      this.#missingTopics === "create"
        ? Effect.catchTag(first, "UnknownTopic", () => Effect.andThen(this.#create(topic), send(record)))
        : first
    return Effect.matchEffect(sent, {
      onSuccess: (metadata) => {
        if (this.#gates.isAnyClosed) this.#gates.open(topic)
        return Effect.succeed(metadata)
      },
      onFailure: (error) => {
        if (isOfTopic(error)) this.#gates.close(topic, error.message, this.#nowMillis())
        else if (this.#gates.isAnyClosed) this.#gates.open(topic)
        return Effect.fail(failureOfPublish(error, topic))
      }
    })
  }

  #nowMillis(): number {
    return Number(this.#clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  }

  /**
   * Creates the topic with the cluster's defaults for partitions and replication. One that exists meanwhile is as good. A refusal
   * of any kind leaves the topic missing: its own events wait.
   */
  #create(topic: string): Effect.Effect<void, CreationRefused> {
    const creation = this.#creations.get(topic) ?? { oneAtATime: Semaphore.makeUnsafe(1), last: undefined }
    this.#creations.set(topic, creation)
    const create = Effect.scoped(Effect.flatMap(this.#broker.admin, (admin) => admin.createTopics([{ topic }]))).pipe(
      Effect.catchTag("TopicExists", () => Effect.void),
      Effect.mapError((cause) => new CreationRefused({ topic, cause }))
    )
    return creation.oneAtATime.withPermits(1)(
      Effect.suspend(() => {
        const { last } = creation
        if (last !== undefined && this.#nowMillis() - last.atMillis < creationMillis) return last.exit
        return Effect.flatMap(Effect.exit(create), (exit) => {
          creation.last = { exit, atMillis: this.#nowMillis() }
          return exit
        })
      })
    )
  }
}
