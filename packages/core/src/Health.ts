/**
 * How the bindings of a program are (connector seed §4.13), from what is known: asking costs no I/O.
 *
 * - `UP`: every binding is in the state that it should be in, and no circuit breaker is open.
 * - `DEGRADED`: somebody or something holds records back on purpose: a pause, a breaker. Or a consumer is starting.
 * - `DOWN`: a binding cannot do its work: see the reasons.
 *
 * Liveness and readiness ask different questions (ruling 74): would a restart of this process help, and does this process do all of its work?
 */
import type { BrokerError } from "./BrokerError.ts"
import type * as CircuitBreaker from "./CircuitBreaker.ts"
import type { TopicPartition } from "./ConsumerRecord.ts"
import { isoText } from "./internal/base/isoText.ts"
import { unreadableText } from "./internal/partition/unreadableText.ts"
import type { HeldBatch, OnlyCandidate, PauseReason } from "./Snapshot.ts"

/** The status of all bindings together. */
export type Status = "UP" | "DEGRADED" | "DOWN"

/** How the bindings of a program are, with the reasons. */
export interface Health {
  /** The worst status of the reasons; `UP` without any. */
  readonly status: Status
  /** Liveness: false only where a restart of this process can help, that is for `PollLoopStuck`. True for everything that lies outside of this process. */
  readonly live: boolean
  /** Readiness: a binding has been registered, and there is no reason: each started binding consumes, and nothing holds it. */
  readonly ready: boolean
  /** Everything that is not as it should be, the worst first. Empty when it is `UP`. */
  readonly reasons: ReadonlyArray<Reason>
}

interface OfBinding {
  readonly cluster: string
  readonly binding: string
}

interface Since {
  /** Epoch milliseconds. */
  readonly sinceMillis: number
}

interface Stuck extends OfBinding, TopicPartition {
  readonly consumer: number
  /** Offsets that are not finished. */
  readonly lag: bigint
  readonly forMillis: number
}

/** Something that is not as it should be. */
export type Reason =
  /** No broker of the cluster answers. Its bindings go on by themselves when one does. */
  | (Since & {
      readonly _tag: "ClusterUnreachable"
      /** The alias of the cluster. */
      readonly cluster: string
      /** The bindings on it. */
      readonly bindings: ReadonlyArray<string>
      /** The last error. */
      readonly error: BrokerError
    })
  /** The client died for another reason; it is started again, and again. */
  | (OfBinding &
      Since & {
        readonly _tag: "ConsumerCrashed"
        /** The index of the consumer, from 0. */
        readonly consumer: number
        readonly error: BrokerError
        /** In a row. */
        readonly crashes: number
      })
  /** Another process joined under this member's `group.instance.id`. The consumer stays stopped: a restart would only take the name from the other process. */
  | (OfBinding &
      Since & {
        readonly _tag: "ConsumerFenced"
        /** The index of the consumer, from 0. */
        readonly consumer: number
        /** Names the group and the `group.instance.id`. */
        readonly error: BrokerError
      })
  /** A topic does not exist, may not be read, or has a partition that nobody leads. */
  | (OfBinding & Since & { readonly _tag: "TopicUnreadable"; readonly topic: string; readonly error: BrokerError })
  /** Commits have been refused, or not answered, for five seconds or more. Records are handled; a restart would handle them again. */
  | (OfBinding & Since & { readonly _tag: "CommitsFailing"; readonly error: BrokerError })
  /** A transactional binding has had no producer, or has had its transactions refused, for five seconds or more. Its records wait. */
  | (OfBinding & Since & { readonly _tag: "TransactionsFailing"; readonly error: BrokerError })
  /** The dead letter strategy has not been able to do its work for five seconds or more. Dead letters are stored all the same. */
  | (OfBinding & Since & { readonly _tag: "DeadLetterStrategyFailing"; readonly error: BrokerError })
  /** A transaction that some producer has left open holds the partition for a minute or more: nobody who reads committed records gets past it. */
  | (OfBinding &
      TopicPartition &
      Since & {
        readonly _tag: "OpenTransaction"
        /** The index of the consumer, from 0. */
        readonly consumer: number
        /** Offsets that are not finished, those of the transaction included. */
        readonly lag: bigint
      })
  /** A record batch cannot be read, and its partition waits in front of it until an operator passes it (`EventBusConnector.skip`). */
  | (OfBinding &
      HeldBatch & {
        readonly _tag: "BatchUnreadable"
        /** The index of the consumer, from 0. */
        readonly consumer: number
        /** Offsets that are not finished, those of the batch included. */
        readonly lag: bigint
      })
  /** Copies for a retry or dead letter topic have been refused for five seconds or more. Their records wait, and nothing is lost. */
  | (OfBinding &
      Since & {
        readonly _tag: "PublisherFailing"
        /** The topic that this is about. */
        readonly topic: string
        readonly error: BrokerError
        /** Copies that wait. */
        readonly copies: number
      })
  /** A record has waited for five seconds or more for what its serde needs to read it, such as a schema. Nothing is lost, and nothing behind it goes on. */
  | (Stuck & { readonly _tag: "SerdeWaiting" })
  /**
   * The partition has handled nothing for 15 seconds or more because its unit does not run (`orderingMode: "PER_KEY"`): the same partition of a retry topic, or of the source,
   * is not assigned here, or the parked keys cannot be looked up.
   */
  | (OfBinding &
      TopicPartition &
      Since & {
        readonly _tag: "UnitIncomplete"
        /** The index of the consumer, from 0. */
        readonly consumer: number
        /** The part that is missing, or the failure of the last attempt to begin. */
        readonly problem: string
      })
  /** The cluster has had records for a minute or more that no fetch brings, although nothing holds the partition. */
  | (Stuck & { readonly _tag: "PollLoopStuck" })
  /** The partition has records and has not moved for `maxPollInterval`, although nothing holds it. */
  | (Stuck & { readonly _tag: "PartitionStalled" })
  | (OfBinding &
      Since & {
        readonly _tag: "BreakerOpen"
        /** The state of the breaker. */
        readonly state: CircuitBreaker.State
        /** When it looks at the dependency again, epoch milliseconds; undefined when somebody has to decide. */
        readonly nextProbeAtMillis: number | undefined
        /** Set while the breaker stays open because of one record alone: no other is there to try. */
        readonly onlyCandidate: OnlyCandidate | undefined
      })
  /** An operator, or a record that halted its partition, holds the binding. */
  | (OfBinding &
      Since & {
        readonly _tag: "Paused"
        /** The reasons that hold it. */
        readonly by: ReadonlyArray<PauseReason>
      })
  | (OfBinding & {
      readonly _tag: "TierPaused"
      /** The retry tier, from 1. */
      readonly tier: number
    })
  /** The process has just started, and reads the holds of its fleet before it fetches a record. */
  | (OfBinding & Since & { readonly _tag: "ReadingHolds" })
  /** A consumer has not been running yet since its binding was started. */
  | (OfBinding & Since & { readonly _tag: "Starting"; readonly consumer: number })
  /** The connector is closing: bindings drain, and no new ones are taken. */
  | { readonly _tag: "Closing" }

