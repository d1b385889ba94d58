/** Payloads and answers of the APIs by which a member takes part in its group, in both protocols of groups. */

export interface ErrorCode {
  readonly errorCode: number
}

/** Partitions of the topic with this id. */
export interface PartitionsOfTopic {
  /** As Kafka's own tools print it. */
  readonly topicId: string
  readonly partitions: ReadonlyArray<number>
}

export interface MemberApis {
  readonly JoinGroup: {
    readonly payload: {
      readonly groupId: string
      readonly sessionTimeout: number
      readonly rebalanceTimeout: number
      readonly memberId: string
      readonly groupInstanceId: string | null
      readonly protocolType: "consumer"
      readonly groupProtocols: ReadonlyArray<{ readonly name: string; readonly metadata: Buffer }>
    }
    readonly response: ErrorCode & {
      readonly generationId: number
      /** The protocol that the group takes. */
      readonly groupProtocol: string
      readonly leaderId: string
      readonly memberId: string
      readonly members: ReadonlyArray<{ readonly memberId: string; readonly memberMetadata: Buffer }>
    }
  }
  readonly SyncGroup: {
    readonly payload: {
      readonly groupId: string
      readonly generationId: number
      readonly memberId: string
      readonly groupInstanceId: string | null
      readonly groupAssignment: ReadonlyArray<{ readonly memberId: string; readonly memberAssignment: Buffer }>
    }
    readonly response: ErrorCode & { readonly memberAssignment: Buffer }
  }
  readonly Heartbeat: {
    readonly payload: {
      readonly groupId: string
      readonly groupGenerationId: number
      readonly memberId: string
      readonly groupInstanceId: string | null
    }
    readonly response: ErrorCode
  }
  readonly LeaveGroup: {
    /** `groupInstanceId`: removes the static member of this name, whatever its member id (KIP-345). */
    readonly payload: { readonly groupId: string; readonly memberId: string; readonly groupInstanceId?: string }
    readonly response: ErrorCode
  }
  readonly ConsumerGroupHeartbeat: {
    /** Fields that are null have not changed since the last heartbeat. */
    readonly payload: {
      readonly groupId: string
      readonly memberId: string
      /** 0 joins, -1 leaves, and -2 says that a static member will be back. */
      readonly memberEpoch: number
      readonly groupInstanceId: string | null
      /** -1: as before. */
      readonly rebalanceTimeout: number
      readonly topics: ReadonlyArray<string> | null
      /** null: the group's own, or as before. */
      readonly assignor: string | null
      readonly owned: ReadonlyArray<PartitionsOfTopic> | null
    }
    readonly response: ErrorCode & {
      readonly errorMessage: string
      readonly memberEpoch: number
      readonly heartbeatInterval: number
      /** undefined: as before. */
      readonly assignment: ReadonlyArray<PartitionsOfTopic> | undefined
    }
  }
}
