/** The parts of one consumer session, and its queue of events. */
import type { Broker, BrokerError, ConsumerRecord } from "@eventbus/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import type { ClientFailure } from "../../ClientFailure.ts"
import type { Cluster } from "../connection/cluster.ts"
import type { Fetcher } from "../fetch/fetcher.ts"
import type { Membership } from "../group/membership.ts"
import type { GenerationPartitions, Ownership } from "../group/ownership.ts"
import type { SessionSettings } from "./sessionSettings.ts"

export interface SessionState {
  readonly settings: SessionSettings
  /** Connections for everything but the membership, which has its own. */
  readonly cluster: Cluster
  readonly ownership: Ownership
  readonly membership: Membership
  readonly fetcher: Fetcher
  /**
   * Events in the order in which they happened. The queue has no bound of its own: the consumer bounds it by pausing partitions, and one more chunk of
   * each may follow a pause.
   */
  readonly events: Queue.Queue<Broker.ConsumerEvent, BrokerError.BrokerError>
  /** Runs an effect until the session closes. */
  readonly fork: (effect: Effect.Effect<void>) => void
  /** Ends the session. `topic` is what the failure is about. Default: all topics. */
  readonly failSession: (failed: ClientFailure, topic?: string) => Effect.Effect<void>
  /** Number of partitions of each topic, as the group knows it. */
  partitionCounts: Map<string, number>
  /** The id of each topic, as the session knows it. */
  readonly topicIds: Map<string, string>
  /** Opens to request the topics' metadata now. */
  readonly pollNow: Latch.Latch
}

/** The state of a session that has not polled its topics yet. */
export const noTopicsKnown = (): Pick<SessionState, "partitionCounts" | "topicIds" | "pollNow"> => ({
  partitionCounts: new Map(),
  topicIds: new Map(),
  pollNow: Latch.makeUnsafe(false)
})

export const emit = ({ events }: Pick<SessionState, "events">, event: Broker.ConsumerEvent): void =>
  void Queue.offerUnsafe(events, event)

/** How often the queue is looked at while the consumer is behind. */
const takenPollInterval = "1 millis"

/** Waits until the consumer has taken all events. */
export const awaitTaken = (events: SessionState["events"]): Effect.Effect<void> =>
  Effect.suspend(() =>
    Queue.sizeUnsafe(events) === 0 ? Effect.void : Effect.andThen(Effect.sleep(takenPollInterval), awaitTaken(events))
  )

/** The partitions without their state. */
export const coordinates = (
  partitions: ReadonlyArray<ConsumerRecord.TopicPartition>
): ReadonlyArray<ConsumerRecord.TopicPartition> => partitions.map(({ topic, partition }) => ({ topic, partition }))

export const emitLost = (session: Pick<SessionState, "events">, lost: GenerationPartitions): void =>
  emit(session, { _tag: "Lost", generation: lost.generation, partitions: coordinates(lost.partitions) })

/** Removes from the queue what was fetched from one partition. Other events keep their order. */
export const discardChunks = (
  { events }: Pick<SessionState, "events">,
  { topic, partition }: ConsumerRecord.TopicPartition
): void => {
  const kept: Array<Broker.ConsumerEvent> = []
  for (let left = Queue.sizeUnsafe(events); left > 0; left--) {
    const taken = Queue.takeUnsafe(events)
    if (taken === undefined || Exit.isFailure(taken)) break
    const event = taken.value
    const found = event._tag === "Fetched" ? event.chunk : event._tag === "Unreadable" ? event : undefined
    if (found?.partition !== partition || found.topic !== topic) kept.push(event)
  }
  Queue.offerAllUnsafe(events, kept)
}
