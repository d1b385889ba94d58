/**
 * The administration of a cluster, as a part of the Broker port (`Broker.ts`).
 */
import type * as Effect from "effect/Effect"
import type { BrokerError } from "../../BrokerError.ts"
import type { ConsumerRecord, TopicPartition } from "../../ConsumerRecord.ts"

/** A topic to create. */
export interface NewTopic {
  /** The name of the topic. */
  readonly topic: string
  /** 1 or more; undefined takes the broker's `num.partitions`. */
  readonly partitions?: number
  /** undefined takes the broker's `default.replication.factor`. */
  readonly replicationFactor?: number
  /** Topic configuration, such as `retention.ms`. */
  readonly config?: ReadonlyMap<string, string>
}

/** A topic as the cluster has it. */
export interface TopicDescription {
  /** The name of the topic. */
  readonly topic: string
  /** How many partitions it has. */
  readonly partitions: number
  /** How many replicas each partition has. */
  readonly replicationFactor: number
}

/** A broker of a cluster, as clients reach it. */
export interface ClusterNode {
  /** Kafka: `node.id`. */
  readonly id: number
  /** The host name of its listener. */
  readonly host: string
  /** The port of its listener. */
  readonly port: number
}

/** A cluster as it describes itself. */
export interface ClusterDescription {
  /** The id that the cluster got when it was formatted. Empty when the cluster does not say. */
  readonly clusterId: string
  /** The brokers that run, by id. */
  readonly brokers: ReadonlyArray<ClusterNode>
  /** The broker that the cluster names as its controller; undefined while it names none. With KRaft it is a broker that passes requests on to the controller. */
  readonly controller: ClusterNode | undefined
}

/** The ends of one partition's log. */
export interface PartitionOffsets {
  /** The number of the partition, from 0. */
  readonly partition: number
  /** First offset that is still there. */
  readonly logStart: bigint
  /** One past the last offset. */
  readonly logEnd: bigint
}

/** A committed offset of a group, exactly as the broker keeps it. */
export interface CommittedOffset extends TopicPartition {
  /** May be negative or outside the log. */
  readonly offset: bigint
  /** The text that was committed beside it; empty when there is none. */
  readonly metadata: string
}

/** A consumer group as its coordinator describes it. */
export interface GroupDescription {
  /** Kafka: `group.id`. */
  readonly groupId: string
  /** Kafka's name of the group's protocol: `classic`, where a member assigns, or `consumer` (KIP-848), where the broker does. */
  readonly type: "classic" | "consumer"
  /** Kafka's state names of the classic protocol. A `consumer` group that the broker assigns anew is `PreparingRebalance`, one whose members follow is `CompletingRebalance`. */
  readonly state: "Empty" | "PreparingRebalance" | "CompletingRebalance" | "Stable" | "Dead"
  /** The assignment protocol of the present generation (Kafka: `partition.assignment.strategy`; `group.remote.assignor` of a `consumer` group); empty while there is none. */
  readonly protocol: string
  /** Its members; empty for a group that is `Empty` or `Dead`. */
  readonly members: ReadonlyArray<{
    /** The id that the coordinator gave. */
    readonly memberId: string
    /** Kafka: `group.instance.id`; undefined for a dynamic member. */
    readonly groupInstanceId: string | undefined
    /** Kafka: `client.id`. */
    readonly clientId: string
    /** The topics that it subscribes to. Undefined while they are not known: Kafka tells those of a `Stable` group, and an adapter may not ask. */
    readonly topics?: ReadonlyArray<string> | undefined
    /** Whether it is a member of the connector, by what it has written into its subscription. Undefined while that is not known. */
    readonly isConnector?: boolean | undefined
    /** The partitions that it owns. */
    readonly assignment: ReadonlyArray<TopicPartition>
  }>
}

/** An operation that an ACL grants, by Kafka's names. */
export type AclOperation =
  | "Read"
  | "Write"
  | "Create"
  | "Delete"
  | "Alter"
  | "Describe"
  | "ClusterAction"
  | "DescribeConfigs"
  | "AlterConfigs"
  | "IdempotentWrite"

/** An ACL that a binding needs: an operation on a topic or a group. */
export interface RequiredAcl {
  /** The kind of the resource. */
  readonly resource: "topic" | "group"
  /** The name of the topic, or the id of the group. */
  readonly name: string
  /** The operation to allow. */
  readonly operation: AclOperation
}

