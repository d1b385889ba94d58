/**
 * The shape of a plan.
 */
export interface Plan {
  readonly binding: string
  readonly cluster: string
  readonly topics: ReadonlyArray<PlannedTopic>
  readonly consumers: ReadonlyArray<PlannedConsumers>
  /** Kafka clients of one process: its consumers, and the producers that it always has. Each has one connection to a broker that it talks to. */
  readonly clients: number
  readonly retries: RetryTimes
  /** What becomes of a record when its attempts are used up: it goes to the dead letter topic, or stays where it is and halts its partition. */
  readonly onExhausted: "dead-letter" | "halt"
  /** What the consumers of one process may hold fetched and not handled, all together; one fetch each comes on top. */
  readonly memory: { readonly records: number; readonly bytes: number }
}

export interface PlannedTopic {
  readonly topic: string
  readonly role: "source" | "retry" | "dead-letter" | "replay-journal"
  /** Wait of a record in a retry topic, milliseconds; undefined for the others. */
  readonly delayMillis: number | undefined
  /** Partitions that it is made with; undefined: as many as the source has. */
  readonly partitions: number | undefined
  /** Replication factor that it is made with; undefined: the source's. */
  readonly replicationFactor: number | undefined
  /** Whether the connector makes it when it is missing. */
  readonly isMade: boolean
}

/** Members of one group in one process. */
export interface PlannedConsumers {
  readonly groupId: string
  readonly topics: ReadonlyArray<string>
  readonly members: number
}

/** Two ends of what can be, in milliseconds since the record's first attempt. The time that handlers take is not in it. */
export interface Span {
  /** Every wait as short as its jitter allows. */
  readonly earliestMillis: number
  /** Every wait as long as its jitter allows. */
  readonly latestMillis: number
}

/** One delivery of a record whose every attempt fails. */
export interface PlannedDelivery {
  /** 0 is the main topic. */
  readonly tier: number
  readonly topic: string
  /** Which delivery in the tier, from 1. */
  readonly delivery: number
  /** Handler calls in it. */
  readonly attempts: number
  readonly first: Span
  readonly last: Span
}

export interface RetryTimes {
  /** In order; the first 100 of them. */
  readonly deliveries: ReadonlyArray<PlannedDelivery>
  readonly deliveriesInAll: number
  /** Handler calls in all. */
  readonly attempts: number
  /** From the first attempt to the last one. */
  readonly exhausted: Span
  /** The same when each delivery also takes all of the time that a handler may take, 70 % of `maxPollInterval`. A queue in front of a tier comes on top. */
  readonly longestMillis: number
}

/** What a look at the cluster found. `error`: the binding cannot do its work. `warning`: it can, and somebody should know. `info`: what will happen. */
export interface Finding {
  readonly severity: "error" | "warning" | "info"
  readonly code:
    | "source-missing"
    | "topic-missing"
    | "topic-is-made"
    | "narrower"
    | "idle-consumers"
    | "smaller-messages"
    | "compacted"
    | "short-retention"
    | "acl-missing"
  /** The topic or group that it is about. */
  readonly subject: string
  readonly message: string
}
