/**
 * The types of a plan.
 */
import type { AclOperation, AssignmentStrategy, GroupProtocol } from "../../Broker.ts"

export interface Plan {
  readonly binding: string
  readonly cluster: string
  /** The consumer group, and its former names, whose copies are its own. */
  readonly groupId: string
  readonly adopts: ReadonlyArray<string>
  /** The protocol of its groups. */
  readonly groupProtocol: GroupProtocol
  /** The assignment protocols that its members list in the group. */
  readonly partitionAssignmentStrategy: ReadonlyArray<AssignmentStrategy>
  readonly topics: ReadonlyArray<PlannedTopic>
  readonly consumers: ReadonlyArray<PlannedConsumers>
  /** All groups that the binding joins, that of a reader of the dead letter topic included. */
  readonly groups: ReadonlyArray<string>
  /** Kafka clients of one process: its consumers and its permanent producers. Each keeps one connection to every broker that it talks to. */
  readonly clients: number
  readonly retries: RetryTimes
  /** The end of a record after its last attempt: it goes to the dead letter topic, or it stays and halts its partition. */
  readonly onExhausted: "dead-letter" | "halt"
  /** Order per key through retry topics. */
  readonly orderPerKey: PlannedOrder
  /** The most that all consumers of one process hold fetched and not yet handled. One fetch per consumer comes on top. */
  readonly memory: { readonly records: number; readonly bytes: number }
}

/** A binding asks this of its topics for the order of each key. */
export interface PlannedOrder {
  /** Whether the binding keeps it: `orderingMode: "PER_KEY"`. */
  readonly isKept: boolean
  /** Whether keys that are parked go on in order, also those of an earlier release with `PER_KEY`. */
  readonly servesParkedKeys: boolean
  /** All delays of a record that always fails, in milliseconds. */
  readonly delaysMillis: number
  /** How long a dead letter may hold its key, in milliseconds; undefined for `perKey.onDeadLetter: "continue"`, and where the order is not kept. */
  readonly holdForMillis: number | undefined
}

export interface PlannedTopic {
  readonly topic: string
  readonly role: "source" | "retry" | "dead-letter" | "replay-journal"
  /** The topic of the binding that it is derived from; a source is its own. */
  readonly source: string
  /** The ACLs that the binding requires on the topic. The strategies that read dead letters (scheduled replay, custom) require `Read` on the dead letter topic. */
  readonly operations: ReadonlyArray<AclOperation>
  /** The longest time that a record waits in a retry topic before a delivery, milliseconds; undefined for other topics. */
  readonly delayMillis: number | undefined
  /** The wait before each delivery in a retry topic, milliseconds, the last one for all that follow; undefined for other topics, and where all wait equally long. */
  readonly delaysMillis: ReadonlyArray<number> | undefined
  /** Partitions of the topic when the connector creates it; undefined: as many as the source has. */
  readonly partitions: number | undefined
  /** Replication factor when the connector creates the topic; undefined: the source's. */
  readonly replicationFactor: number | undefined
  /** Whether the connector creates the topic when it is missing. */
  readonly createIfMissing: boolean
}

/** The members of one group in one process. */
export interface PlannedConsumers {
  readonly groupId: string
  readonly topics: ReadonlyArray<string>
  readonly members: number
}

/** The earliest and latest time of an attempt, milliseconds since the record's first attempt. The time that handlers take is not included. */
export interface TimeRange {
  /** When every wait is as short as its jitter allows. */
  readonly earliestMillis: number
  /** When every wait is as long as its jitter allows. */
  readonly latestMillis: number
}

/** One delivery of a record whose every attempt fails. */
export interface PlannedDelivery {
  /** 0 is the main topic. */
  readonly tier: number
  readonly topic: string
  /** The number of the delivery in the tier, from 1. */
  readonly delivery: number
  /** Handler calls in this delivery. */
  readonly attempts: number
  readonly first: TimeRange
  readonly last: TimeRange
}

/** Of a binding of several topics, those of the first one: the others have the same times in retry topics of their own. */
export interface RetryTimes {
  /** The first 100 deliveries, in order. */
  readonly deliveries: ReadonlyArray<PlannedDelivery>
  readonly deliveriesInAll: number
  /** Handler calls in total. */
  readonly attempts: number
  /** When the last attempt fails. */
  readonly exhausted: TimeRange
  /** The longest time until then, when each delivery also takes the longest time that a handler may take: 70 % of `maxPollInterval`. A queue in front of a tier comes on top. */
  readonly longestMillis: number
}

/** A finding of `Plan.check`. `error`: the binding cannot do its work. `warning`: it can, but an operator should know. `info`: what the connector will do. */
export interface Finding {
  readonly severity: "error" | "warning" | "info"
  readonly code:
    | "source-missing"
    | "topic-missing"
    | "topic-to-create"
    | "fewer-partitions"
    | "idle-consumers"
    | "smaller-messages"
    | "compacted"
    | "short-retention"
    | "parked-keys"
    | "acl-missing"
    | "shared-topic"
    | "group-protocol"
    | "topic-of-other-members"
    | "records-waiting"
    | "spring-records-waiting"
  /** The topic or group that the finding is about. */
  readonly subject: string
  readonly message: string
}