/** The operations that this user may do (KIP-430). A cluster without ACLs grants everything. */
export interface AuthorizedOperations {
  /** On the cluster as a whole; undefined when it does not say. `Create` here is for any topic. */
  readonly cluster: ReadonlySet<AclOperation> | undefined
  /** A topic that does not exist is left out; one that may not be described has none, whether it exists or not. */
  readonly topics: ReadonlyMap<string, ReadonlySet<AclOperation>>
  /** A group need not exist. */
  readonly groups: ReadonlyMap<string, ReadonlySet<AclOperation>>
}

/** Administration of one cluster. */
export interface Admin {
  /** The id that the cluster got when it was formatted: no two clusters have the same one, and it never changes. Empty when the cluster does not say. */
  readonly clusterId: string
  /** The brokers that run now, and the controller: asked anew each time. */
  readonly describeCluster: Effect.Effect<ClusterDescription, BrokerError>
  /** Fails with `TopicExists` or `InvalidTopic` for the first topic that cannot be created; the others are created. */
  readonly createTopics: (topics: ReadonlyArray<NewTopic>) => Effect.Effect<void, BrokerError>
  /** Deletes topics. Fails with `UnknownTopic` for the first one that does not exist. */
  readonly deleteTopics: (topics: ReadonlyArray<string>) => Effect.Effect<void, BrokerError>
  /** Raises the number of partitions of a topic to `total`. */
  readonly createPartitions: (topic: string, total: number) => Effect.Effect<void, BrokerError>
  /** The names of all topics that this user may describe. */
  readonly listTopics: Effect.Effect<ReadonlyArray<string>, BrokerError>
  /** Fails with `UnknownTopic` for a topic that does not exist. */
  readonly describeTopic: (topic: string) => Effect.Effect<TopicDescription, BrokerError>
  /** The configuration of a topic, defaults included. Fails with `UnknownTopic` for a topic that does not exist. */
  readonly topicConfig: (topic: string) => Effect.Effect<ReadonlyMap<string, string>, BrokerError>
  /** Sets the given keys and leaves all others as they are. */
  readonly alterTopicConfig: (topic: string, config: ReadonlyMap<string, string>) => Effect.Effect<void, BrokerError>
  /** Log start and end of every partition, in partition order. The end is what a consumer of `isolation` (default `read_uncommitted`) can read. */
  readonly topicOffsets: (
    topic: string,
    isolation?: "read_committed" | "read_uncommitted"
  ) => Effect.Effect<ReadonlyArray<PartitionOffsets>, BrokerError>
  /** Per partition the first offset whose timestamp is at or after the given epoch milliseconds; the log end when there is none. */
  readonly offsetsForTimestamp: (
    topic: string,
    timestamp: number
  ) => Effect.Effect<ReadonlyArray<{ readonly partition: number; readonly offset: bigint }>, BrokerError>
  /** Committed offsets of a group; a partition without one is left out. */
  readonly committedOffsets: (
    groupId: string,
    topics: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<CommittedOffset>, BrokerError>
  /** Sets committed offsets of a group that has no members. */
  readonly setCommittedOffsets: (
    groupId: string,
    offsets: ReadonlyArray<TopicPartition & { readonly offset: bigint }>
  ) => Effect.Effect<void, BrokerError>
  /** The ids of all groups. */
  readonly listGroups: Effect.Effect<ReadonlyArray<string>, BrokerError>
  /** A group that does not exist is described as `Dead` without members. */
  readonly describeGroup: (groupId: string) => Effect.Effect<GroupDescription, BrokerError>
  /** Deletes groups that have no members. */
  readonly deleteGroups: (groupIds: ReadonlyArray<string>) => Effect.Effect<void, BrokerError>
  /** The operations that this user may do with these topics and groups. Left out by an adapter that cannot ask. */
  readonly authorizedOperations?: (
    topics: ReadonlyArray<string>,
    groupIds: ReadonlyArray<string>
  ) => Effect.Effect<AuthorizedOperations, BrokerError>
  /**
   * The newest committed records of a topic: of each partition those of the last `records` offsets, or fewer, the oldest first. Read outside of any group, with one
   * fetch from each leader, for a look at a topic and not for consuming it. Left out by an adapter that cannot.
   */
  readonly tail?: (topic: string, records: number) => Effect.Effect<ReadonlyArray<ConsumerRecord>, BrokerError>
  /** Moves the log start of partitions up to `before`; records below are gone. `before` -1 means the log end. */
  readonly deleteRecords: (
    topic: string,
    partitions: ReadonlyArray<{ readonly partition: number; readonly before: bigint }>
  ) => Effect.Effect<void, BrokerError>
}
