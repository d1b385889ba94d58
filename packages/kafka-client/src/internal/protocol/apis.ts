/** Payloads and answers of the APIs that the client uses. 64-bit numbers are decimal text, but for those of fetched records. */

import type { Body } from "../../Transport.ts"
import type { Api } from "./api.ts"
import type { ErrorCode, MemberApis } from "./memberApis.ts"

export interface PartitionMetadata {
  readonly partitionErrorCode: number
  readonly partitionId: number
  /** Node id of the leader; -1 while there is none. */
  readonly leader: number
  readonly replicas: ReadonlyArray<number>
}

export interface TopicMetadata {
  readonly topicErrorCode: number
  readonly topic: string
  readonly isInternal: boolean
  readonly partitionMetadata: ReadonlyArray<PartitionMetadata>
}

interface ByTopic<P> {
  readonly topic: string
  readonly partitions: ReadonlyArray<P>
}

interface PartitionError {
  readonly partition: number
  readonly errorCode: number
}

interface TopicErrors {
  readonly topicErrors: ReadonlyArray<{
    readonly topic: string
    readonly errorCode: number
    readonly errorMessage?: string | null
  }>
}

/** A transactional producer, as its requests name it. */
export interface ProducerIdentity {
  readonly transactionalId: string
  readonly producerId: string
  readonly producerEpoch: number
}

/** One partition's part of a fetch answer. Its records stay bytes. */
export interface FetchedPartition {
  /** The name of the topic; its id in an answer to `FetchById`. */
  readonly topic: string
  readonly partition: number
  readonly errorCode: number
  readonly highWatermark: bigint
  readonly lastStableOffset: bigint
  readonly abortedTransactions: ReadonlyArray<{ readonly producerId: bigint; readonly firstOffset: bigint }>
  readonly bytes: Buffer
}

interface FetchLimits {
  readonly maxWaitTime: number
  readonly minBytes: number
  readonly maxBytes: number
  readonly isolationLevel: 0 | 1
}

export interface FetchPosition {
  readonly partition: number
  readonly fetchOffset: bigint
  readonly maxBytes: number
}

/** A fetch session (KIP-227). Epoch 0 begins one, and ends the one with the id. */
export interface FetchSessionEpoch {
  readonly id: number
  readonly epoch: number
}

