/** A member, as the group knows it. */
export interface Candidate {
  /** The member id that the coordinator gave. */
  readonly memberId: string
  /** The topics that the member subscribes to. */
  readonly topics: ReadonlySet<string>
  /** Keys (`ConsumerRecord.partitionKey`) of what it holds now. */
  readonly holds: ReadonlySet<string>
  /** Its `ConsumerOptions.copartitionedTopics`. Default: none. */
  readonly copartitionedTopics?: ReadonlyArray<ReadonlyArray<string>>
}