/** A reason in one line. */
export const describe = (reason: Reason): string => {
  switch (reason._tag) {
    case "ClusterUnreachable":
      return `Cluster '${reason.cluster}' cannot be reached, of bindings ${reason.bindings.join(", ")}: ${reason.error.message}`
    case "ConsumerCrashed":
      return `${nameOf(reason)}: consumer ${reason.consumer} crashed ${reason.crashes} times in a row: ${reason.error.message}`
    case "ConsumerFenced":
      return `${nameOf(reason)}: consumer ${reason.consumer} has stopped for good: ${reason.error.message}`
    case "TopicUnreadable":
      return `${nameOf(reason)}: nothing can be read from '${reason.topic}': ${reason.error.message}`
    case "CommitsFailing":
      return `${nameOf(reason)}: offsets cannot be committed since ${timeOf(reason)}: ${reason.error.message}`
    case "TransactionsFailing":
      return `${nameOf(reason)}: transactions fail since ${timeOf(reason)}: ${reason.error.message}`
    case "DeadLetterStrategyFailing":
      return `${nameOf(reason)}: the dead letter strategy cannot work since ${timeOf(reason)}: ${reason.error.message}`
    case "OpenTransaction":
      return `${nameOf(reason)}: ${placeOf(reason)} is held by an open transaction since ${timeOf(reason)}, with a lag of ${reason.lag}`
    case "BatchUnreadable":
      return `${nameOf(reason)}: ${unreadableText(reason)}`
    case "UnitIncomplete":
      return `${nameOf(reason)}: ${placeOf(reason)} waits for its retry partitions since ${timeOf(reason)}: ${reason.problem}`
    case "PublisherFailing":
      return `${nameOf(reason)}: ${reason.copies} records wait to be published to '${reason.topic}': ${reason.error.message}`
    case "SerdeWaiting":
      return `${nameOf(reason)}: ${placeOf(reason)} has waited for ${reason.forMillis} ms for what its next record is read with, with ${reason.lag} records to go`
    case "PollLoopStuck":
      return `${nameOf(reason)}: ${placeOf(reason)} has not been fetched for ${reason.forMillis} ms, although ${reason.lag} records are there`
    case "PartitionStalled":
      return `${nameOf(reason)}: ${placeOf(reason)} has not moved for ${reason.forMillis} ms, with ${reason.lag} records behind it`
    case "BreakerOpen":
      return `${nameOf(reason)}: the circuit breaker is ${reason.state}, and records wait${onlyOf(reason.onlyCandidate)}`
    case "Paused":
      return `${nameOf(reason)}: paused by ${reason.by.join(" and ")}`
    case "TierPaused":
      return `${nameOf(reason)}: Retry tier ${reason.tier} is paused`
    case "ReadingHolds":
      return `${nameOf(reason)}: it is starting, and reads the holds of its fleet`
    case "Starting":
      return `${nameOf(reason)}: consumer ${reason.consumer} is starting`
    case "Closing":
      return "The connector is closing"
  }
}

const nameOf = ({ cluster, binding }: OfBinding): string => `Binding '${binding}' on cluster '${cluster}'`

const timeOf = ({ sinceMillis }: Since): string => isoText(sinceMillis)

const onlyOf = (only: OnlyCandidate | undefined): string =>
  only === undefined
    ? ""
    : `; the only record to try, ${placeOf(only)} at offset ${only.offset}, has failed since ${isoText(only.sinceMillis)}`

const placeOf = ({ topic, partition }: TopicPartition): string => `${topic}-${partition}`