export interface Apis extends MemberApis {
  readonly Metadata: {
    /** `topics`: null means all. No topic is created. */
    readonly payload: { readonly topics: ReadonlyArray<string> | null }
    readonly response: {
      readonly brokers: ReadonlyArray<{ readonly nodeId: number; readonly host: string; readonly port: number }>
      readonly controllerId: number
      readonly clusterId?: string | null
      readonly topicMetadata: ReadonlyArray<TopicMetadata>
    }
  }
  readonly GroupCoordinator: {
    readonly payload: { readonly groupId: string; readonly coordinatorType: 0 | 1 }
    readonly response: ErrorCode & {
      readonly coordinator: { readonly nodeId: number; readonly host: string; readonly port: number }
    }
  }
  readonly ConsumerGroupOffsetCommit: {
    readonly payload: Apis["OffsetCommit"]["payload"] & { readonly groupInstanceId: string | null }
    readonly response: Apis["OffsetCommit"]["response"]
  }
  readonly OffsetCommit: {
    readonly payload: {
      readonly groupId: string
      readonly groupGenerationId: number
      readonly memberId: string
      readonly topics: ReadonlyArray<
        ByTopic<{ readonly partition: number; readonly offset: string; readonly metadata: string }>
      >
    }
    readonly response: { readonly responses: ReadonlyArray<ByTopic<PartitionError>> }
  }
  readonly OffsetFetch: {
    readonly payload: {
      readonly groupId: string
      readonly topics: ReadonlyArray<ByTopic<{ readonly partition: number }>>
    }
    readonly response: {
      readonly errorCode?: number
      readonly responses: ReadonlyArray<
        ByTopic<PartitionError & { readonly offset: string; readonly metadata: string | null }>
      >
    }
  }
  readonly ListOffsets: {
    readonly payload: {
      readonly isolationLevel: 0 | 1
      readonly topics: ReadonlyArray<ByTopic<{ readonly partition: number; readonly timestamp: number }>>
    }
    readonly response: {
      readonly responses: ReadonlyArray<ByTopic<PartitionError & { readonly offset: string }>>
    }
  }
  readonly Fetch: {
    readonly payload: FetchLimits & { readonly topics: ReadonlyArray<ByTopic<FetchPosition>> }
    readonly response: ErrorCode & { readonly partitions: ReadonlyArray<FetchedPartition> }
  }
  readonly FetchById: {
    /** `topic` is an id. `forgotten`: partitions of the session that are not fetched any more. */
    readonly payload: FetchLimits & {
      readonly session: FetchSessionEpoch
      readonly topics: ReadonlyArray<ByTopic<FetchPosition>>
      readonly forgotten: ReadonlyArray<ByTopic<number>>
    }
    /** `sessionId`: 0 where the node keeps no session. */
    readonly response: ErrorCode & {
      readonly sessionId: number
      readonly partitions: ReadonlyArray<FetchedPartition>
    }
  }
  readonly Produce: {
    /** Writes the body when the connection takes the request. */
    readonly payload: (version: number) => Body
    readonly response: {
      readonly topics: ReadonlyArray<{
        readonly topicName: string
        readonly partitions: ReadonlyArray<PartitionError & { readonly baseOffset: string }>
      }>
    }
  }
  readonly ProduceAdding: Apis["Produce"]
  readonly InitProducerId: {
    readonly payload: { readonly transactionalId?: string; readonly transactionTimeout: number }
    readonly response: ErrorCode & { readonly producerId: string; readonly producerEpoch: number }
  }
  readonly AddPartitionsToTxn: {
    readonly payload: ProducerIdentity & { readonly topics: ReadonlyArray<ByTopic<number>> }
    readonly response: {
      readonly errors: ReadonlyArray<{
        readonly topic: string
        readonly partitionErrors: ReadonlyArray<PartitionError>
      }>
    }
  }
  readonly AddOffsetsToTxn: {
    readonly payload: ProducerIdentity & { readonly groupId: string }
    readonly response: ErrorCode
  }
  readonly TxnOffsetCommit: {
    /** `generationId` is -1, and `memberId` empty, where the offsets are not of a member. Brokers before 2.5 are told of none. */
    readonly payload: ProducerIdentity & {
      readonly groupId: string
      readonly generationId: number
      readonly memberId: string
      readonly groupInstanceId: string | null
      readonly topics: ReadonlyArray<
        ByTopic<{ readonly partition: number; readonly offset: string; readonly metadata: string | null }>
      >
    }
    readonly response: { readonly topics: ReadonlyArray<ByTopic<PartitionError>> }
  }
  readonly TxnOffsetCommitAdding: Apis["TxnOffsetCommit"]
  readonly EndTxn: {
    readonly payload: ProducerIdentity & { readonly transactionResult: boolean }
    readonly response: ErrorCode
  }
  readonly EndTxnBumping: {
    readonly payload: Apis["EndTxn"]["payload"]
    /** The identity of the next transaction. */
    readonly response: ErrorCode & { readonly producerId: string; readonly producerEpoch: number }
  }
  readonly CreateTopics: {
    readonly payload: {
      readonly topics: ReadonlyArray<{
        readonly topic: string
        readonly numPartitions: number
        readonly replicationFactor: number
        readonly configEntries: ReadonlyArray<{ readonly name: string; readonly value: string }>
      }>
      readonly timeout: number
    }
    readonly response: TopicErrors
  }
  readonly DeleteTopics: {
    readonly payload: { readonly topics: ReadonlyArray<string>; readonly timeout: number }
    readonly response: TopicErrors
  }
  readonly CreatePartitions: {
    readonly payload: {
      readonly topicPartitions: ReadonlyArray<{ readonly topic: string; readonly count: number }>
      readonly timeout: number
    }
    readonly response: TopicErrors
  }
  readonly DeleteRecords: {
    readonly payload: {
      readonly topics: ReadonlyArray<ByTopic<{ readonly partition: number; readonly offset: string }>>
      readonly timeout: number
    }
    readonly response: { readonly topics: ReadonlyArray<ByTopic<PartitionError>> }
  }
  readonly DescribeConfigs: {
    readonly payload: { readonly resources: ReadonlyArray<{ readonly type: number; readonly name: string }> }
    readonly response: {
      readonly resources: ReadonlyArray<
        ErrorCode & {
          readonly errorMessage: string | null
          readonly configEntries: ReadonlyArray<{ readonly configName: string; readonly configValue: string | null }>
        }
      >
    }
  }
  readonly IncrementalAlterConfigs: {
    readonly payload: { readonly type: number; readonly name: string; readonly config: ReadonlyMap<string, string> }
    readonly response: {
      readonly resources: ReadonlyArray<ErrorCode & { readonly errorMessage: string | null }>
    }
  }
  readonly ListGroups: {
    readonly payload: undefined
    readonly response: ErrorCode & {
      readonly groups: ReadonlyArray<{ readonly groupId: string; readonly protocolType: string }>
    }
  }
  readonly DeleteGroups: {
    readonly payload: ReadonlyArray<string>
    readonly response: { readonly results: ReadonlyArray<ErrorCode & { readonly groupId: string }> }
  }
}

/** The codec of an API. */
export type Codec<K extends keyof Apis> = Api<Apis[K]["payload"], Apis[K]["response"]>
